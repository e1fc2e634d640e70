"""The check of a data folder. It works while vu-mi runs, and changes nothing.

Most items are live views of the same form. SQLite filters those that are correct, so only the
other items are decoded.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from chalicelib.storage.errors import StorageError, StorageRefusedError
from chalicelib.storage.items import Item, check_item
from vumi import folder as folders
from vumi import tokens
from vumi.errors import plural
from vumi.journals import MALFORMED, in_folder
from vumi.operate.check.items import (
    Finding,
    FindingKind,
    Items,
    StoredItem,
    all_wrong,
    note,
    ok,
    wrong,
)
from vumi.operate.kinds import ENTRY, WrongItemError
from vumi.storage.archive import FOLDER
from vumi.storage.database import FILE, to_storage_error
from vumi.storage.file_format import FORMAT, VERSION, WAL, beside, has_wal, open_read_only
from vumi.storage.private_files import UnsafeFileError, check_entry
from vumi.storage.queue import DEAD_LETTERS
from vumi.storage.table import VIEW_ATTRIBUTES, row_of

Read: TypeAlias = Callable[[Path], AbstractContextManager[sqlite3.Connection]]

MAX_ATTEMPTS = 3
"""Attempts to read the file, if a server that starts or stops changes it meanwhile."""
MIN_FREE_BYTES = 16 * 2**20
LARGE_WAL_BYTES = 256 * 2**20
"""SQLite restarts the WAL at 4 MB, unless a reader keeps a transaction open."""


def check(folder: Path) -> Iterator[Finding]:
    """Check a data folder that has a file."""
    yield from check_rights(folder)
    yield from check_content(folder)
    yield from _check_disk(folder / FILE)


def check_rights(folder: Path) -> Iterator[Finding]:
    """Check the rights of a folder, and who made its files."""
    for path in folders.entries(folder):
        try:
            check_entry(path)
        except UnsafeFileError as error:
            yield wrong(str(error))
    if mode := folders.rights_of_others(folder):
        kind = wrong if folder.stat().st_mode & stat.S_IWOTH else note
        fix = folders.fix_rights(folder)
        yield kind(f"other users have rights to {folder}/ (mode {mode}): run `{fix}`")
    else:
        yield ok(f"no other user has rights to {folder}/")
    if (path := folder / tokens.FIRST_FILE).exists():
        yield note(f"{path} has the token of the first start: store it elsewhere, and remove it")


def check_content(folder: Path, read: Read = open_read_only) -> list[Finding]:
    """Check the content of the file and of the archive; `read` opens the file."""
    path = folder / FILE
    for _ in range(MAX_ATTEMPTS):
        try:
            with read(path) as connection:
                return list(_check_content(connection, folder))
        except (StorageError, sqlite3.Error) as error:
            reason = to_storage_error(error) if isinstance(error, sqlite3.Error) else error
            findings = [wrong(f"{path}: {reason}")]
    return findings


def _check_content(connection: sqlite3.Connection, folder: Path) -> Iterator[Finding]:
    """Check from the bottom up, and stop at the first layer that is wrong."""
    try:
        FORMAT.examine(connection)
    except StorageRefusedError as refused:
        yield wrong(str(refused))
        return
    findings = [*_check_damage(connection), *_check_schema(connection)]
    yield from findings
    if all(finding.kind is not FindingKind.WRONG for finding in findings):
        yield ok(f"SQLite finds no damage, and the schema is that of format {VERSION}")
        yield from _check_consistency(connection, folder)


def _check_damage(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Report the damage that SQLite finds. Source: sqlite.org, "PRAGMA integrity_check"."""
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
    if found != ["ok"]:
        lines = (line for message in found for line in message.splitlines())
        yield from all_wrong(f"SQLite finds the file corrupt: {line}" for line in lines)


SCHEMA = (
    "SELECT 'the ' || type || ' ' || name, CASE type WHEN 'table' THEN (SELECT json_group_array("
    "json_array(name, type, [notnull], pk)) FROM (SELECT * FROM pragma_table_info(found.name)"
    " ORDER BY name)) ELSE sql END FROM sqlite_schema AS found WHERE name NOT LIKE 'sqlite_%'"
)
"""Each table with its columns, and each index with its text."""


