"""The `Table` on SQLite, its TTL, and the change log of removals that consumers read.

Views are most of the items, so they have a table of their own, in which a number stands for the
badge, and no index by `ttl`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from types import MappingProxyType
from typing import TypeAlias

from chalicelib.counting import keys
from chalicelib.storage.items import Due, Item, Key, Value, check_item, key_of, number
from chalicelib.storage.ports import MAX_DUE
from chalicelib.storage.writes import (
    ConditionFailed,
    Delete,
    Put,
    Update,
    Write,
    check_transaction,
)
from chalicelib.units import Milliseconds, Seconds
from vumi.storage.conditions import holds
from vumi.storage.database import Database

INTEGER_END = 2**63
"""The end of SQLite's integers."""
FOLDS = "fold_views"
"""The consumer of the removals of windows' markers."""
MAX_LOOKED_AT = 10_000
FEW_ATTRIBUTES = 4
Row: TypeAlias = "tuple[str | int | None, ...]"
KEYS: Mapping[tuple[bool, bool], Callable[[str, str], Item]] = MappingProxyType(
    {
        (False, False): lambda _, __: {},
        (True, False): lambda pk, _: {"PK": pk},
        (False, True): lambda _, sk: {"SK": sk},
        (True, True): lambda pk, sk: {"PK": pk, "SK": sk},
    }
)
"""The function that makes an item of a key, by whether the item has `PK`, and `SK`."""
AFTER_EVERY_TEXT = "\U0010ffff"
"""A text that sorts after every sort key that does not begin with it."""


