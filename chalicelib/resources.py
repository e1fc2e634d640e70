"""The resources that every route may use, and the ports of limits, room and bans among them.

A feature that needs more has a protocol of its own. `api.ProcessResources` has those of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, IntEnum, auto
from typing import Protocol

from chalicelib.settings import Settings
from chalicelib.storage.ports import Table
from chalicelib.units import Seconds


class Action(Enum):
    """An action of a client that a limit counts."""

    __hash__ = object.__hash__  # that of an enumeration is a function in Python

    NEW_ID = auto()
    """The first view of an id, which creates a badge."""
    NEW_ID_A_DAY = auto()
    """The same, within a day."""
    CLAIM = auto()
    """A request to own a badge, or to give it another name or milestones."""
    CHANGE = auto()
    """A request that changes a badge by its secret, which is a line in the log."""
    PROOF = auto()
    """A request to prove the ownership of a badge, which may fetch a file from another host."""
    REQUEST = auto()
    """Any request."""


class Room(IntEnum):
    """The room that an engine has: for counts alone, for views of known ids too, or for all."""

    COUNTS = 0
    VIEWS = 1
    ALL = 2


class Limits(Protocol):
    """The limits of an engine. A client is the text of an address; nobody limits an empty one."""

    def wait(self, action: Action, client: str) -> Seconds:
        """Count an action and return 0, or return the time until the client may do it."""

    def left(self) -> Mapping[str, int]:
        """Return the actions that the client with the fewest has left, of each limit."""


class NoLimits:
    """The limits of an engine that limits no client."""

    def wait(self, action: Action, client: str) -> Seconds:  # noqa: ARG002  the port's
        return 0.0

    def left(self) -> Mapping[str, int]:
        return {}


class Quota(Protocol):
    """The number of badges in all, of which an engine may take only so many."""

    def admit(self) -> bool:
        """Add a new badge, or return that there is no place for it."""


class Bans(Protocol):
    """The bans of an engine: the patterns of ids that are neither counted nor shown."""

    def cover(self, badge_id: str) -> bool:
        """Return whether an id is banned."""

    def forget(self) -> None:
        """Read the bans again for the next request, because one was set or lifted."""


class Resources(Protocol):
    """The settings, clocks, limits and table of a process.

    `view_clock` is the clock of views, which on one machine never goes back. On AWS, `limits`
    limits nobody, there is always `room`, and no `quota`.
    """

    @property
    def settings(self) -> Settings: ...
    @property
    def clock(self) -> Callable[[], Seconds]: ...
    @property
    def view_clock(self) -> Callable[[], Seconds]: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def room(self) -> Callable[[], Room]: ...
    @property
    def quota(self) -> Quota | None: ...
    @property
    def bans(self) -> Bans: ...
    @property
    def table(self) -> Table: ...
