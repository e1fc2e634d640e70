"""The rows of a file: each decodes, and has columns equal to its attributes.

Most items are live views of the same form. SQLite filters those that are correct, so only the
other items are decoded.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.items import Item, check_item
from vumi.operate.kinds import WrongItemError
from vumi.storage.table import VIEW_ATTRIBUTES, row_of

COLUMNS = ("ttl", "batch", "due")
"""The columns that repeat an attribute of the item."""
PLAIN_VIEW = (
    "(substr(pk, 1, 5) = 'USER#' AND substr(sk, 1, 5) = 'VIEW#' AND length(sk) = 31"
    " AND substr(sk, 6, 1) <= '7' AND substr(sk, 6) NOT GLOB '*[^0-9A-HJKMNP-TV-Z]*'"
    " AND typeof(ttl) = 'integer' AND attributes IS NULL)"
)
"""Matches exactly the correct live views; a ULID has 128 bits."""


def count_items(connection: sqlite3.Connection) -> int:
    """Count all items."""
    counts = "SELECT (SELECT count(*) FROM items) + (SELECT count(*) FROM views)"
    return int(connection.execute(counts).fetchone()[0])


def unusual_rows(connection: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of all items except correct live views, in the order of their keys."""
    columns = f"pk, sk, {', '.join(COLUMNS)}, attributes"
    yield from connection.execute(
        f"SELECT {columns} FROM items UNION ALL"  # noqa: S608  fixed texts
        f" SELECT pk, sk, ttl, NULL, NULL, {VIEW_ATTRIBUTES} FROM viewed CROSS JOIN views"
        f" ON badge = number WHERE {PLAIN_VIEW} IS NOT TRUE ORDER BY pk, sk"
    )


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
