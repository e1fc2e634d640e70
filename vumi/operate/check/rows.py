"""The check of single items: each decodes, has a known key, and columns equal to its attributes.

Most items are live views of the same form. SQLite filters those that are correct, so only the
other items are decoded.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

from chalicelib.counting import ids, keys
from chalicelib.counting.milestones import Milestones
from chalicelib.counting.summary import Day, Summary
from chalicelib.counting.view import milliseconds
from chalicelib.events import event as events
from chalicelib.events.event import Event
from chalicelib.events.sweep import CURSOR
from chalicelib.http import authentication
from chalicelib.owners import proving
from chalicelib.settings import DIGEST
from chalicelib.storage.errors import Refused
from chalicelib.storage.items import Item, check_item, number, text
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.amounts import MAX_BALANCE
from chalicelib.wallets.wallet import Entry, PostingOutcome
from vumi.storage.table import VIEW_ATTRIBUTES, row_of
from vumi.tokens import NAME, StoredToken

COLUMNS = ("ttl", "batch", "due")
"""The columns that repeat an attribute of the item."""
PLAIN_VIEW = (
    "(substr(pk, 1, 5) = 'USER#' AND substr(sk, 1, 5) = 'VIEW#' AND length(sk) = 31"
    " AND substr(sk, 6, 1) <= '7' AND substr(sk, 6) NOT GLOB '*[^0-9A-HJKMNP-TV-Z]*'"
    " AND typeof(ttl) = 'integer' AND attributes IS NULL)"
)
"""Matches exactly the correct live views; a ULID has 128 bits."""


NUMBERS = (
    *("count", "watermark", "version", "base", "frozen", "reset", "created", "hot"),
    "milestone",
)
"""The attributes of a summary that are whole numbers from 0."""


class WrongItemError(Exception):
    """An item is wrong. The message says how."""


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
    except (Refused, TypeError, ValueError, RecursionError) as error:
        raise WrongItemError(f"it can't be decoded: {error}") from error
    return item


def kind_of(item: Item) -> str:
    """Return the kind of an item, as docs/architecture.md names it. Raises `WrongItemError`."""
    pk, sk = text(item, "PK"), text(item, "SK")
    for partition, sort, kind, check in KINDS:
        if pk.startswith(partition) and (sk == sort or (sort[-1] == "#" and sk.startswith(sort))):
            try:
                check(item)
            except (TypeError, ValueError, KeyError) as error:
                raise WrongItemError(f"this {kind} is wrong: {error}") from error
            return kind
    raise WrongItemError("vu-mi writes no item with this key")


def _check_badge(item: Item) -> None:
    _check_badge_id(item)
    for name in NUMBERS:
        if number(item, name) < 0:
            raise ValueError(f"its {name} is {item[name]}; it must be 0 or more")
    summary = Summary.of("", item)
    if summary.reset > summary.watermark:
        raise ValueError(f"its reset {summary.reset} is later than its watermark")
    if summary.today.day:
        date.fromisoformat(summary.today.day)


def _check_owner(item: Item) -> None:
    """Check an owner; without a digest, the item has the names of a badge that nobody owns."""
    _check_badge_id(item)
    if "digest" in item or "names" not in item:
        _match(DIGEST, text(item, "digest"), "digest of a secret")


def _check_milestones(item: Item) -> None:
    _check_badge_id(item)
    _match(DIGEST, text(item, "owner"), "digest of a secret")
    for milestone in Milestones.of("", item).milestones:
        if milestone.count < 1 or not milestone.url:
            raise ValueError(f"a milestone needs a count from 1 and a url, not {milestone}")


def _check_search(item: Item) -> None:
    if number(item, "at") > number(item, "ttl"):
        raise ValueError(f"its time {item['at']} is later than its ttl")


def _check_day(item: Item) -> None:
    _check_badge_id(item)
    date.fromisoformat(text(item, "SK").removeprefix(keys.DAY))
    views, day = number(item, "views"), Day.of("", item)
    if min([views, *day.hours.values()]) < 0:
        raise ValueError("it has a number less than 0")
    if day.views != views:
        raise ValueError(f"it has {views} views, but its hours have {day.views}")
    number(item, "version")
    number(item, "reset")


def _check_view(item: Item) -> None:
    _check_badge_id(item)
    _check_ulid(text(item, "SK").removeprefix(keys.VIEW))
    number(item, "ttl")


def _check_seen(item: Item) -> None:
    _check_ulid(text(item, "PK").split("#")[1])


def _check_marker(item: Item) -> None:
    _, mark, badge_id = text(item, "PK").split("#", 2)
    int(mark)
    if badge_id != text(item, "badge"):
        raise ValueError(f"its key names {badge_id!r}, but its badge is {item.get('badge')!r}")


def _check_event(item: Item) -> None:
    event = Event.of(item)
    _match(events.ID, event.event_id, "id")
    if item["batch"] != events.batch(event.status, event.event_id):
        raise ValueError(f"its status is {event.status}, but its batch is {item['batch']!r}")
    number(item, "due")


def _check_token(item: Item) -> None:
    token = StoredToken.of(item)
    _match(DIGEST, token.digest, "digest of a token")
    _match(NAME, token.name, "name of a token")
    if token.item != item:
        raise ValueError("its attributes are not those of a token")


def _check_sweep(item: Item) -> None:
    number(item, "swept")


def _check_wallet(item: Item) -> None:
    _match(wallets.ID, text(item, "PK").removeprefix(wallets.PARTITION), "id")
    balance = item["balance"]
    if not isinstance(balance, int) or not 0 <= balance <= MAX_BALANCE:
        raise ValueError(f"its balance is {balance}; it must be 0 to {MAX_BALANCE}")
    text(item, "user")


def _check_entry(item: Item) -> None:
    wallet_id = text(item, "PK").removeprefix(wallets.PARTITION)
    entry = Entry.of(item)
    _match(wallets.ID, entry.entry_id, "id")
    if wallet_id not in entry.posting.wallets:
        raise ValueError("its posting is between other wallets")
    if not 0 < entry.posting.amount <= MAX_BALANCE:
        raise ValueError(f"its amount is {entry.posting.amount}; it must be 1 to {MAX_BALANCE}")


def _check_nonce(item: Item) -> None:
    _match(wallets.ID, text(item, "entry"), "id of an entry")
    _match(DIGEST, text(item, "request"), "digest of a request")
    PostingOutcome(text(item, "outcome"))
    if "ttl" in item:
        raise ValueError("it has a ttl, but a nonce is kept forever")


def _check_wallet_of_a_user(item: Item) -> None:
    _match(wallets.ID, text(item, "wallet"), "id of a wallet")


KINDS: tuple[tuple[str, str, str, Callable[[Item], None]], ...] = (
    (keys.PARTITION, keys.SUMMARY, "badge", _check_badge),
    (keys.PARTITION, keys.OWNER, "owner", _check_owner),
    (keys.PARTITION, keys.MILESTONES, "milestones", _check_milestones),
    (keys.PARTITION, keys.DAY, "day", _check_day),
    (keys.PARTITION, keys.VIEW, "view", _check_view),
    (keys.SEEN, keys.SEEN, "counted view", _check_seen),
    (proving.PARTITION, proving.SORT, "search for a proof", _check_search),
    (keys.WINDOW, keys.WINDOW, "window", _check_marker),
    (events.PARTITION, events.SORT, "event", _check_event),
    (CURSOR.pk, CURSOR.sk, "sweep", _check_sweep),
    (authentication.PARTITION, authentication.SORT, "token", _check_token),
    (wallets.PARTITION, wallets.SORT, "wallet", _check_wallet),
    (wallets.PARTITION, wallets.ENTRY, "entry", _check_entry),
    (wallets.PARTITION, wallets.NONCE, "nonce", _check_nonce),
    (wallets.OWNERS, wallets.SORT, "wallet of a user", _check_wallet_of_a_user),
)
"""The start of both keys, the kind of item, and its check."""


def _check_badge_id(item: Item) -> None:
    badge_id = text(item, "PK").removeprefix(keys.PARTITION)
    if ids.normalise(badge_id) != badge_id:
        raise ValueError("its id is not normalised")


def _check_ulid(ulid: str) -> None:
    milliseconds(ulid)


def _match(pattern: re.Pattern[str], text: str, name: str) -> None:
    if pattern.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a valid {name}")


def format_counts(kinds: Counter[str]) -> str:
    """Format the number of items of each kind."""
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items())) or "none"
