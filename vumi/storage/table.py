"""The `Table` on SQLite.

Views are most of the items, so they have a table of their own, in which a number stands for the
badge, and no index by `ttl`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import ge, gt, le, lt
from typing import Any, TypeAlias

from chalicelib.counting import keys
from chalicelib.storage.conditions import Combination, Comparison, Condition, Presence
from chalicelib.storage.items import Due, Item, Key, Value, check_item, key_of, number
from chalicelib.storage.ports import MAX_DUE
from chalicelib.storage.writes import (
    ConditionFailedError,
    Delete,
    Put,
    Update,
    Write,
    check_transaction,
)
from chalicelib.units import Milliseconds
from vumi.storage.database import Database

PAGE_ITEMS = 4
"""Items that are read before others are counted, which is cheaper for more than a few."""
INTEGER_END = 2**63
"""The end of SQLite's integers."""
Row: TypeAlias = "tuple[str | int | None, ...]"
ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
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
        sql = _query_sql(tuple(attributes), "DESC" if descending else "ASC")
        rows = self._database.read(sql, (partition, first, last or AFTER_EVERY_TEXT, limit))
        if not attributes:
            return [item_of(partition, *row) for row in rows]
        is_sk_alone = "SK" in attributes and "PK" not in attributes
        return [
            {"SK": sk} if is_sk_alone and not found else _only(attributes, partition, sk, found)
            for sk, found in rows
        ]

    def page_items(self, first: int, other: int) -> int:  # noqa: ARG002  rows of any size
        return PAGE_ITEMS

    def count(self, partition: str, *, limit: int, first: str = "", last: str = "") -> int:
        are_views = first.startswith(keys.VIEW) and last.startswith(keys.VIEW)
        sql = COUNT_VIEWS if are_views and partition.startswith(keys.PARTITION) else COUNT
        [(found,)] = self._database.read(sql, (partition, first, last or AFTER_EVERY_TEXT, limit))
        return min(int(found), limit)

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
        stored = [(check_item(item), item) for item in items]
        # Each item is stored for itself, and a savepoint would copy each page that is changed.
        self._database.write(lambda connection: _store(connection, stored), savepoint=False)


