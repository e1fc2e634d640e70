"""The bans: patterns of ids that an operator does not count, and whose numbers nobody is told.

The numbers of a banned badge stay, and are shown again when the ban is lifted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass

from chalicelib import telemetry
from chalicelib.counting.ids import Patterns
from chalicelib.http.errors import ClientError
from chalicelib.storage.conditions import attr
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Item, Key, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailedError, Delete, Put
from chalicelib.units import Milliseconds, Seconds, WholeSeconds

PARTITION = "BANS"
SORT = "BAN#"
MAX_BANS = 1_000
ALL = 10 * MAX_BANS
"""An import may add to the bans that are there already."""
MAX_REASON = 200
READ_SECONDS: WholeSeconds = 60
"""A function on AWS reads the bans again after this time."""
RETRY_SECONDS: WholeSeconds = 5
"""Bans that could not be read are read again after this time; those read before hold meanwhile."""


class TooManyBansError(ClientError):
    """There are as many bans as a server takes."""

    status = 409
    code = "too_many_bans"


@dataclass(frozen=True, slots=True)
class Ban:
    """A ban of the ids that match a pattern, by the name of a token or of a command."""

    pattern: str
    reason: str
    by: str
    at: Milliseconds

    @classmethod
    def of(cls, item: Item) -> Ban:
        """Return the ban of an item. Raises `ValueError`."""
        pattern = text(item, "SK").removeprefix(SORT)
        return cls(pattern, text(item, "reason"), text(item, "by"), number(item, "at"))

    @property
    def item(self) -> Item:
        given = asdict(self)
        return key(given.pop("pattern")).item(**given)


def key(pattern: str) -> Key:
    """Return the key of a ban."""
    return Key(PARTITION, SORT + pattern)


def read_all(table: Table) -> list[Ban]:
    """Return all bans by pattern. Raises `StorageError`."""
    return [Ban.of(item) for item in table.query(PARTITION, limit=ALL)]


def put(table: Table, ban: Ban) -> None:
    """Ban, or replace the ban of the same pattern. Raises `TooManyBansError`."""
    others = [other for other in read_all(table) if other.pattern != ban.pattern]
    if len(others) >= MAX_BANS:
        raise TooManyBansError(f"there are {MAX_BANS:,} bans already: lift one, or use a * in one")
    table.write(Put(ban.item))


def lift(table: Table, pattern: str) -> bool:
    """Lift a ban; return whether there was one. Raises `StorageError`."""
    try:
        table.write(Delete(key(pattern), attr("SK").exists()))
    except ConditionFailedError:
        return False
    return True


def read_patterns(table: Table) -> Patterns:
    """Return the patterns of all bans. Raises `StorageError`."""
    items = table.query(PARTITION, limit=ALL, attributes=("SK",))
    return Patterns(text(item, "SK").removeprefix(SORT) for item in items)


class TimedBans:
    """The bans of a table that other processes change: read again after a minute."""

    def __init__(self, table: Callable[[], Table], clock: Callable[[], Seconds]) -> None:
        self._table, self._clock = table, clock
        self._patterns, self._next_read = Patterns(), 0.0

    def cover(self, badge_id: str) -> bool:
        """Return whether an id is banned. A view is not lost because bans can't be read."""
        if (now := self._clock()) >= self._next_read:
            try:
                self._patterns = read_patterns(self._table())
                self._next_read = now + READ_SECONDS
            except StorageError as error:
                telemetry.event(logging.WARNING, "bans_not_read", reason=str(error))
                self._next_read = now + RETRY_SECONDS
        return self._patterns.cover(badge_id)

    def forget(self) -> None:
        """Read the bans again for the next request of this process."""
        self._next_read = 0.0