class SqliteTable:
    """A `ports.Table` in the database file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, key: Key) -> Item | None:
        return next(iter(self.get_all([key])), None)

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        return _fetch_all(self._database.read, keys)

    def query(  # noqa: PLR0913  the parts of a query
        self,
        partition: str,
        *,
        limit: int,
        first: str = "",
        last: str = "",
        attributes: Sequence[str] = (),
        descending: bool = False,
    ) -> list[Item]:
        read = _reader_of(tuple(attributes))
        rows = self._database.read(
            read.descending if descending else read.ascending,
            (partition, first, last or AFTER_EVERY_TEXT, limit),
        )
        return read.to_items(partition, rows)

    def count(self, partition: str, *, limit: int, first: str = "", last: str = "") -> int:
        [(found,)] = self._database.read(
            f"SELECT count(*) FROM ({QUERY.format('sk', 'sk', 'ASC')})",  # noqa: S608  fixed texts
            (partition, first, last or AFTER_EVERY_TEXT, limit),
        )
        return int(found)

    def query_due(
        self,
        batch: str,
        *,
        limit: int,
        first: Milliseconds = 0,
        last: Milliseconds = MAX_DUE,
        after: Due | None = None,
    ) -> list[Due]:
        at = (after.due, *after.key) if after else (first - 1, "", "")
        rows = self._database.read(
            "SELECT due, pk, sk FROM items WHERE batch = ? AND due BETWEEN ? AND ?"
            " AND (due, pk, sk) > (?, ?, ?) ORDER BY due, pk, sk LIMIT ?",
            (batch, first, last, *at, limit),
        )
        return [Due(due, Key(pk, sk)) for due, pk, sk in rows]

    def write(self, *writes: Write) -> None:
        check_transaction(writes)
        # All conditions are evaluated before the first write, so one write is one statement.
        self._database.write(
            lambda connection: _transact(connection, writes), savepoint=len(writes) > 1
        )

    def put_all(self, items: Sequence[Item]) -> None:
        for item in items:
            check_item(item)
        # Each item is stored for itself, and a savepoint would copy each page that is changed.
        self._database.write(lambda connection: _store(connection, items), savepoint=False)


VIEW_ATTRIBUTES = "coalesce(attributes, json_object('ttl', ttl))"
"""The attributes of a view as JSON."""
QUERY = (
    "SELECT sk, {} FROM items WHERE pk = ?1 AND sk >= ?2 AND sk <= ?3 UNION ALL SELECT sk, {}"
    " FROM views WHERE badge = (SELECT number FROM viewed WHERE pk = ?1) AND sk >= ?2 AND sk <= ?3"
    " ORDER BY sk {} LIMIT ?4"
)
ALL_ITEMS = (
    "SELECT pk, sk, attributes FROM items UNION ALL"  # noqa: S608  fixed texts
    f" SELECT pk, sk, {VIEW_ATTRIBUTES} FROM viewed CROSS JOIN views ON badge = number"
)
NUMBER = "INSERT INTO viewed (pk, expires) VALUES (?, ?) ON CONFLICT DO NOTHING"
STORE_VIEW = (
    "INSERT INTO views (badge, sk, ttl, attributes)"
    " VALUES ((SELECT number FROM viewed WHERE pk = ?), ?, ?, nullif(?, '{\"ttl\": ' || ? || '}'))"
    " ON CONFLICT (badge, sk) DO UPDATE SET ttl = excluded.ttl, attributes = excluded.attributes"
)
DELETE = "DELETE FROM items WHERE pk = ? AND sk = ?"
DELETE_VIEW = "DELETE FROM views WHERE badge = (SELECT number FROM viewed WHERE pk = ?) AND sk = ?"
STORE = (
    "INSERT INTO items (pk, sk, ttl, batch, due, attributes) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (pk, sk) DO UPDATE SET ttl = excluded.ttl, batch = excluded.batch,"
    " due = excluded.due, attributes = excluded.attributes"
)


def all_items(database: Database) -> Iterator[Item]:
    """Yield all items of one moment, in the order of their keys."""
    rows = database.stream(f"{ALL_ITEMS} ORDER BY pk, sk")
    return (_item(*row) for row in rows)


def removed_items(database: Database, partition: str) -> Iterator[Item]:
    """Yield the items of a partition that TTL has removed and a consumer has not handled yet."""
    rows = database.stream("SELECT pk, sk, attributes FROM changes WHERE pk = ?", (partition,))
    return (_item(*row) for row in rows)


def _transact(connection: sqlite3.Connection, writes: Sequence[Write]) -> None:
    """Do all writes, or none unless each condition holds for its item before the first write.

    The statements are few, because the threads of the web server take the interpreter at each.
    """
    needed = [write.key for write in writes if _needs_item(write)]
    before = {key_of(item): item for item in _fetch_all(connection.execute, needed)}
    failed = {
        place: before.get(write.key)
        for place, write in enumerate(writes)
        if not holds(write.condition, before.get(write.key))
    }
    if failed:
        raise ConditionFailed(failed)
    after = [
        write.item if isinstance(write, Put) else updated(write, before.get(write.key))
        for write in writes
        if isinstance(write, Put | Update)
    ]
    _store(connection, after)
    gone = [write.key for write in writes if isinstance(write, Delete)]
    connection.executemany(DELETE, gone)
    connection.executemany(DELETE_VIEW, [key for key in gone if _is_view(key)])


def _is_view(key: Key) -> bool:
    return key.sk.startswith(keys.VIEW) and key.pk.startswith(keys.PARTITION)


def _store(connection: sqlite3.Connection, items: Iterable[Item]) -> None:
    rows: list[Row] = []
    views: list[Row] = []
    for item in items:
        (views if _is_view(key_of(item)) else rows).append(row_of(item))
    connection.executemany(STORE, rows)
    connection.executemany(NUMBER, {pk: ttl or 0 for pk, _, ttl, *_ in views}.items())
    connection.executemany(
        STORE_VIEW, [(pk, sk, ttl, own, ttl) for pk, sk, ttl, _, _, own in views]
    )


def _needs_item(write: Write) -> bool:
    """Return whether the outcome of a write depends on the item that it replaces."""
    return isinstance(write, Update) or write.condition is not None


def _fetch_all(
    read: Callable[[str, Sequence[object]], Iterable[Sequence[str]]], keys: Sequence[Key]
) -> list[Item]:
    """Return the items that there are under keys; views come last."""
    views = [key for key in keys if _is_view(key)]
    others = [key for key in keys if not _is_view(key)] if views else keys
    rows = read(_fetch_sql(len(others)), [part for key in others for part in key]) if others else ()
    return [_item(*row) for row in rows] + [
        _item(key.pk, *row)
        for key in views
        for row in read(_reader_of(()).ascending, (key.pk, key.sk, key.sk, 1))
    ]


@cache
def _fetch_sql(keys: int) -> str:
    """Return a query by so many keys; SQLite looks each up in the index, because of CROSS JOIN."""
    given = ", ".join(["(?, ?)"] * keys)
    return (
        f"WITH asked (pk, sk) AS (VALUES {given})"  # noqa: S608  placeholders alone
        " SELECT items.pk, items.sk, attributes FROM asked CROSS JOIN items USING (pk, sk)"
    )


def fetch(connection: sqlite3.Connection, key: Key) -> Item | None:
    """Return the item under a key as a transaction sees it, or None."""
    return next(iter(_fetch_all(connection.execute, [key])), None)


def updated(write: Update, before: Item | None) -> Item:
    """Return the item after an update; None stands for an item that does not exist."""
    item: Item = before or {"PK": write.key.pk, "SK": write.key.sk}
    sums = {name: number(item, name) + value for name, value in write.add.items()}
    after = {**write.defaults, **item, **write.values, **sums}
    return {name: value for name, value in after.items() if name not in write.remove}


def row_of(item: Item) -> Row:
    """Return the columns of an item's row, in the order of `STORE`."""
    key, batch, due = key_of(item), item.get("batch"), _integer(item, "due")
    rest = {name: value for name, value in item.items() if name not in ("PK", "SK")}
    indexed = (batch, due) if isinstance(batch, str) and due is not None else (None, None)
    return key.pk, key.sk, _integer(item, "ttl"), *indexed, json.dumps(rest)


