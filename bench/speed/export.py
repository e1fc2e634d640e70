"""One machine: the time and the memory of an export and of its import, by the number of badges.

A badge has a summary, a finished day, one live view, and every tenth has an owner. Each command
is a process of its own, whose largest resident memory the system reports. `BADGES` in the
environment gives another number of badges.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from chalicelib.counting import keys
from chalicelib.storage.items import Item, Value
from simulation.report import Report, judged
from simulation.views import AT_NOON, ulid
from vumi.operate.check.rows import count_items
from vumi.storage.database import FILE, Database
from vumi.storage.read_only import open_read_only
from vumi.storage.table import SqliteTable

BADGES = int(os.environ.get("BADGES", "100000"))
TENTH = BADGES // 10
FILL_ITEMS = 20_000
MEGABYTE = 1_000_000
KILOBYTE = 1_024
"""The unit of `VmHWM` (proc(5))."""
AIM_GROWTH = 1.25
MEASURED = """
import sys
from vumi.cli.program import main
status = main(sys.argv[1:])
[peak] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(peak.split()[1])
sys.exit(status)
"""
"""The program, which prints its largest resident memory; that of `wait4` has its parent's too."""


@dataclass(frozen=True, slots=True)
class Run:
    """A command that has ended: its seconds, its largest memory, and the bytes of its file."""

    command: str
    badges: int
    seconds: float
    memory: int
    size: int


def measure() -> Report:
    """Export and import a tenth of the badges, then all."""
    runs = [run for badges in (TENTH, BADGES) for run in _measure(badges)]
    growth = max(runs[at + 2].memory / runs[at].memory for at in range(2))
    aim = judged(f"at most {AIM_GROWTH} times the memory of a tenth", met=growth <= AIM_GROWTH)
    return Report(
        title=f"export: {BADGES:,} badges on one machine",
        head=("command", "badges", "seconds", "badges a second", "memory", "file"),
        rows=[
            (
                run.command,
                f"{run.badges:,}",
                f"{run.seconds:.1f}",
                f"{run.badges / run.seconds:,.0f}",
                f"{run.memory / MEGABYTE:,.0f} MB",
                f"{run.size / MEGABYTE:,.0f} MB",
            )
            for run in runs
        ],
        notes=[f"most memory: {growth:.2f} times that of a tenth of the badges; {aim}"],
    )


def _measure(badges: int) -> Iterator[Run]:
    with tempfile.TemporaryDirectory() as folder:
        full, empty = Path(folder) / "full", Path(folder) / "empty"
        _fill(full, badges)
        Database(_new(empty) / FILE).close()
        file = Path(folder) / "export.jsonl"
        for command, data in (("export", full), ("import", empty)):
            run = _run(badges, data, command, file)
            print(f"{command} of {badges:,} badges: {run.seconds:.1f} s", file=sys.stderr)
            yield run
        _check_same(full, empty)


def _fill(folder: Path, badges: int) -> None:
    with closing(Database(_new(folder) / FILE)) as database:
        table, left = SqliteTable(database), _items(badges)
        while some := list(islice(left, FILL_ITEMS)):
            table.put_all(some)


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _items(badges: int) -> Iterator[Item]:
    hours: dict[str, Value] = {f"h{hour:02}": 30 for hour in range(8, 12)}
    for number in range(badges):
        badge_id = f"owner-{number % 1_000}/repository-{number}"
        pk = keys.partition(badge_id)
        yield {"PK": pk, "SK": keys.DAY + "2026-03-13", "views": 120, **hours, "version": 20}
        if number % 10 == 0:
            yield {"PK": pk, "SK": keys.OWNER, "digest": f"{number:064}", "created": 1_700_000_000}
        view = keys.view(badge_id, ulid(AT_NOON, number % 10**8, badge_id))
        yield {"PK": view.pk, "SK": view.sk, "ttl": AT_NOON // 1_000}
        today: dict[str, Value] = {"day": "2026-03-14", "h08": 3, "h09": 4}
        yield {
            "PK": pk,
            "SK": keys.SUMMARY,
            "count": 127,
            "watermark": AT_NOON - 300_000,
            "today": today,
            "version": 30,
            "created": 1_700_000_000,
        }


def _run(badges: int, data: Path, command: str, file: Path) -> Run:
    started = time.perf_counter()
    memory = subprocess.check_output(  # noqa: S603  our own program
        [sys.executable, "-c", MEASURED, command, str(file)],
        env={**os.environ, "DATA": str(data)},
        stderr=subprocess.DEVNULL,
        text=True,
    )
    taken = time.perf_counter() - started
    return Run(command, badges, taken, int(memory.split()[-1]) * KILOBYTE, file.stat().st_size)


def _check_same(full: Path, empty: Path) -> None:
    with open_read_only(full / FILE) as one, open_read_only(empty / FILE) as other:
        markers = other.execute("SELECT count(*) FROM items WHERE sk = 'WINDOW'").fetchone()[0]
        if count_items(one) != count_items(other) - markers:
            raise RuntimeError("the import has other items than the file")
