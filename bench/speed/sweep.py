"""The time of a sweep: it finds the same few due events among more and more that are far ahead."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from bench.measuring import interleaved, medians, seconds
from chalicelib.events import sweep
from chalicelib.events.event import Event, Target, TargetKind
from chalicelib.storage.items import key_of
from chalicelib.storage.writes import Delete
from simulation.report import Report, judged
from vumi.storage.database import FILE, Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable

STORED = (1_000, 10_000, 100_000, 1_000_000)
ROUNDS = 15
DUE = 100
"""Events that each sweep finds."""
AT_ONCE = 10_000
MINUTE = 60_000
START = 1_800_000_000_000
"""Milliseconds since 1970, like all times here."""
FAR = START + 300 * 86_400_000
AIM = 1.5
"""The most that a sweep among the most events may take, as a multiple of that among the fewest."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file with events far ahead; a minute passes between sweeps."""

    events: int
    table: SqliteTable
    queue: SqliteQueue
    minute: Iterator[int] = field(default_factory=count)

    def sweep(self) -> float:
        """Sweep the events; return the seconds. Raises `AssertionError`."""
        now = START + next(self.minute) * MINUTE
        due = now + sweep.AHEAD_SECONDS * 1000
        items = [_event(f"due-{due}-{place}", due - place).new_item() for place in range(DUE)]
        self.table.put_all(items)
        found: list[sweep.SweepResult] = []
        took = seconds(lambda: found.append(sweep.sweep(self.table, self.queue, now)))
        if found != [sweep.SweepResult(DUE, 0)]:
            raise AssertionError(f"swept {found}, not {DUE}")
        for item in items:
            self.table.write(Delete(key_of(item)))
        return took


def measure() -> Report:
    """Fill a file for each number of events, and sweep them turn by turn."""
    with ExitStack() as files:
        sides = {events: files.enter_context(_file_with(events)) for events in STORED}
        took = medians(interleaved(ROUNDS, {n: side.sweep for n, side in sides.items()}))
    fewest, most = STORED[0], STORED[-1]
    times = took[most] / took[fewest]
    return Report(
        title=f"sweep: {DUE} due events among those far ahead, on one machine",
        head=("stored far ahead", "ms", f"of {fewest:,}", "aim"),
        rows=[
            (
                f"{events:,}",
                f"{spent * 1000:.1f}",
                f"{spent / took[fewest]:.2f}",
                judged(f"at most {AIM} times", met=times <= AIM) if events == most else "",
            )
            for events, spent in took.items()
        ],
        notes=(f"median of {ROUNDS} sweeps each, turn by turn; every one sent all {DUE}",),
    )


@contextmanager
def _file_with(events: int) -> Iterator[Stored]:
    with tempfile.TemporaryDirectory() as folder, closing(Database(Path(folder) / FILE)) as file:
        table = SqliteTable(file)
        for start in range(0, events, AT_ONCE):
            places = range(start, min(start + AT_ONCE, events))
            table.put_all([_event(f"far-{place}", FAR + place).new_item() for place in places])
        queue = SqliteQueue(file, "distribution", lambda: START / 1000)
        sweep.sweep(table, queue, START - MINUTE)
        yield Stored(events, table, queue)


def _event(name: str, at: int) -> Event:
    return Event(name, at, START, Target(TargetKind.LOG), '"hello"', name)
