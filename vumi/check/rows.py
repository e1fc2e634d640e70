"""Checking the items one by one: each decodes, has a known key, and columns that say the same.

Live views are most of a file, and all alike: SQLite itself sees which are as they must be, and only
the others are decoded.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

from chalicelib.events import event as events
from chalicelib.events.event import Event
from chalicelib.events.sweep import CURSOR
from chalicelib.storage.errors import Refused
from chalicelib.storage.items import Item, check_item, number, text
from chalicelib.views import ids, keys
from chalicelib.views.summary import Day, Summary
from chalicelib.views.view import milliseconds
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.amounts import MOST
from chalicelib.wallets.wallet import Entry, Outcome
from vumi.storage.table import row_of

COLUMNS = ("ttl", "batch", "due")
"""The columns of an item that repeat one of its attributes."""
PLAIN_VIEW = (
    "(substr(pk, 1, 5) = 'USER#' AND substr(sk, 1, 5) = 'VIEW#' AND length(sk) = 31"
    " AND substr(sk, 6, 1) <= '7' AND substr(sk, 6) NOT GLOB '*[^0-9A-HJKMNP-TV-Z]*'"
    " AND typeof(ttl) = 'integer' AND attributes = '{\"ttl\": ' || ttl || '}'"
    " AND batch IS NULL AND due IS NULL)"
)
"""A live view as it is written, and nothing else; a ULID is of 128 bits."""
DIGEST = re.compile("[0-9a-f]{64}")


class Wrong(Exception):
    """An item is not as it must be; the message says how."""


def all_items(connection: sqlite3.Connection) -> int:
    """How many items there are."""
    return int(connection.execute("SELECT count(*) FROM items").fetchone()[0])


def others(connection: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    """The rows of all items but live views as they must be, in the order of their keys."""
    columns = f"pk, sk, {', '.join(COLUMNS)}, attributes"
    query = f"SELECT {columns} FROM items WHERE {PLAIN_VIEW} IS NOT TRUE ORDER BY pk, sk"  # noqa: S608
    yield from connection.execute(query)


def item_in(row: tuple[Any, ...]) -> Item:
    """The item that a row is. Raises `Wrong`."""
    pk, sk, *indexed, attributes = row
    item = decoded(pk, sk, attributes)
    for name, column, attribute in zip(COLUMNS, indexed, row_of(item)[2:-1], strict=True):
        if column != attribute or type(column) is not type(attribute):
            raise Wrong(f"its column {name} has {column!r}, its attributes say {attribute!r}")
    return item


def decoded(pk: str, sk: str, attributes: str) -> Item:
    """An item of these keys and attributes. Raises `Wrong`."""
    try:
        values = json.loads(attributes)
        if not isinstance(values, dict):
            raise Wrong("its attributes are no JSON object")
        item: Item = {"PK": pk, "SK": sk, **values}
        check_item(item)
    except (Refused, TypeError, ValueError, RecursionError) as error:
        raise Wrong(f"it does not decode: {error}") from error
    return item


def kind_of(item: Item) -> str:
    """What an item is, in the words of the architecture. Raises `Wrong` where it is not right."""
    pk, sk = text(item, "PK"), text(item, "SK")
    for partition, sort, kind, check in KINDS:
        if pk.startswith(partition) and (sk == sort or (sort[-1] == "#" and sk.startswith(sort))):
            try:
                check(item)
            except (TypeError, ValueError, KeyError) as error:
                raise Wrong(f"this {kind} is not right: {error}") from error
            return kind
    raise Wrong("nothing in vu-mi has such a key")


def _badge(item: Item) -> None:
    _badge_id(item)
    for name in ("count", "watermark", "version", "base", "frozen", "reset", "created", "hot"):
        if number(item, name) < 0:
            raise ValueError(f"its {name} is {item[name]}, below 0")
    summary = Summary.of("", item)
    if summary.reset > summary.watermark:
        raise ValueError(f"its reset {summary.reset} is later than its watermark")
    if summary.today.day:
        date.fromisoformat(summary.today.day)


def _owner(item: Item) -> None:
    _badge_id(item)
    _match(DIGEST, text(item, "digest"), "digest of a secret")


def _day(item: Item) -> None:
    _badge_id(item)
    date.fromisoformat(text(item, "SK").removeprefix(keys.DAY))
    views, day = number(item, "views"), Day.of("", item)
    if min([views, *day.hours.values()]) < 0:
        raise ValueError("it has a number below 0")
    if day.views != views:
        raise ValueError(f"it has {views} views, its hours have {day.views}")
    number(item, "version")
    number(item, "reset")


def _view(item: Item) -> None:
    _badge_id(item)
    _ulid(text(item, "SK").removeprefix(keys.VIEW))
    number(item, "ttl")


def _seen(item: Item) -> None:
    _ulid(text(item, "PK").removeprefix(f"{keys.SEEN}#"))


def _marker(item: Item) -> None:
    _, mark, badge_id = text(item, "PK").split("#", 2)
    int(mark)
    if badge_id != text(item, "badge"):
        raise ValueError(f"it is of {badge_id!r}, it names {item.get('badge')!r}")


def _event(item: Item) -> None:
    event = Event.of(item)
    _match(events.ID, event.event_id, "id")
    if item["batch"] != events.batch(event.status, event.event_id):
        raise ValueError(f"it is {event.status}, its batch is {item['batch']!r}")
    number(item, "due")


def _sweep(item: Item) -> None:
    number(item, "swept")


def _wallet(item: Item) -> None:
    _match(wallets.ID, text(item, "PK").removeprefix(wallets.PARTITION), "id")
    balance = item["balance"]
    if not isinstance(balance, int) or not 0 <= balance <= MOST:
        raise ValueError(f"its balance is {balance}, it must be 0 to {MOST}")
    text(item, "user")


def _entry(item: Item) -> None:
    wallet_id = text(item, "PK").removeprefix(wallets.PARTITION)
    entry = Entry.of(item)
    _match(wallets.ID, entry.entry_id, "id")
    if wallet_id not in entry.posting.wallets:
        raise ValueError("it is of other wallets")
    if not 0 < entry.posting.amount <= MOST:
        raise ValueError(f"its amount is {entry.posting.amount}, it must be 1 to {MOST}")


def _nonce(item: Item) -> None:
    _match(wallets.ID, text(item, "entry"), "id of an entry")
    _match(DIGEST, text(item, "request"), "digest of a request")
    Outcome(text(item, "outcome"))
    if "ttl" in item:
        raise ValueError("it has a ttl, but a nonce is kept for good")


def _wallet_of_a_user(item: Item) -> None:
    _match(wallets.ID, text(item, "wallet"), "id of a wallet")


KINDS: tuple[tuple[str, str, str, Callable[[Item], None]], ...] = (
    (keys.PARTITION, keys.SUMMARY, "badge", _badge),
    (keys.PARTITION, keys.OWNER, "owner", _owner),
    (keys.PARTITION, keys.DAY, "day", _day),
    (keys.PARTITION, keys.VIEW, "view", _view),
    (keys.SEEN, keys.SEEN, "counted view", _seen),
    (keys.WINDOW, keys.WINDOW, "window", _marker),
    (events.PARTITION, events.SORT, "event", _event),
    (CURSOR.pk, CURSOR.sk, "sweep", _sweep),
    (wallets.PARTITION, wallets.SORT, "wallet", _wallet),
    (wallets.PARTITION, wallets.ENTRY, "entry", _entry),
    (wallets.PARTITION, wallets.NONCE, "nonce", _nonce),
    (wallets.OWNERS, wallets.SORT, "wallet of a user", _wallet_of_a_user),
)
"""Where the keys of an item begin so, what it is, and what must hold for it."""


def _badge_id(item: Item) -> None:
    badge_id = text(item, "PK").removeprefix(keys.PARTITION)
    if ids.normalise(badge_id) != badge_id:
        raise ValueError("its id is not normalised")


def _ulid(found: str) -> None:
    milliseconds(found)


def _match(form: re.Pattern[str], found: str, what: str) -> None:
    if form.fullmatch(found) is None:
        raise ValueError(f"{found!r} is no {what}")


def told(kinds: Counter[str]) -> str:
    """How many of each kind there are."""
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items())) or "none"
