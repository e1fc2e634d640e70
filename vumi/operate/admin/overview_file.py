"""The file with the numbers of all badges, which the operator's page searches and sorts.

The sums over a million badges take half a minute, so a process of its own makes it, at the lowest
priority: `python -m vumi.operate.admin.overview_file FOLDER NOW`. It only reads the server's file.
The overview is a copy: removing it loses nothing.
"""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote

from chalicelib import telemetry
from chalicelib.units import Seconds, to_iso8601
from vumi.folder import OVERVIEW
from vumi.operate.admin.overview import DAYS, BadgeOverview, By, Periods, Totals, of_file
from vumi.storage.database import FILE as SERVED

FILE = OVERVIEW
NEW = ".new"
SEPARATOR = "\n"
"""No name has a line end."""
COLUMNS = "id, names, total, month, today, now, frozen, owned, created, days, hour"
SCHEMA = f"""
CREATE TABLE badges ({COLUMNS}, searched, burst);
CREATE TABLE made (at, took, badges, total, month, today, now, days);
"""
INDEXES = (
    *(f"CREATE INDEX by_{by} ON badges ({by} DESC)" for by in By),
    "CREATE INDEX bursts ON badges (hour DESC) WHERE burst",
)
"""No order of many badges is sorted for a page. Badges with the same number are in their order."""
BURSTS = f"SELECT {COLUMNS} FROM badges WHERE burst ORDER BY hour DESC, rowid LIMIT ?"  # noqa: S608  fixed texts
USUAL_LIMIT = 50
MAX_BURSTS = 10
"""The highest bursts, which the page shows above the badges."""
FRESH_SECONDS = 5.0
"""An overview that is younger is not made again."""
FRESH_FACTOR = 10.0
"""An overview is fresh for at least this many times as long as it took to make."""
AGAIN_SECONDS = 60.0
"""The time until the next try after a failure."""
OLD_SECONDS = 60.0
"""Instead of an older overview, whoever asks waits for the new one."""
HOUR_SECONDS = 3_600
WATCH_SECONDS = 5.0
"""The time until an overview that is being made is looked at again."""
WAIT_SECONDS = 2.0
"""The longest wait for a new overview."""


@dataclass(frozen=True, slots=True)
class OverviewStamp:
    """When the file was made, the time that it took, and the sums over all badges."""

    at: Seconds
    took: Seconds
    totals: Totals


@dataclass(frozen=True, slots=True)
class BadgePage:
    """Some of the badges that are found, and the number of all of them; the highest bursts."""

    badges: list[BadgeOverview]
    found: int
    bursts: list[BadgeOverview]


def write(
    path: Path, badges: Iterable[BadgeOverview], now: Seconds, monotonic: Callable[[], Seconds]
) -> None:
    """Make the file with the numbers of badges, by id, or replace it. Raises `sqlite3.Error`."""
    begun, new = monotonic(), path.with_name(f"{path.name}.{os.getpid()}{NEW}")
    # Those of processes that were killed, or whose server was.
    for left in path.parent.glob(f"{path.name}.*{NEW}"):
        left.unlink(missing_ok=True)
    totals = Totals()
    with closing(sqlite3.connect(new)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.executescript(SCHEMA)
        connection.executemany(
            "INSERT INTO badges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            map(_to_row, totals.passing(badges)),
        )
        sums = (totals.badges, totals.total, totals.month, totals.today, totals.now)
        connection.execute(
            "INSERT INTO made VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (now, monotonic() - begun, *sums, _to_text(totals.days)),
        )
        connection.executescript(";".join(INDEXES))
    new.replace(path)


def read_stamp(path: Path) -> OverviewStamp | None:
    """Return when the file was made and its sums, or None if there is none."""
    if not path.exists():
        return None
    with closing(_open(path)) as connection:
        [(at, took, *sums, days)] = connection.execute("SELECT * FROM made")
    badges, total, month, today, now = sums
    return OverviewStamp(at, took, Totals(badges, total, month, today, now, _to_days(days)))


def read_page(
    path: Path, search: str = "", by: By = By.TOTAL, *, offset: int = 0, limit: int = USUAL_LIMIT
) -> BadgePage:
    """Return a page of the badges with a text in a name, the highest first, then in their order."""
    searched = search.casefold()
    where = "WHERE instr(searched, ?)" if searched else "WHERE ? = ''"
    # A search reads all names: by an index, each would be a read of its own.
    order = f"{'+' if searched else ''}{by} DESC, rowid"
    with closing(_open(path)) as connection:
        bursts = connection.execute(BURSTS, (MAX_BURSTS,)).fetchall()
        [(found,)] = connection.execute(f"SELECT count(*) FROM badges {where}", (searched,))  # noqa: S608  fixed texts
        rows = connection.execute(
            f"SELECT {COLUMNS} FROM badges {where} ORDER BY {order} LIMIT ? OFFSET ?",  # noqa: S608  fixed texts
            (searched, limit, offset),
        ).fetchall()
    return BadgePage([_from_row(*row) for row in rows], found, [_from_row(*row) for row in bursts])


def _open(path: Path) -> sqlite3.Connection:
    """Open the file, which is replaced and never changed."""
    return sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)