def _check_schema(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Report missing tables, columns and indexes, and note those that are not vu-mi's."""
    actual = dict(connection.execute(SCHEMA))
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        FORMAT.migrate(fresh)
        expected = dict(fresh.execute(SCHEMA))
    missing = sorted(name for name in expected if actual.get(name) != expected[name])
    yield from all_wrong(
        f"{name} is missing or differs from the schema of vu-mi" for name in missing
    )
    for name in sorted(actual.keys() - expected.keys()):
        yield note(f"{name} is not part of vu-mi; it is ignored")


def _check_consistency(connection: sqlite3.Connection, folder: Path) -> Iterator[Finding]:
    for table in ("stream", "clock"):
        [(stored,)] = connection.execute(f"SELECT count(*) FROM {table}")  # noqa: S608  fixed names
        if stored != 1:
            yield wrong(f"the table {table} has {plural(stored, 'row')}; it must have 1")
    [(lost,)] = connection.execute(
        "SELECT count(*) FROM views WHERE badge NOT IN (SELECT number FROM viewed)"
    )
    if lost:
        yield wrong(f"{plural(lost, 'view')} of no badge")
    [(count,)] = connection.execute(COUNT)
    with closing(Items({"view": count})) as items:
        yield from items.collect(_read_unusual(connection, items.kinds))
        yield from items.check_badges()
        yield from items.check_owners()
        yield from _check_change_log(connection)
        yield from _check_queues(connection)
        yield from _check_wallets(connection, items, folder)


def _read_unusual(connection: sqlite3.Connection, kinds: Counter[str]) -> Iterator[StoredItem]:
    """Yield all items except correct live views, which are counted already."""
    for row in connection.execute(UNUSUAL):
        kinds["view"] -= 1
        yield f"{row[0]} {row[1]}", partial(decode_row, row)


def _check_wallets(connection: sqlite3.Connection, items: Items, folder: Path) -> Iterator[Finding]:
    yield from all_wrong(_add_changes(connection, items))
    archive = folder / FOLDER
    yield from all_wrong(items.add_archive(in_folder(archive)))
    yield from items.check_wallets(has_archive=archive.exists())
    if malformed := sum(1 for _ in (archive / MALFORMED).glob("*.jsonl.gz")):
        yield note(f"{plural(malformed, 'malformed object')} to read in {archive / MALFORMED}")


def _add_changes(connection: sqlite3.Connection, items: Items) -> Iterator[str]:
    """Add entries that wait in the change log; yield a message for each malformed one."""
    rows = connection.execute("SELECT sequence, pk, sk, attributes FROM changes")
    for sequence, pk, sk, attributes in rows:
        try:
            item = decode(pk, sk, attributes)
            if sk.startswith(ENTRY.sort):
                items.add(ENTRY, item)
        except (WrongItemError, TypeError, ValueError) as error:
            yield f"change {sequence} ({pk} {sk}): {error}"


LATEST_CHANGE = (
    "SELECT coalesce(max(number), 0) FROM (SELECT seq AS number FROM sqlite_sequence"
    " WHERE name = 'changes' UNION ALL SELECT sequence FROM changes)"
)
"""The highest sequence number that the change log has assigned."""


def _check_change_log(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Check that each checkpoint is within the log, and that the log keeps no read change."""
    [(latest,)] = connection.execute(LATEST_CHANGE)
    checkpoints = dict(connection.execute("SELECT consumer, sequence FROM checkpoints"))
    messages = [
        f"the checkpoint of {consumer} is at change {at}, but the change log ends at {latest}:"
        " the next changes would be skipped"
        for consumer, at in checkpoints.items()
        if not 0 <= at <= latest
    ]
    lowest = min(checkpoints.values(), default=0)
    kept, first = connection.execute("SELECT count(*), min(sequence) FROM changes").fetchone()
    if kept and first <= lowest:
        messages.append(f"change {first} is kept, although every consumer has read up to {lowest}")
    if not messages:
        yield ok(
            f"the change log ends at {latest}, with {plural(kept, 'change')} for its consumers"
        )
    yield from all_wrong(messages)


MALFORMED_MESSAGES = (
    "SELECT id, queue FROM messages WHERE typeof(body) != 'text' OR receives < 0"
    " OR typeof(receives) != 'integer' OR typeof(sent_at) NOT IN ('real', 'integer')"
    " OR typeof(visible_at) NOT IN ('real', 'integer')"
    " OR typeof(timed_at) NOT IN ('real', 'integer')"
)


def _check_queues(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Check that every message can be delivered, and note the dead letters."""
    messages = [
        f"message {number} of the queue {queue} is malformed"
        for number, queue in connection.execute(MALFORMED_MESSAGES)
    ]
    yield from all_wrong(messages)
    counted = connection.execute("SELECT queue, count(*) FROM messages GROUP BY queue").fetchall()
    dead = [(queue, count) for queue, count in counted if queue.endswith(DEAD_LETTERS)]
    waiting = sum(count for _, count in counted) - sum(count for _, count in dead)
    if not messages:
        yield ok(f"queues: {plural(waiting, 'message')} to deliver")
    for queue, count in dead:
        yield note(
            f"{plural(count, 'dead letter')} of {queue.removesuffix(DEAD_LETTERS)}: see the log for"
            " the cause; `vumi redrive` sends those of views again"
        )


def _check_disk(path: Path) -> Iterator[Finding]:
    """Check that the file can be written and can grow."""
    for place in (path.parent, path):
        if not os.access(place, os.W_OK):
            yield wrong(f"{place} can't be written; let this user write the file and its folder")
    free = shutil.disk_usage(path.parent).free
    wal = beside(path, WAL).stat().st_size if has_wal(path) else 0
    counts = (path.stat().st_size, wal, free)
    size, wal_size, free_size = (f"{count / 2**20:,.1f} MiB" for count in counts)
    sizes = f"{size}, {wal_size} in its WAL, {free_size} free on the disk"
    yield wrong(f"{sizes}; free space on the disk") if free < MIN_FREE_BYTES else ok(sizes)
    if wal > LARGE_WAL_BYTES:
        yield note("the WAL is large because a program keeps a transaction open; stop that program")


COLUMNS = ("ttl", "batch", "due")
"""The columns that repeat an attribute of the item."""
PLAIN_VIEW = (
    "(substr(pk, 1, 5) = 'USER#' AND substr(sk, 1, 5) = 'VIEW#' AND length(sk) = 31"
    " AND substr(sk, 6, 1) <= '7' AND substr(sk, 6) NOT GLOB '*[^0-9A-HJKMNP-TV-Z]*'"
    " AND typeof(ttl) = 'integer' AND attributes IS NULL)"
)
"""Matches exactly the correct live views; a ULID has 128 bits."""


COUNT = "SELECT (SELECT count(*) FROM items) + (SELECT count(*) FROM views)"
"""Counts all items."""
UNUSUAL = (
    f"SELECT pk, sk, {', '.join(COLUMNS)}, attributes FROM items UNION ALL"  # noqa: S608  fixed texts
    f" SELECT pk, sk, ttl, NULL, NULL, {VIEW_ATTRIBUTES} FROM viewed CROSS JOIN views"
    f" ON badge = number WHERE {PLAIN_VIEW} IS NOT TRUE ORDER BY pk, sk"
)
"""The rows of all items except correct live views, in the order of their keys."""


def decode_row(row: tuple[Any, ...]) -> Item:
    """Decode a row and compare its columns with its attributes. Raises `WrongItemError`."""
    pk, sk, *indexed, attributes = row
    item = decode(pk, sk, attributes)
    for name, column, attribute in zip(COLUMNS, indexed, row_of(item)[2:-1], strict=True):
        if column != attribute or type(column) is not type(attribute):
            raise WrongItemError(
                f"its column {name} has {column!r}, but its attribute has {attribute!r}"
            )
    return item


def decode(pk: str, sk: str, attributes: str) -> Item:
    """Decode an item from its keys and its attributes as JSON. Raises `WrongItemError`."""
    try:
        values = json.loads(attributes)
        if not isinstance(values, dict):
            raise WrongItemError("its attributes are not a JSON object")
        item: Item = {"PK": pk, "SK": sk, **values}
        check_item(item)
    except (StorageRefusedError, TypeError, ValueError, RecursionError) as error:
        raise WrongItemError(f"it can't be decoded: {error}") from error
    return item