def _integer(item: Item, name: str) -> int | None:
    """Return an attribute if it is a whole number that SQLite can store, else None."""
    value = item.get(name)
    return value if isinstance(value, int) and abs(value) < INTEGER_END else None


def _item(pk: str, sk: str, attributes: str) -> Item:
    item: dict[str, Value] = {"PK": pk, "SK": sk}
    item.update(json.loads(attributes))
    return item


class _Reader:
    """A reader of all attributes; it and its subclasses make items of the rows of their queries.

    A row has a sort key and the attributes, and most rows are views, of which only that is needed.
    """

    column, view_column = "attributes", VIEW_ATTRIBUTES

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self._attributes = attributes
        self._to_keys = KEYS["PK" in attributes, "SK" in attributes]
        self.ascending = QUERY.format(self.column, self.view_column, "ASC")
        self.descending = QUERY.format(self.column, self.view_column, "DESC")

    def to_items(self, partition: str, rows: Iterable[Sequence[str]]) -> list[Item]:
        return [self._to_item(partition, sk, attributes) for sk, attributes in rows]

    def _to_item(self, pk: str, sk: str, attributes: str) -> Item:
        return _item(pk, sk, attributes)


class _KeyReader(_Reader):
    """A reader of keys alone."""

    column = view_column = "NULL"

    def _to_item(self, pk: str, sk: str, _: str) -> Item:
        return self._to_keys(pk, sk)


class _SomeReader(_Reader):
    """A reader of some attributes; most views have none of them, so they are not parsed."""

    def __init__(self, attributes: tuple[str, ...]) -> None:
        if "ttl" not in attributes:
            self.view_column = "attributes"
        super().__init__(attributes)

    def to_items(self, partition: str, rows: Iterable[Sequence[str]]) -> list[Item]:
        return [
            self._to_item(partition, sk, own) if own else self._to_keys(partition, sk)
            for sk, own in rows
        ]

    def _to_item(self, pk: str, sk: str, attributes: str) -> Item:
        item = _item(pk, sk, attributes)
        return {name: item[name] for name in self._attributes if name in item}


class _FewReader(_Reader):
    """A reader of few attributes, which SQLite extracts faster than Python parses all of them."""

    def __init__(self, attributes: tuple[str, ...]) -> None:
        # Of two paths or more, it returns an array, which has null for what is missing.
        paths = "".join(f", '$.{name}'" for name in attributes)
        self.column = f"json_extract(attributes, '$.PK'{paths})"
        self.view_column = f"json_extract({VIEW_ATTRIBUTES}, '$.PK'{paths})"
        super().__init__(attributes)

    def _to_item(self, pk: str, sk: str, attributes: str) -> Item:
        values = zip(self._attributes, json.loads(attributes)[1:], strict=True)
        return self._to_keys(pk, sk) | {name: value for name, value in values if value is not None}


@cache
def _reader_of(attributes: tuple[str, ...]) -> _Reader:
    if not attributes:
        return _Reader(attributes)
    if set(attributes) <= {"PK", "SK"}:
        return _KeyReader(attributes)
    is_few = len(attributes) <= FEW_ATTRIBUTES and all(map(str.isidentifier, attributes))
    return _FewReader(attributes) if is_few else _SomeReader(attributes)


@dataclass(frozen=True, slots=True)
class Change:
    """A removal by TTL, as it is stored in the change log."""

    sequence: int
    removed_at: Seconds
    item: Item


def any_expired(database: Database, now: Seconds) -> bool:
    """Return whether there is an expired item."""
    either = "SELECT 1 FROM items WHERE ttl < ?1 UNION ALL SELECT 1 FROM viewed WHERE expires < ?1"
    return bool(database.read(f"{either} LIMIT 1", (now,)))