def _to_row(badge: BadgeOverview) -> tuple[str | int, ...]:
    names = SEPARATOR.join(badge.names)
    return (
        *(badge.badge_id, names, badge.total, badge.month, badge.today, badge.now),
        *(badge.frozen, badge.owned, badge.created, _to_text(badge.days), badge.hour),
        *(names.casefold(), badge.is_burst),
    )


def _from_row(badge_id: str, names: str, *rest: Any) -> BadgeOverview:
    total, month, today, now, frozen, owned, created, days, hour = rest
    numbers, marks = (total, month, today, now), (bool(frozen), bool(owned))
    names_of = tuple(names.split(SEPARATOR))
    return BadgeOverview(badge_id, names_of, *numbers, *marks, created, _to_days(days), hour)


def _to_text(days: Iterable[int]) -> str:
    """Write the views of the days; the first days without views, often all, are left out."""
    return ",".join(map(str, days)).lstrip("0,")


def _to_days(written: str) -> tuple[int, ...]:
    views = [int(one) for one in written.split(",") if one]
    return (*[0] * (DAYS - len(views)), *views)


class Overview:
    """The overview of the badges in a folder: its file, which a process makes again when asked.

    It is also made once an hour, to log the badges whose last full hour is a burst.
    """

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], Seconds],
        command: Sequence[str] = (sys.executable, "-m", "vumi.operate.admin.overview_file"),
    ) -> None:
        self.path = folder / FILE
        self.failure = ""
        self._folder = folder
        self._clock = clock
        self._command = command
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._failed_at: Seconds | None = None
        self._logged: set[tuple[str, str]] = set()
        """The bursts of the latest hour that are logged, each with the hour."""

    @property
    def is_making(self) -> bool:
        """Return whether a process makes the next overview."""
        return self._process is not None

    def refresh(self, now: Seconds) -> OverviewStamp | None:
        """Return the latest overview, if there is one, and begin the next unless it is fresh.

        `now` is the clock of views.
        """
        with self._lock:
            self._collect()
            made = read_stamp(self.path)
            if self._process is None and self._is_due(made):
                self._process = self._start(now)
            if self._process and (made is None or self._clock() - made.at > OLD_SECONDS):
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(WAIT_SECONDS)
                self._collect()
                made = read_stamp(self.path)
        return made

    def watch(self, now: Seconds) -> Seconds:
        """Make an overview each hour, which logs the bursts; return the time until the next step.

        `now` is the clock of views.
        """
        self.refresh(now)
        return WATCH_SECONDS if self.is_making else HOUR_SECONDS - now % HOUR_SECONDS + 60

    def stop(self) -> None:
        """End the process that makes an overview, if there is one."""
        with self._lock:
            if self._process:
                self._process.kill()
                self._process.communicate()
                self._process = None

    def _is_due(self, made: OverviewStamp | None) -> bool:
        now = self._clock()
        if self._failed_at is not None and 0 <= now - self._failed_at < AGAIN_SECONDS:
            return False
        if made is None:
            return True
        # A clock that was set back must not keep an overview for long.
        return not 0 <= now - made.at < max(FRESH_SECONDS, FRESH_FACTOR * made.took)

    def _start(self, now: Seconds) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603  our own command
            (*self._command, str(self._folder), str(now)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _collect(self) -> None:
        """Note the result of a process that has ended."""
        if self._process is None or self._process.poll() is None:
            return
        _, said = self._process.communicate()
        failed = self._process.returncode != 0
        self._process = None
        self._failed_at = self._clock() if failed else None
        self.failure = (said.strip().splitlines() or ["it was ended"])[-1] if failed else ""
        if failed:
            telemetry.event(logging.ERROR, "overview_failed", reason=self.failure)
        else:
            self._log_bursts()

    def _log_bursts(self) -> None:
        """Log each burst of the last full hour once, the highest ones."""
        made = read_stamp(self.path)
        if made is None:
            return
        hour = to_iso8601(Periods.of(made.at).hour_began)
        self._logged = {one for one in self._logged if one[1] == hour}
        for badge in read_page(self.path, limit=0).bursts:
            if (badge.name, hour) not in self._logged:
                self._logged.add((badge.name, hour))
                mean = round(badge.mean_hour, 2)
                fields = {"hour": hour, "views": badge.hour, "mean_hour": mean}
                telemetry.event(logging.WARNING, "badge_burst", badge=badge.name, **fields)


def main(folder: Path, now: Seconds) -> None:
    """Read all badges in the file of a folder, and make the overview's file."""
    os.nice(19)  # the lowest priority: visitors come first
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this
    name = f"file:{quote(str((folder / SERVED).absolute()))}?mode=ro"
    with closing(sqlite3.connect(name, uri=True, isolation_level=None)) as file:

        def read(sql: str, arguments: Sequence[object]) -> list[tuple[Any, ...]]:
            return file.execute(sql, arguments).fetchall()

        write(folder / FILE, of_file(read, now), now, time.monotonic)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
