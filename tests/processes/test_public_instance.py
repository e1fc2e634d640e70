"""An instance for strangers, on a real `python -m vumi`: quotas, bans, and the way back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from chaos.faults.clock import OffsetClock
from simulation import server_process
from simulation.attacks import BUSY, Attack
from simulation.server_process import killed
from tests.processes.programs import until
from tests.processes.server import Server, run, running
from vumi.storage.database import FILE
from vumi.storage.file_sizes import FREE_PAGES

WEDNESDAY = datetime(2031, 5, 14, 9, 30, tzinfo=UTC)
"""A day in the middle of its week and of its month, later than the machine's clock."""
FLOOD = 1_500
"""The new ids that one address makes in a day, so that their pages are worth a vacuum."""


def views(server: Server, badge_id: str) -> str:
    return str(server.badge(badge_id)["message"])


def left(server: Server) -> dict[str, float]:
    """Return how far away the limits are, as the metrics say."""
    lines = server.request("/metrics")[2].decode().splitlines()
    found = [line for line in lines if line.startswith("vumi_limit_left{")]
    return {line.split('"')[1]: float(line.split()[-1]) for line in found}


@contextmanager
def running_at(
    folder: Path, now: datetime, **settings: str
) -> Iterator[tuple[Server, OffsetClock]]:
    """Run a server at a time, with its clock."""
    clock = OffsetClock(folder / "clock")
    clock.jump(now.timestamp() - clock())
    program = ("chaos.driver.launch", str(folder / "clock"), str(folder / "crash"))
    with killed(server_process.start(folder / "data", program, settings)) as process:
        yield Server(process), clock


def in_file(folder: Path, sql: str) -> tuple[int, ...]:
    with closing(sqlite3.connect(folder / FILE)) as file:
        return tuple(file.execute(sql).fetchone())


def pages(folder: Path) -> tuple[int, int]:
    """Return how many pages of the file are used, and how many are free."""
    [every], [free] = (in_file(folder, f"PRAGMA {of}_count") for of in ("page", "freelist"))
    return every - free, free


def test_prune_gives_the_bytes_of_a_flood_of_new_ids_back(tmp_path: Path) -> None:
    limits = {"CLIENT_NEW_IDS_PER_DAY": str(FLOOD), "MAX_BADGES": str(2 * FLOOD)}
    data = tmp_path / "data"
    with running_at(tmp_path, WEDNESDAY, **limits) as (server, clock):
        server.visit("known", 10)
        before, _ = pages(data)
        flood = Attack(server.host, server.port, f"{BUSY} connections: new ids of emoji", 60)
        with flood.start() as attack:
            server.visit("known", 10)
            until(lambda: left(server)["new_id_a_day"] == 0, "the address has made all its ids")
            attack.kill()
        assert views(server, "of another address") == "0"
        flooded, _ = pages(data)
        assert flooded > before + 2 * FREE_PAGES
        clock.jump(2 * 3_600)
        until(lambda: in_file(data, "SELECT count(*) FROM views") == (0,), "all views are folded")
        clock.jump(2 * 86_400)
        server.visit("known", 1)
        status, out, err = run(data, "prune", "--unseen", "1d", "--below", "10", "--yes")
        assert (status, out.splitlines()[-1]) == (0, f"Pruned {FLOOD + 1:,} badges."), err
        assert server.peek("known") == 21
    with running(data, **limits) as server:
        assert left(server)["badges"] == 2 * FLOOD - 1
        until(lambda: pages(data)[1] <= FREE_PAGES, "free pages are given back to the disk")
        assert pages(data)[0] < before + FLOOD / 100
        assert views(server, "known") == "21"