def first_due_marker(database: Database, now: Seconds) -> Seconds | None:
    """Return when the oldest window's marker expired that is not folded, or None without one.

    It is an expired item, or a removal that the consumer of folds has not handled. Only the first
    10,000 are looked at, because markers are removed in the order of their expiry.
    """
    expired = database.read(
        "SELECT ttl FROM (SELECT sk, ttl FROM items WHERE ttl < ? ORDER BY ttl LIMIT ?)"
        " WHERE sk = ? LIMIT 1",
        (now, MAX_LOOKED_AT, keys.WINDOW),
    )
    removed = database.read(
        "SELECT attributes FROM (SELECT sk, attributes FROM changes WHERE sequence >"
        " (SELECT sequence FROM checkpoints WHERE consumer = ?) ORDER BY sequence LIMIT ?)"
        " WHERE sk = ? LIMIT 1",
        (FOLDS, MAX_LOOKED_AT, keys.WINDOW),
    )
    due = [*(ttl for (ttl,) in expired), *(json.loads(one)["ttl"] for (one,) in removed)]
    return min(due, default=None)


def remove_expired(
    connection: sqlite3.Connection,
    now: Seconds,
    limit: int,
    may_go: Callable[[Key], bool],
    is_consumed: Callable[[Key], bool],
) -> int:
    """Remove up to `limit` expired items that may go, oldest first; return their number.

    Each removal that has a consumer appends a change in the same transaction. Views come last.
    """
    rows = connection.execute(
        "SELECT pk, sk, attributes FROM items WHERE ttl < ? ORDER BY ttl, pk, sk", (now,)
    )
    gone = list(islice((row for row in rows if may_go(Key(*row[:2]))), limit))
    rows.close()
    connection.executemany(
        "INSERT INTO changes (removed_at, pk, sk, attributes) VALUES (?, ?, ?, ?)",
        [(now, *row) for row in gone if is_consumed(Key(*row[:2]))],
    )
    connection.executemany(DELETE, [(pk, sk) for pk, sk, _ in gone])
    left = limit - len(gone)
    return len(gone) + (_remove_expired_views(connection, now, left, may_go) if left else 0)


def _remove_expired_views(
    connection: sqlite3.Connection, now: Seconds, limit: int, may_go: Callable[[Key], bool]
) -> int:
    """Remove expired views, badge by badge, and the numbers of badges that have none left."""
    rows = connection.execute(EXPIRED_VIEWS, (now,))
    gone = list(islice((row for row in rows if may_go(Key(*row[:2]))), limit))
    rows.close()
    connection.executemany(DELETE_VIEW, [row[:2] for row in gone])
    looked_at = gone[-1][2:] if len(gone) == limit else (now, 0)
    connection.execute(DELETE_NUMBERS, looked_at)
    connection.execute(UPDATE_EXPIRES, looked_at)
    return len(gone)


EXPIRED_VIEWS = (
    "SELECT pk, sk, expires, number FROM viewed CROSS JOIN views ON badge = number"
    " WHERE expires < ?1 AND ttl < ?1 ORDER BY expires, number"
)
DELETE_NUMBERS = (
    "DELETE FROM viewed WHERE (expires, number) < (?, ?)"
    " AND NOT EXISTS (SELECT 1 FROM views WHERE badge = number)"
)
UPDATE_EXPIRES = (
    "UPDATE viewed SET expires ="  # noqa: S608  a fixed number
    f" (SELECT coalesce(min(ttl), {INTEGER_END - 1}) FROM views WHERE badge = number)"
    " WHERE (expires, number) < (?, ?)"
)


class ChangeLog:
    """The changes of the table, in order, for one consumer with a checkpoint."""

    def __init__(self, database: Database, consumer: str) -> None:
        self._database = database
        self._consumer = consumer
        database.write(
            lambda connection: connection.execute(
                "INSERT OR IGNORE INTO checkpoints (consumer, sequence) VALUES (?, 0)", (consumer,)
            )
        )

    def read(self, limit: int) -> list[Change]:
        """Return the next changes after the checkpoint: the same ones until it is moved."""
        rows = self._database.read(
            "SELECT sequence, removed_at, pk, sk, attributes FROM changes WHERE sequence >"
            " (SELECT sequence FROM checkpoints WHERE consumer = ?)"
            " ORDER BY sequence LIMIT ?",
            (self._consumer, limit),
        )
        return [Change(sequence, at, _item(*row)) for sequence, at, *row in rows]

    def checkpoint(self, sequence: int) -> None:
        """Move the checkpoint to a change; delete the changes that all consumers have handled."""
        self._database.write(lambda connection: self._move(connection, sequence))

    def _move(self, connection: sqlite3.Connection, sequence: int) -> None:
        connection.execute(
            "UPDATE checkpoints SET sequence = ? WHERE consumer = ?", (sequence, self._consumer)
        )
        connection.execute(
            "DELETE FROM changes WHERE sequence <= (SELECT min(sequence) FROM checkpoints)"
        )
