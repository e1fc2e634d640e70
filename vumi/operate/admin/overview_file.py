"""The file with the numbers of all badges, which the operator's page searches and sorts.

The sums over a million badges take half a minute, so a process of its own makes it, at the lowest
priority: `python -m vumi.operate.admin.overview_file FOLDER NOW`. It only reads the server's file.
The overview is a copy: removing it loses nothing.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from chalicelib.units import Seconds
from vumi.folder import OVERVIEW
from vumi.operate.admin.overview import DAYS, BadgeOverview, By, Totals, of_file
from vumi.storage.database import FILE as SERVED

FILE = OVERVIEW
NEW = ".new"
SEPARATOR = "\n"
"""No name has a line end."""
SCHEMA = """
CREATE TABLE badges (id TEXT NOT NULL, names TEXT NOT NULL, searched TEXT NOT NULL,
    total INTEGER NOT NULL, month INTEGER NOT NULL, today INTEGER NOT NULL, now INTEGER NOT NULL,
    frozen INTEGER NOT NULL, owned INTEGER NOT NULL, created INTEGER NOT NULL,
    days TEXT NOT NULL, hour INTEGER NOT NULL, burst INTEGER NOT NULL);
CREATE TABLE made (at REAL NOT NULL, took REAL NOT NULL, badges INTEGER NOT NULL,
    total INTEGER NOT NULL, month INTEGER NOT NULL, today INTEGER NOT NULL, now INTEGER NOT NULL,
    days TEXT NOT NULL);
"""
INDEXES = "".join(f"CREATE INDEX by_{by} ON badges ({by} DESC);" for by in By)
"""No order of many badges is sorted for a page. Badges with the same number are in their order."""
INDEX_OF_BURSTS = "CREATE INDEX bursts ON badges (hour DESC) WHERE burst;"
COLUMNS = "id, names, total, month, today, now, frozen, owned, created, days, hour"
BURSTS = f"SELECT {COLUMNS} FROM badges WHERE burst ORDER BY hour DESC, rowid LIMIT ?"  # noqa: S608  fixed texts
MAX_BURSTS = 10
"""The highest bursts, which the page shows above the badges."""


@dataclass(frozen=True, slots=True)
class Made:
    """When the file was made, the time that it took, and the sums over all badges."""

    at: Seconds
    took: Seconds
    totals: Totals


@dataclass(frozen=True, slots=True)
class BadgeQuery:
    """A page of the badges with a text in a name, sorted by a number."""

    searched: str = ""
    by: By = By.TOTAL
    offset: int = 0
    limit: int = 50


@dataclass(frozen=True, slots=True)
class BadgePage:
    """Some of the badges that a query finds, and the number of all of them; the highest bursts."""

    badges: list[BadgeOverview]
    found: int
    bursts: list[BadgeOverview] = field(default_factory=list)


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
        connection.executescript(INDEXES + INDEX_OF_BURSTS)
    new.replace(path)


def read_made(path: Path) -> Made | None:
    """Return when the file was made and its sums, or None if there is none."""
    if not path.exists():
        return None
    with closing(_open(path)) as connection:
        [(at, took, *sums, days)] = connection.execute("SELECT * FROM made")
    badges, total, month, today, now = sums
    return Made(at, took, Totals(badges, total, month, today, now, _to_days(days)))


def read_page(path: Path, query: BadgeQuery) -> BadgePage:
    """Return a page of badges; those with the same number are in the order of the file."""
    searched = query.searched.casefold()
    where = "WHERE instr(searched, ?)" if searched else "WHERE ? = ''"
    # A search reads all names: by an index, each would be a read of its own.
    order = f"{'+' if searched else ''}{query.by} DESC, rowid"
    with closing(_open(path)) as connection:
        bursts = connection.execute(BURSTS, (MAX_BURSTS,)).fetchall()
        [(found,)] = connection.execute(f"SELECT count(*) FROM badges {where}", (searched,))  # noqa: S608  fixed texts
        rows = connection.execute(
            f"SELECT {COLUMNS} FROM badges {where} ORDER BY {order} LIMIT ? OFFSET ?",  # noqa: S608  fixed texts
            (searched, query.limit, query.offset),
        ).fetchall()
    return BadgePage([_from_row(*row) for row in rows], found, [_from_row(*row) for row in bursts])


def _open(path: Path) -> sqlite3.Connection:
    """Open the file, which is replaced and never changed."""
    return sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)


def _to_row(badge: BadgeOverview) -> tuple[str | int, ...]:
    names = SEPARATOR.join(badge.names)
    numbers = (badge.total, badge.month, badge.today, badge.now)
    return (
        *(badge.badge_id, names, names.casefold()),
        *numbers,
        *(badge.frozen, badge.owned, badge.created),
        *(_to_text(badge.days), badge.hour, badge.is_burst),
    )


def _from_row(badge_id: str, names: str, *rest: Any) -> BadgeOverview:
    total, month, today, now, frozen, owned, created, days, hour = rest
    names_of = tuple(names.split(SEPARATOR))
    numbers, marks = (total, month, today, now), (bool(frozen), bool(owned))
    return BadgeOverview(badge_id, names_of, *numbers, *marks, created, _to_days(days), hour)


def _to_text(days: Iterable[int]) -> str:
    """Write the views of the days; the first days without views, often all, are left out."""
    return ",".join(map(str, days)).lstrip("0,")


def _to_days(written: str) -> tuple[int, ...]:
    views = [int(one) for one in written.split(",") if one]
    return (*[0] * (DAYS - len(views)), *views)


def main(folder: Path, now: Seconds) -> None:
    """Read all badges in the file of a folder, and make the overview's file."""
    os.nice(19)  # the lowest priority: visitors go first
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this
    name = f"file:{quote(str((folder / SERVED).absolute()))}?mode=ro"
    with closing(sqlite3.connect(name, uri=True, isolation_level=None)) as file:

        def read(sql: str, arguments: Sequence[object]) -> list[tuple[Any, ...]]:
            return file.execute(sql, arguments).fetchall()

        write(folder / FILE, of_file(read, now), now, time.monotonic)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