VIEW_ITEM = ("PK", "SK", "ttl")
"""The attributes of most views. They are columns, and the JSON of the others is null."""
VIEW_ATTRIBUTES = "coalesce(attributes, json_object('ttl', ttl))"
"""The attributes of a view as JSON."""
QUERY = (
    "SELECT sk, {} FROM items WHERE pk = ?1 AND sk >= ?2 AND sk <= ?3 UNION ALL SELECT sk, {}"
    " FROM views WHERE badge = (SELECT number FROM viewed WHERE pk = ?1) AND sk >= ?2 AND sk <= ?3"
    " ORDER BY sk {} LIMIT ?4"
)
COUNT_VIEWS = (
    "SELECT count(*) FROM (SELECT 1 FROM views WHERE badge ="
    " (SELECT number FROM viewed WHERE pk = ?1) AND sk >= ?2 AND sk <= ?3 LIMIT ?4)"
)
"""Without the order of `QUERY`, SQLite counts in the index, four times as fast."""
COUNT = (
    "SELECT (SELECT count(*) FROM"  # noqa: S608  fixed texts
    f" (SELECT 1 FROM items WHERE pk = ?1 AND sk >= ?2 AND sk <= ?3 LIMIT ?4)) + ({COUNT_VIEWS})"
)
ALL_ITEMS = (
    "SELECT pk, sk, attributes FROM items UNION ALL"  # noqa: S608  fixed texts
    f" SELECT pk, sk, {VIEW_ATTRIBUTES} FROM viewed CROSS JOIN views ON badge = number"
)
NUMBER = "INSERT INTO viewed (pk, expires) VALUES (?, ?) ON CONFLICT DO NOTHING"
STORE_VIEW = (
    "INSERT INTO views (badge, sk, ttl, attributes)"
    " SELECT number, ?, ?, nullif(?, '') FROM viewed WHERE pk = ?"
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
    return (item_of(*row) for row in rows)


def _transact(connection: sqlite3.Connection, writes: Sequence[Write]) -> None:
    """Do all writes, or none unless each condition holds for its item before the first write.

    The statements are few, because the threads of the web server take the interpreter at each.
    """
    # A put or a delete without a condition does not depend on the item that it replaces.
    needed = [one.key for one in writes if isinstance(one, Update) or one.condition is not None]
    before = {key_of(item): item for item in _fetch_all(connection.execute, needed)}
    failed = {
        place: before.get(write.key)
        for place, write in enumerate(writes)
        if not holds(write.condition, before.get(write.key))
    }
    if failed:
        raise ConditionFailedError(failed)
    after = [
        (write.key, write.item if isinstance(write, Put) else updated(write, before.get(write.key)))
        for write in writes
        if isinstance(write, Put | Update)
    ]
    _store(connection, after)
    gone = [write.key for write in writes if isinstance(write, Delete)]
    connection.executemany(DELETE, gone)
    connection.executemany(DELETE_VIEW, [key for key in gone if _is_view(key)])


def _is_view(key: Key) -> bool:
    return key.sk.startswith(keys.VIEW) and key.pk.startswith(keys.PARTITION)


def _store(connection: sqlite3.Connection, items: Iterable[tuple[Key, Item]]) -> None:
    rows: list[Row] = []
    views: list[Row] = []
    for key, item in items:
        if _is_view(key):
            views.append(_view_row_of(key, item))
        else:
            rows.append(row_of(item))
    if rows:
        connection.executemany(STORE, rows)
    if views and connection.executemany(STORE_VIEW, views).rowcount < len(views):
        connection.executemany(NUMBER, {pk: ttl or 0 for _, ttl, _, pk in views}.items())
        connection.executemany(STORE_VIEW, views)


def _view_row_of(key: Key, item: Item) -> Row:
    """Return the parameters of `STORE_VIEW`, which stores nothing for a badge without a number."""
    ttl = _integer(item, "ttl")
    if len(item) == len(VIEW_ITEM) and ttl is not None:
        return key.sk, ttl, "", key.pk  # SQLite's module is slow with None
    return key.sk, ttl, _to_json(item), key.pk


def _fetch_all(
    read: Callable[[str, Sequence[object]], Iterable[Sequence[str]]], keys: Sequence[Key]
) -> list[Item]:
    """Return the items that there are under keys; views come last."""
    views = [key for key in keys if _is_view(key)]
    others = [key for key in keys if not _is_view(key)] if views else keys
    rows = read(_fetch_sql(len(others)), [part for key in others for part in key]) if others else ()
    return [item_of(*row) for row in rows] + [
        item_of(key.pk, *row)
        for key in views
        for row in read(_query_sql(), (key.pk, key.sk, key.sk, 1))
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
    indexed = (batch, due) if isinstance(batch, str) and due is not None else (None, None)
    return key.pk, key.sk, _integer(item, "ttl"), *indexed, _to_json(item)


def _to_json(item: Item) -> str:
    return json.dumps({name: value for name, value in item.items() if name not in ("PK", "SK")})


def _integer(item: Item, name: str) -> int | None:
    """Return an attribute if it is a whole number that SQLite can store, else None."""
    value = item.get(name)
    return value if isinstance(value, int) and abs(value) < INTEGER_END else None


def item_of(pk: str, sk: str, attributes: str | None) -> Item:
    """Return the item of a row, whose attributes are JSON, if it has any beside its key."""
    item: dict[str, Value] = {"PK": pk, "SK": sk}
    if attributes:
        item.update(json.loads(attributes))
    return item


def _only(attributes: Sequence[str], *row: str) -> Item:
    """Return some attributes of the item of a row."""
    return {name: value for name, value in item_of(*row).items() if name in attributes}


@cache
def _query_sql(attributes: tuple[str, ...] = (), order: str = "ASC") -> str:
    """Return the query of some attributes, or of all if there are none.

    A row has a sort key and the attributes as JSON. That is null for most rows: they are views,
    which have a column for `ttl`.
    """
    columns = "attributes", "attributes"
    if not attributes or "ttl" in attributes:
        columns = "attributes", VIEW_ATTRIBUTES
    elif set(attributes) <= {"PK", "SK"}:
        columns = "NULL", "NULL"
    return QUERY.format(*columns, order)


def holds(condition: Condition | None, item: Item | None) -> bool:
    """Return whether a condition holds for an item; None stands for an item that does not exist.

    A missing attribute makes every comparison false. Values of different types are never equal and
    never in order. Texts compare by their UTF-8 bytes, which is the order of their
    code points. Source: the DynamoDB developer guide, "Condition and filter expressions, operators,
    and functions in DynamoDB".
    """
    item = item or {}
    match condition:
        case None:
            return True
        case Comparison():
            return _compare(condition, item)
        case Presence(name, exists):
            return (name in item) is exists
        case Combination(left, "AND", right):
            return holds(left, item) and holds(right, item)
        case Combination(left, _, right):
            return holds(left, item) or holds(right, item)


def _compare(comparison: Comparison, item: Item) -> bool:
    found, value = item.get(comparison.name), comparison.value
    if comparison.operator == "=":
        return found == value
    in_order = type(found) is type(value) and isinstance(found, str | int)
    return in_order and ORDERS[comparison.operator](found, value)
