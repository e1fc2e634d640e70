"""The lines of an export: its items, engine-neutral, as docs/export-format.md describes them.

A line has the kind of its item as `type`, the parts of its key under their names, and all other
attributes as they are stored. So every engine writes and reads the same lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn

from chalicelib.counting import keys
from chalicelib.counting.summary import HOUR_OF
from chalicelib.events import event as events
from chalicelib.events.sweep import CURSOR
from chalicelib.http import authentication
from chalicelib.owners import proving
from chalicelib.settings import Settings
from chalicelib.storage.items import Item, Value, text
from chalicelib.units import Seconds
from chalicelib.wallets import wallet as wallets
from vumi.errors import ReportedError

FORMAT = "vu-mi export"
VERSION = 1
"""The version of the format. A reader refuses a later one."""
HEADER, END, OBJECT, QUEUED_EVENT = "header", "end", "object", "queued event"
"""The types of lines that are not items."""
SETTINGS = ("view_window_seconds", "grace_seconds", "retention_seconds")
"""The settings that a header names, so that a reader knows how the counts were made."""


class WrongLineError(ReportedError):
    """A line is not one of an export. The message says why."""


@dataclass(frozen=True, slots=True)
class ItemKind:
    """A kind of items: the beginnings of both keys, and the names of the parts of its key.

    The sort key of a kind with two names has the second part.
    """

    name: str
    partition: str
    sort: str
    names: tuple[str, ...]

    def to_line(self, item: Item) -> dict[str, Value]:
        """Return the line of an item. Raises `WrongLineError`."""
        rest = {**item}
        parts = str(rest.pop("PK"))[len(self.partition) :], str(rest.pop("SK"))[len(self.sort) :]
        self._check_known(parts[0], rest)
        return {"type": self.name, **dict(zip(self.names, parts, strict=False)), **rest}

    def to_item(self, line: Mapping[str, Value]) -> Item:
        """Return the item of a line. Raises `WrongLineError`."""
        parts = [line.get(name) for name in self.names]
        if not all(isinstance(part, str) and part for part in parts):
            raise WrongLineError(f"a {self.name} needs the texts {' and '.join(self.names)}")
        pk, sk, *_ = *map(str, parts), ""
        rest = {name: line[name] for name in line if name not in {"type", *self.names}}
        self._check_known(pk, rest)
        return {"PK": self.partition + pk, "SK": self.sort + sk, **rest}

    def _check_known(self, item_id: str, attributes: Iterable[str]) -> None:
        known = ATTRIBUTES[self.name]
        if unknown := {*attributes} - {*known.split()}:
            raise WrongLineError(f"the {self.name} {item_id} has {min(unknown)!r}; known: {known}")


BADGE = ItemKind("badge", keys.PARTITION, keys.SUMMARY, ("id",))
OWNER = ItemKind("owner", keys.PARTITION, keys.OWNER, ("id",))
MILESTONES = ItemKind("milestones", keys.PARTITION, keys.MILESTONES, ("id",))
DAY = ItemKind("day", keys.PARTITION, keys.DAY, ("id", "day"))
VIEW = ItemKind("view", keys.PARTITION, keys.VIEW, ("id", "view"))
EVENT = ItemKind("event", events.PARTITION, events.SORT, ("id",))
TOKEN = ItemKind("token", authentication.PARTITION, authentication.SORT, ("digest",))
WALLET = ItemKind("wallet", wallets.PARTITION, wallets.SORT, ("id",))
NONCE = ItemKind("nonce", wallets.PARTITION, wallets.NONCE, ("wallet", "nonce"))
ENTRY = ItemKind("entry", wallets.PARTITION, wallets.ENTRY, ("wallet", "entry"))
KINDS = {
    kind.name: kind
    for kind in (BADGE, OWNER, MILESTONES, DAY, VIEW, EVENT, TOKEN, WALLET, NONCE, ENTRY)
}
ATTRIBUTES = {
    "badge": "alias base count created deleted frozen hot milestone reset today ttl version"
    " watermark",
    "owner": "created digest earlier granted names previous proven",
    "milestones": "milestones owner sent set_at",
    "day": " ".join(["reset", "version", "views", *HOUR_OF]),
    "view": "ttl",
    "event": "address at attempts batch claim created due kind lease next_at payload request round"
    " status tries ttl",
    "token": "batch created due name role user",
    "wallet": "balance created last public user",
    "nonce": "at balance entry outcome request",
    "entry": "amount at from kind nonce to ttl",
}
"""The attributes of each kind but its key. No other name can replace the key or enter an index."""
HEADS = (BADGE, EVENT, TOKEN, WALLET)
"""The kinds that begin a group. The other items of a group have the same partition key."""
STAYING = {
    (f"{keys.SEEN}#", keys.SEEN): "a counted view's message does not move",
    (f"{keys.WINDOW}#", keys.WINDOW): "an import makes the markers of live views",
    (proving.PARTITION, proving.SORT): "a search for a proof is repeated after seconds",
    (CURSOR.pk, CURSOR.sk): "each engine has its own sweep",
    (wallets.OWNERS, wallets.SORT): "an import makes it from the wallet's user",
}
"""The beginnings of both keys of the items that an export leaves out, each with the reason."""
ENCODER = json.JSONEncoder(separators=(",", ":"))
_BY_KEY = {(kind.partition, kind.sort): kind for kind in KINDS.values()}


def kind_of(item: Item) -> ItemKind | None:
    """Return the kind of an item, or None if it stays. Raises `WrongLineError`."""
    start = _start(text(item, "PK")), _start(text(item, "SK"))
    if kind := _BY_KEY.get(start):
        return kind
    if start in STAYING:
        return None
    raise WrongLineError(
        f"the item {text(item, 'PK')} {text(item, 'SK')} has no kind that this program knows:"
        " export with the program that wrote it"
    )


def moving_kind_of(item: Item) -> ItemKind:
    """Return the kind of an item of a group. Raises `WrongLineError`."""
    if kind := kind_of(item):
        return kind
    raise WrongLineError(f"the item {text(item, 'PK')} {text(item, 'SK')} is of no group")


def _start(key: str) -> str:
    start, separator, _ = key.partition("#")
    return start + separator


def item_of(line: Mapping[str, Value]) -> tuple[ItemKind, Item]:
    """Return the item of a line and its kind. Raises `WrongLineError`."""
    kind = KINDS.get(str(line.get("type")))
    if kind is None:
        raise WrongLineError(f"its type {line.get('type')!r} is unknown; use a newer vu-mi")
    return kind, kind.to_item(line)


def header(engine: str, settings: Settings, now: Seconds) -> dict[str, Any]:
    """Return the first line of an export."""
    return {
        "type": HEADER,
        "format": FORMAT,
        "version": VERSION,
        "exported_at": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "engine": engine,
        "settings": {name: getattr(settings, name) for name in SETTINGS},
    }


def check_header(line: Mapping[str, Any]) -> None:
    """Raise `WrongLineError` unless a line begins an export that this program reads."""
    if line.get("format") != FORMAT:
        raise WrongLineError(f"it is not a {FORMAT}: its first line has no such format")
    version = line.get("version")
    if not isinstance(version, int) or version < 1:
        raise WrongLineError(f"its version is {version!r}, not a whole number")
    if version > VERSION:
        raise WrongLineError(
            f"it has version {version} of the format, and this program reads {VERSION}: use a"
            " newer vu-mi"
        )


def encode(line: Mapping[str, Any]) -> bytes:
    """Encode a line as ASCII, so that every text survives, also one that UTF-8 can't hold."""
    return ENCODER.encode(line).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Decode a line. Raises `WrongLineError`."""
    try:
        decoded = json.loads(line, parse_float=_refuse_number, parse_constant=_refuse_number)
    except (ValueError, RecursionError) as error:
        raise WrongLineError(f"it is not JSON: {error}") from error
    if not isinstance(decoded, dict) or not isinstance(decoded.get("type", ""), str):
        raise WrongLineError("it is not a JSON object whose type is a text")
    return decoded


def _refuse_number(number: str) -> NoReturn:
    raise WrongLineError(f"its number {number} is not whole")
