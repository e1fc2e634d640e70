"""The kinds of items: their keys, their attributes, their form, and whether an export has them.

An item of an export is a line. It has the kind as `type`, the parts of its key under their names,
and all other attributes as they are stored. So every engine writes and reads the same lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial

from chalicelib.counting import bans, ids, keys
from chalicelib.counting.bans import Ban
from chalicelib.counting.milestones import Milestones
from chalicelib.counting.summary import HOUR_OF, Day, Summary
from chalicelib.events import event as events
from chalicelib.events.event import Event
from chalicelib.events.sweep import CURSOR
from chalicelib.history import github
from chalicelib.http import authentication
from chalicelib.owners import proving
from chalicelib.settings import DIGEST
from chalicelib.storage.items import Item, Value, number, text
from chalicelib.ulids import milliseconds
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.wallet import MAX_BALANCE, Entry, PostingOutcome
from vumi.errors import ReportedError, plural
from vumi.tokens import NAME, StoredToken

NUMBERS = (
    *("count", "watermark", "version", "base", "frozen", "reset", "created", "hot"),
    "milestone",
)
"""The attributes of a summary that are whole numbers from 0."""


class WrongItemError(Exception):
    """An item is wrong. The message says how."""


@dataclass(frozen=True, slots=True)
class ItemKind:
    """A kind of items: its name, the beginnings of both keys, and the check of its form.

    An export has it if the parts of its key have `names`; the sort key of a kind with two names has
    the second part. `attributes` are all but the key: no other name can replace the key of an item
    or enter an index.
    """

    name: str
    partition: str
    sort: str
    check: Callable[[Item], object]
    names: tuple[str, ...] = ()
    attributes: str = ""

    @property
    def is_alone(self) -> bool:
        """Return whether all items of the kind are in one partition, each a group of its own."""
        return not self.partition.endswith("#")

    def group_of(self, item: Item) -> str:
        """Return the key of an item's group: that of its partition, or its own."""
        return text(item, "SK") if self.is_alone else text(item, "PK")

    def to_line(self, item: Item) -> dict[str, Value]:
        """Return the line of an item. Raises `ReportedError`."""
        rest = {**item}
        parts = str(rest.pop("PK"))[len(self.partition) :], str(rest.pop("SK"))[len(self.sort) :]
        named = parts[1:] if self.is_alone else parts
        self._check_known(named[0], rest)
        return {"type": self.name, **dict(zip(self.names, named, strict=False)), **rest}

    def to_item(self, line: Mapping[str, Value]) -> Item:
        """Return the item of a line. Raises `ReportedError`."""
        parts = [line.get(name) for name in self.names]
        if not all(isinstance(part, str) and part for part in parts):
            raise ReportedError(f"a {self.name} needs the texts {' and '.join(self.names)}")
        pk, sk, *_ = *[""] * self.is_alone, *map(str, parts), ""
        rest = {name: line[name] for name in line if name not in {"type", *self.names}}
        self._check_known(pk, rest)
        return {"PK": self.partition + pk, "SK": self.sort + sk, **rest}

    def _check_known(self, item_id: str, attributes: Iterable[str]) -> None:
        if unknown := {*attributes} - {*self.attributes.split()}:
            raise ReportedError(
                f"the {self.name} {item_id} has {min(unknown)!r}; known: {self.attributes}"
            )


def kind_of(item: Item) -> ItemKind:
    """Return the kind of an item by its key. Raises `ReportedError`."""
    pk, sk = text(item, "PK"), text(item, "SK")
    kind = _BY_KEY.get((_start(pk), _start(sk)))
    if kind is None:
        raise ReportedError(f"{pk} {sk}: vu-mi writes no item with this key")
    return kind


def _start(key: str) -> str:
    start, separator, _ = key.partition("#")
    return start + separator


def check(item: Item) -> ItemKind:
    """Return the kind of a correct item. Raises `ReportedError` and `WrongItemError`."""
    kind = kind_of(item)
    try:
        if kind.partition == keys.PARTITION:
            _check_badge_id(text(item, "PK").removeprefix(keys.PARTITION))
        kind.check(item)
    except (TypeError, ValueError, KeyError) as error:
        raise WrongItemError(f"this {kind.name} is wrong: {error}") from error
    return kind


def item_of(line: Mapping[str, Value]) -> tuple[ItemKind, Item]:
    """Return the item of a line and its kind. Raises `ReportedError`."""
    kind = MOVING.get(str(line.get("type")))
    if kind is None:
        raise ReportedError(f"its type {line.get('type')!r} is unknown; use a newer vu-mi")
    return kind, kind.to_item(line)


def _check_badge(item: Item) -> None:
    for name in NUMBERS:
        if number(item, name) < 0:
            raise ValueError(f"its {name} is {item[name]}; it must be 0 or more")
    summary = Summary.of("", item)
    if summary.reset > summary.watermark:
        raise ValueError(f"its reset {summary.reset} is later than its watermark")
    if summary.today.day:
        date.fromisoformat(summary.today.day)


def _check_ban(item: Item) -> None:
    ban = Ban.of(item)
    if ids.normalise(ban.pattern) != ban.pattern:
        raise ValueError("its pattern is not normalised")
    if ban.item != item:
        raise ValueError("its attributes are not those of a ban")


def _check_owner(item: Item) -> None:
    """Check an owner; without a digest, the item has the names of a badge that nobody owns."""
    if "digest" in item or "names" not in item:
        _match(DIGEST, text(item, "digest"), "digest of a secret")


