"""What views are counted with: a table, the windows and a clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from chalicelib.concurrency import MapParallel
from chalicelib.counting.windows import Windows
from chalicelib.resources import Resources
from chalicelib.storage.ports import Table
from chalicelib.units import Seconds, WholeSeconds

if TYPE_CHECKING:
    from chalicelib.outgoing.webhooks import WebhookSchedule


class CountingResources(Resources, Protocol):
    """The resources of the consumers of views. `webhooks` is None if events are off."""

    @property
    def map_parallel(self) -> MapParallel: ...
    @property
    def webhooks(self) -> WebhookSchedule | None: ...


@dataclass(frozen=True, slots=True)
class Counting:
    """The table, windows and clock by which views are stored, counted and folded.

    `map_parallel` counts badges. Without `webhooks`, the milestones that a badge reaches are left
    to the next write of its count.
    """

    table: Table
    windows: Windows
    clock: Callable[[], Seconds]
    map_parallel: MapParallel = map
    webhooks: WebhookSchedule | None = None

    @classmethod
    def of(cls, resources: CountingResources) -> Counting:
        return cls(
            resources.table,
            Windows.of(resources.settings),
            resources.view_clock,
            resources.map_parallel,
            resources.webhooks,
        )

    def foldable(self) -> WholeSeconds:
        """Return the last mark that is at least the grace ago."""
        return self.windows.foldable(self.clock())
