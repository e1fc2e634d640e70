"""Checking a file and what lies beside it, whether or not vu-mi runs on it; nothing is changed."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TypeAlias

from chalicelib.storage.errors import Refused
from vumi.check import consistency, rows
from vumi.check import wallets as wallet_checks
from vumi.check.consistency import Badges
from vumi.check.report import Finding, Kind, all_wrong, note, ok, wrong
from vumi.check.rows import Wrong
from vumi.check.wallets import Wallets
from vumi.storage.database import FILE, VERSION, examine, make, translated
from vumi.storage.read_only import WAL, beside, has_wal, reading

Read: TypeAlias = Callable[[Path], AbstractContextManager[sqlite3.Connection]]

TRIES = 3
"""How often to begin anew where a server that starts meanwhile changes what is read."""
LEAST_FREE_BYTES = 16 * 2**20
LARGE_WAL_BYTES = 256 * 2**20
"""SQLite begins the WAL anew from 4 MB on, unless somebody reads for long."""


def check(folder: Path) -> list[Finding]:
    """All there is to say about a folder that has a file."""
    return [*check_content(folder), *_surroundings(folder / FILE)]


def check_content(folder: Path, read: Read = reading) -> list[Finding]:
    """What is to say about the file itself, and the archive beside it; `read` opens the file."""
    path = folder / FILE
    for _ in range(TRIES):
        before = _stamp(path)
        try:
            with read(path) as connection:
                findings = list(_content(connection, folder))
        except sqlite3.Error as error:
            findings = [wrong(f"{path}: {translated(error)}")]
        if has_wal(path) or _stamp(path) == before:
            break
    return findings


def _stamp(path: Path) -> tuple[bool, int, int, int]:
    """What is another one once the file was changed."""
    found = path.stat()
    return has_wal(path), found.st_ino, found.st_size, found.st_mtime_ns


def _content(connection: sqlite3.Connection, folder: Path) -> Iterator[Finding]:
    """What is broken below makes all above meaningless: then only that is told."""
    try:
        examine(connection)
    except Refused as refused:
        yield wrong(str(refused))
        return
    found = [*_damage(connection), *_schema(connection)]
    yield from found
    if all(one.kind is not Kind.WRONG for one in found):
        yield ok(f"SQLite finds the file sound, and it has all of format {VERSION}")
        yield from _books(connection, folder)


def _damage(connection: sqlite3.Connection) -> Iterator[Finding]:
    """What SQLite itself finds. Source: sqlite.org, "PRAGMA integrity_check"."""
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
    if found != ["ok"]:
        lines = (line for message in found for line in message.splitlines())
        yield from all_wrong(f"SQLite finds the file corrupt: {line}" for line in lines)


def _schema(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Find columns and indexes that are missing, and name those that are not vu-mi's own."""
    here = _named(connection)
    with closing(sqlite3.connect(":memory:")) as fresh:
        make(fresh)
        wanted = _named(fresh)
    missing = sorted(name for name in wanted if here.get(name) != wanted[name])
    yield from all_wrong(f"{name} is not as vu-mi makes it" for name in missing)
    for name in sorted(here.keys() - wanted.keys()):
        yield note(f"{name} is none of vu-mi's own; it is left alone")


def _named(connection: sqlite3.Connection) -> dict[str, object]:
    """Return each table with its columns, and each index with its text."""
    objects = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'"
    ).fetchall()
    return {
        f"the {kind} {name}": _columns(connection, name) if kind == "table" else sql
        for kind, name, sql in objects
    }


def _columns(connection: sqlite3.Connection, table: str) -> object:
    rows = connection.execute(
        "SELECT name, type, [notnull], pk FROM pragma_table_info(?)", (table,)
    )
    return sorted(rows)


def _books(connection: sqlite3.Connection, folder: Path) -> Iterator[Finding]:
    for table in ("stream", "clock"):
        [(stored,)] = connection.execute(f"SELECT count(*) FROM {table}")  # noqa: S608  our own words
        if stored != 1:
            yield wrong(f"the table {table} has {stored} rows, it must have one")
    badges = Badges()
    wallets = Wallets()
    kinds = Counter({"view": rows.all_items(connection)})
    yield from all_wrong(_items(connection, badges, wallets, kinds))
    yield ok(f"items: {rows.told(kinds)}")
    yield from all_wrong(badges.wrong)
    if not badges.wrong:
        yield ok("badges: each count is the sum of its history")
    yield from consistency.change_log(connection)
    yield from consistency.queues(connection)
    yield from wallet_checks.check(connection, wallets, folder)


def _items(
    connection: sqlite3.Connection, badges: Badges, wallets: Wallets, kinds: Counter[str]
) -> Iterator[str]:
    """Gather what the items say; returns what is wrong with them one by one."""
    for row in rows.others(connection):
        kinds["view"] -= 1
        try:
            item = rows.item_in(row)
            kind = rows.kind_of(item)
        except Wrong as error:
            yield f"{row[0]} {row[1]}: {error}"
            continue
        kinds[kind] += 1
        badges.take(kind, item)
        wallets.take(kind, item)


def _surroundings(path: Path) -> Iterator[Finding]:
    """Whether the file can be written, and grow."""
    for place in (path.parent, path):
        if not os.access(place, os.W_OK):
            yield wrong(f"{place} can't be written; let this user write the file and its folder")
    free = shutil.disk_usage(path.parent).free
    wal = beside(path, WAL).stat().st_size if has_wal(path) else 0
    sizes = f"{_size(path.stat().st_size)}, {_size(wal)} in its WAL, {_size(free)} free on the disk"
    yield wrong(f"{sizes}: make room") if free < LEAST_FREE_BYTES else ok(sizes)
    if wal > LARGE_WAL_BYTES:
        yield note("the WAL is large: something reads the file for long; stop that")


def _size(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB"