def _check_key(item: Item) -> None:
    _match(DIGEST, text(item, "PK").removeprefix(keys.KEY), "digest of a secret")
    _check_badge_id(text(item, "SK").removeprefix(keys.OWNED))


def _check_milestones(item: Item) -> None:
    _match(DIGEST, text(item, "owner"), "digest of a secret")
    for milestone in Milestones.of("", item).milestones:
        if milestone.count < 1 or not milestone.url:
            raise ValueError(f"a milestone needs a count from 1 and a url, not {milestone}")


def _check_search(item: Item) -> None:
    if number(item, "at") > number(item, "ttl"):
        raise ValueError(f"its time {item['at']} is later than its ttl")


def _check_day(item: Item) -> None:
    date.fromisoformat(text(item, "SK").removeprefix(keys.DAY))
    views, day = number(item, "views"), Day.of("", item)
    if min([views, *day.hours.values()]) < 0:
        raise ValueError("it has a number less than 0")
    if day.views != views:
        raise ValueError(f"it has {plural(views, 'view')}, but its hours have {day.views:,}")
    number(item, "version")
    number(item, "reset")


def _check_traffic(item: Item) -> None:
    month, days = text(item, "SK").removeprefix(keys.TRAFFIC), github.decode(item)
    for day in (f"{month}-01", *days, *filter(None, [text(item, "until")])):
        date.fromisoformat(day)
    if any(not day.startswith(month) for day in days):
        raise ValueError(f"it has days of another month than {month}")
    known = [value for numbers in days.values() for value in numbers.values()]
    if min([number(item, "at"), number(item, "visitors"), *known]) < 0:
        raise ValueError("it has a number less than 0")


def _check_view(item: Item) -> None:
    milliseconds(text(item, "SK").removeprefix(keys.VIEW))
    number(item, "ttl")


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


def _check_badge_id(badge_id: str) -> None:
    if ids.normalise(badge_id) != badge_id:
        raise ValueError("its id is not normalised")


def _match(pattern: re.Pattern[str], text: str, name: str) -> None:
    if pattern.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a valid {name}")


BADGE = ItemKind(
    *("badge", keys.PARTITION, keys.SUMMARY, _check_badge, ("id",)),
    "alias base count created deleted frozen hot milestone reset today ttl version watermark",
)
OWNER = ItemKind(
    *("owner", keys.PARTITION, keys.OWNER, _check_owner, ("id",)),
    "created digest earlier granted names previous proven",
)
MILESTONES = ItemKind(
    *("milestones", keys.PARTITION, keys.MILESTONES, _check_milestones, ("id",)),
    "milestones owner sent set_at",
)
DAY = ItemKind(
    *("day", keys.PARTITION, keys.DAY, _check_day, ("id", "day")),
    " ".join(["reset", "version", "views", *HOUR_OF]),
)
TRAFFIC = ItemKind(
    *("traffic", keys.PARTITION, keys.TRAFFIC, _check_traffic, ("id", "month")),
    "at days until visitors",
)
VIEW = ItemKind("view", keys.PARTITION, keys.VIEW, _check_view, ("id", "view"), "ttl")
BAN = ItemKind(*("ban", bans.PARTITION, bans.SORT, _check_ban, ("pattern",)), "at by reason")
EVENT = ItemKind(
    *("event", events.PARTITION, events.SORT, _check_event, ("id",)),
    "address at attempts batch claim created due kind lease next_at payload request round status"
    " tries ttl",
)
TOKEN = ItemKind(
    *("token", authentication.PARTITION, authentication.SORT, _check_token, ("digest",)),
    "batch created due name role user",
)
WALLET = ItemKind(
    *("wallet", wallets.PARTITION, wallets.SORT, _check_wallet, ("id",)),
    "balance created last public user",
)
NONCE = ItemKind(
    *("nonce", wallets.PARTITION, wallets.NONCE, _check_nonce, ("wallet", "nonce")),
    "at balance entry outcome request",
)
ENTRY = ItemKind(
    *("entry", wallets.PARTITION, wallets.ENTRY, _check_entry, ("wallet", "entry")),
    "amount at from kind nonce to ttl",
)
WALLET_OF_A_USER = ItemKind(
    *("wallet of a user", wallets.OWNERS, wallets.SORT),
    lambda item: _match(wallets.ID, text(item, "wallet"), "id of a wallet"),
)
"""An import makes it from the wallet's user."""
BADGE_OF_A_SECRET = ItemKind("badge of a secret", keys.KEY, keys.OWNED, _check_key)
"""An import makes it from the badge's owner."""
STAYING = (
    WALLET_OF_A_USER,
    BADGE_OF_A_SECRET,
    ItemKind(
        *("counted view", f"{keys.SEEN}#", keys.SEEN),
        lambda item: milliseconds(text(item, "PK").split("#")[1]),
    ),
    ItemKind("window", f"{keys.WINDOW}#", keys.WINDOW, _check_marker),  # an import makes it
    ItemKind("search for a proof", proving.PARTITION, proving.SORT, _check_search),
    ItemKind("sweep", CURSOR.pk, CURSOR.sk, partial(number, name="swept")),
)
"""The kinds that an export leaves out: each engine makes them."""
HEADS = (BADGE, BAN, EVENT, TOKEN, WALLET)
"""The kinds that begin a group. The other items of a group have the same partition key."""
MOVING = {
    kind.name: kind
    for kind in (
        *(BADGE, OWNER, MILESTONES, DAY, TRAFFIC, VIEW),
        *(BAN, EVENT, TOKEN, WALLET, NONCE, ENTRY),
    )
}
_BY_KEY = {(kind.partition, kind.sort): kind for kind in (*MOVING.values(), *STAYING)}
