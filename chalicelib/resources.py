"""The resources that every route may use; a feature that needs more has a protocol of its own.

`api.ProcessResources` has those of all features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from chalicelib.limits import Bans, Limits, Quota, Room
from chalicelib.settings import Settings
from chalicelib.storage.ports import Table
from chalicelib.units import Seconds


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
