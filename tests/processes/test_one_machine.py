"""`python -m vumi` as a process, with real sockets, signals, `kill -9` and a real file."""

from __future__ import annotations

import http.client
import signal
import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Self

import pytest

from simulation.server_process import Process
from simulation.views import AT_NOON, ulid
from tests.processes.programs import Server, read_row, run, running, start, until
from tests.unit.vumi.operate.exchange.test_hostile_files import file_of
from vumi.folder import SECRETS

SHORT = {"VIEW_WINDOW_SECONDS": "1", "GRACE_SECONDS": "1"}


def folded(folder: Path, badge_id: str) -> int | None:
    """Return the count in the badge's summary in the file."""
    query = "SELECT attributes ->> 'count' FROM items WHERE pk = ? AND sk = 'VIEWS'"
    row = read_row(folder, query, f"USER#{badge_id}")
    return row[0] if row else None


class Visitors:
    """Threads that visit a badge until the block or the server ends, and count the responses."""

    def __init__(self, visit: Callable[[], object], threads: int) -> None:
        self.attempted = self.acknowledged = 0
        self._request, self._lock, self._stop = visit, threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._visit) for _ in range(threads)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, acknowledged: int) -> None:
        until(lambda: self.acknowledged >= acknowledged)

    def _visit(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                self.attempted += 1
            try:
                self._request()
            except (OSError, http.client.HTTPException):
                return
            with self._lock:
                self.acknowledged += 1


def visiting(server: Server, threads: int) -> Visitors:
    """Return visitors of the badge `hot`."""

    def visit() -> None:
        assert "isError" not in server.badge("hot")

    return Visitors(visit, threads)


def test_nothing_is_lost_or_doubled_when_the_process_is_killed_under_load(tmp_path: Path) -> None:
    """The process is killed 3 times under load. A view without a response may count."""
    attempted = acknowledged = 0
    for _ in range(3):
        with running(tmp_path, **SHORT) as server:
            assert acknowledged <= _wait_until_settled(server, acknowledged) <= attempted
            with visiting(server, 16) as visitors:
                visitors.wait_for(150)
                server.process.send_signal(signal.SIGKILL)
            attempted += visitors.attempted
            acknowledged += visitors.acknowledged
    with running(tmp_path, **SHORT) as server:
        total = _wait_until_settled(server, acknowledged)
        assert acknowledged <= total <= attempted
        until(lambda: folded(tmp_path, "hot") == total)
        assert server.peek("hot") == total
        assert server.stop()[0] == 0


def _wait_until_settled(server: Server, least: int) -> int:
    """Wait until all queued views are counted; return the count, which is `least` or more."""
    shown = [-1, server.peek("hot")]

    def is_settled() -> bool:
        time.sleep(0.3)
        shown.append(server.peek("hot"))
        return shown[-1] >= least and shown[-1] == shown[-2]

    until(is_settled, f"{least} views or more")
    return shown[-1]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_cleanly_under_load(tmp_path: Path, how: signal.Signals) -> None:
    with running(tmp_path) as server:
        with visiting(server, 8) as visitors:
            visitors.wait_for(50)
            status, out, err = server.stop(how)
        assert (status, err) == (0, "")
        assert out.endswith("vu-mi stopped; nothing is lost.\n")
    with running(tmp_path) as server:
        assert visitors.acknowledged <= _wait_until_settled(server, visitors.acknowledged)
        assert server.peek("hot") <= visitors.attempted
        assert server.process.stdout
        assert [*islice(server.process.stdout, 2)][1] == f"Data: {tmp_path}, 1 badge\n"


def test_a_second_instance_on_the_same_data_is_refused_until_the_first_is_killed(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as server:
        status, out, err = run(tmp_path)
        assert (status, out) == (1, "")
        assert err == (
            f"Error: vu-mi already runs on {tmp_path}/ (process {server.process.pid}):"
            " stop it, or set DATA to another folder\n"
        )
        assert server.peek("a") == 0
        server.kill()
    with running(tmp_path) as server:
        assert server.peek("a") == 0


def test_an_import_killed_at_any_moment_is_finished_by_the_next(tmp_path: Path) -> None:
    """The import of 5,000 badges is killed 3 times. Afterwards each badge has its views once."""
    with running(tmp_path) as server:
        server.stop()
    file = tmp_path / "export.jsonl"
    lines: list[dict[str, object]] = []
    for n in range(5000):
        lines.append({"type": "badge", "id": f"b{n}", "count": n, "version": 1})
        lines.append({"type": "view", "id": f"b{n}", "view": ulid(AT_NOON, n)})
    file.write_bytes(file_of(*lines))
    done = 0
    for _ in range(3):
        done = _kill_after_more_badges(start(tmp_path, "import", str(file)), tmp_path, done)
    _, out, _ = run(tmp_path, "import", str(file))
    assert out == f"badge: {done:,} here already\nbadge: {5000 - done:,} imported\n"
    with running(tmp_path) as server:
        assert [server.peek(f"b{n}") for n in (0, 1, 2500, 4999)] == [1, 2, 2501, 5000]


def _kill_after_more_badges(process: Process, folder: Path, done: int) -> int:
    until(lambda: process.poll() is not None or _badges(folder) > done)
    process.kill()
    process.communicate()
    return _badges(folder)


def _badges(folder: Path) -> int:
    return int(read_row(folder, "SELECT count(*) FROM items WHERE sk = 'VIEWS'")[0])


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("PORT", "BUSY", "is in use: stop what listens there, or set PORT to another port"),
        ("PORT", "http", "PORT must be a whole number from 0 to 65535, not 'http'"),
        ("DATA", "/dev/null/x", "set DATA to a folder that can be written"),
        ("HOST", "203.0.113.1", "can't listen on 203.0.113.1:0"),
        ("HOST", "a..b", "can't listen on a..b:0: no such host; set HOST and PORT"),
    ],
)
def test_a_first_start_that_fails_names_the_setting_in_one_line_and_stores_no_token(
    tmp_path: Path, server: Server, name: str, value: str, says: str
) -> None:
    status, out, err = run(tmp_path, **{name: value.replace("BUSY", str(server.port))})
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("Error: ")
    assert says in err
    assert not (tmp_path / SECRETS).exists()
