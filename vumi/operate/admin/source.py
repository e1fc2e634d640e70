"""The items that an export takes from an installation, in groups.

A group is all that moves of one badge, wallet, event or token. Its head comes first: the summary of
a badge, or the item of a wallet, event or token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from chalicelib.counting import keys
from chalicelib.counting.summary import Summary
from chalicelib.storage.items import Item, Key, key_of, text
from chalicelib.ulids import TIME_CHARACTERS, earliest, latest, milliseconds
from chalicelib.units import Milliseconds


@dataclass(frozen=True, slots=True)
class Group:
    """The head of a group and its other items; a large group reads them as they are needed."""

    head: Item
    rest: Iterable[Item] = ()

    @property
    def key(self) -> Key:
        """Return the key of the head."""
        return key_of(self.head)


class Source(Protocol):
    """The content of an installation, as an export reads it. Every method raises `StorageError`."""

    @property
    def engine(self) -> str:
        """Return the name of the engine, for the header."""

    def groups(self) -> Iterator[Group]:
        """Yield the groups, each once, and each of one moment."""

    def objects(self) -> Iterable[tuple[str, bytes]]:
        """Return the name and the content of each object of the archive."""

    def queued_events(self) -> Iterable[tuple[str, str]]:
        """Return the queue and the body of each event that the operator has not received yet."""

    def left_out(self) -> Sequence[str]:
        """Return what could not be exported, for the operator, after all was read."""


def new_summary(badge_id: str, first: str) -> Item:
    """Return the head of a badge without a summary; `first` is the ULID of its first view."""
    key = keys.summary(badge_id)
    return {"PK": key.pk, "SK": key.sk, "created": milliseconds(first) // 1000 if first else 0}


def is_live(item: Item, summary: Summary) -> bool:
    """Return whether a view is later than the watermark, so that it is not in the count."""
    return text(item, "SK") > keys.VIEW + latest(summary.watermark)


def later(ulid: str, watermark: Milliseconds) -> str:
    """Return a ULID with the same random part that is later than a watermark, and not earlier."""
    return max(ulid, earliest(watermark + 1)[:TIME_CHARACTERS] + ulid[TIME_CHARACTERS:])
