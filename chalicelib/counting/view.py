"""A view, and the windows of time that decide when it is stored, counted and removed.

The GET makes a view, and a message of the views queue carries it. One window, and the ages at which
`put_views` decides (window 300 s, grace 600 s):

    view       mark                      mark + grace
    |----------|-------------------------|------------> time
               the marker of the window  TTL removes the marker, the watermark moves to the mark

    age of a view   0 .. grace / 2   .. 1.5 * grace ..
                    young: stored    |  wait          | old: counted at once

A young view is stored before its window's marker ends, because the sum of grace / 2, the longest
run of `put_views` and the difference of two clocks is less than the grace. The gap between young
and old is longer than a run of `put_views`, so two deliveries of a message never take both ways.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from chalicelib.concurrency import MapParallel
from chalicelib.counting import ids, keys
from chalicelib.resources import Resources
from chalicelib.settings import Settings
from chalicelib.storage.items import Item
from chalicelib.storage.messages import MalformedError
from chalicelib.storage.ports import Message, Queue, Table
from chalicelib.ulids import milliseconds
from chalicelib.units import Milliseconds, Seconds, WholeSeconds

if TYPE_CHECKING:
    from chalicelib.outgoing.webhooks import WebhookSchedule

MESSAGE_SCHEMA = '{"id": text, "view": ULID, "first": boolean, "hot": boolean, "fold": boolean}'
YOUNG = 0.5
"""A view is stored up to this share of the grace."""
OLD = 1.5
"""A view is counted at once from this share of the grace on."""


class View(NamedTuple):
    """One view of a badge.

    `ulid` identifies the view and has its time. `first` asks for the marker of the view's window,
    `hot` asks to count the view at once, and `fold` asks to fold the badge. `unmarked` asks
    to count it at once without a marker, because it is in the commit of its request: it can't come
    again.
    """

    badge_id: str
    ulid: str
    first: bool = True
    hot: bool = False
    fold: bool = False
    unmarked: bool = False

    @property
    def milliseconds(self) -> Milliseconds:
        return milliseconds(self.ulid)

    def to_message(self) -> str:
        body = {"id": self.badge_id, "view": self.ulid, "first": self.first, "hot": self.hot}
        return json.dumps(body | ({"fold": True} if self.fold else {}))

    @classmethod
    def from_message(cls, body: object) -> View:
        """Return the view that a message carries. Raises `MalformedError`."""
        try:
            fields = json.loads(body)  # type: ignore[arg-type]
            flags = fields["first"], fields["hot"], fields.get("fold", False)
            view = cls(fields["id"], fields["view"], *flags)
            view._check(flags)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise MalformedError(f"expected {MESSAGE_SCHEMA}: {error!r}") from error
        return view

    def _check(self, flags: tuple[object, ...]) -> None:
        if ids.normalise(self.badge_id) != self.badge_id:
            raise ValueError(f"id {self.badge_id!r} is not normalised")
        if not all(isinstance(flag, bool) for flag in flags):
            raise ValueError(f"first, hot and fold are true or false, not {flags}")
        milliseconds(self.ulid)


class ViewQueue(Protocol):
    """A queue that carries views from the request to `store_views`, each at least once."""

    def send(self, *views: View) -> None:
        """Enqueue the views of a request.

        Raises `StorageError`; each of the views may be in the queue nevertheless.
        """


@dataclass(frozen=True, slots=True)
class ViewMessages:
    """A `ViewQueue` that sends each view as a message of a queue, up to ten in one call."""

    queue: Queue

    def send(self, *views: View) -> None:
        if len(views) == 1:
            self.queue.send(views[0].to_message())
        else:
            self.queue.send_all([Message(view.to_message()) for view in views])


def ulid_in(body: object) -> str:
    """Return the ULID of the view that a message carries, empty for a malformed message."""
    try:
        return View.from_message(body).ulid
    except MalformedError:
        return ""


class Windows(NamedTuple):
    """The lengths of windows, of the grace and of the retention."""

    window: WholeSeconds = 300
    grace: WholeSeconds = 600
    retention: WholeSeconds = 15 * 86_400

    @classmethod
    def of(cls, settings: Settings) -> Windows:
        return _windows(
            settings.view_window_seconds, settings.grace_seconds, settings.retention_seconds
        )

    def mark(self, milliseconds: Milliseconds) -> WholeSeconds:
        """Return the mark that ends the window of a time."""
        return (milliseconds // 1000 // self.window + 1) * self.window

    def foldable(self, now: Seconds) -> WholeSeconds:
        """Return the last mark that is at least the grace ago."""
        return int((now - self.grace) // self.window) * self.window

    def is_young(self, milliseconds: Milliseconds, now: Seconds) -> bool:
        return now - milliseconds / 1000 <= YOUNG * self.grace

    def is_old(self, milliseconds: Milliseconds, now: Seconds) -> bool:
        """Return whether a view of a time is old enough to be counted at once."""
        return now - milliseconds / 1000 >= OLD * self.grace

    def marker_ttl(self, mark: WholeSeconds) -> WholeSeconds:
        return mark + self.grace

    def view_ttl(self, milliseconds: Milliseconds) -> WholeSeconds:
        """Return the TTL of a view, which is on a mark if `retention` is a number of windows."""
        return self.mark(milliseconds) + self.retention


_windows = cache(Windows)


def view_item(badge_id: str, ulid: str, ttl: WholeSeconds) -> Item:
    """Return the item of a view, whose key is `keys.view`."""
    return {"PK": keys.partition(badge_id), "SK": keys.VIEW + ulid, "ttl": ttl}


def marker_item(badge_id: str, mark: WholeSeconds, ttl: WholeSeconds) -> Item:
    """Return the marker of a badge's window."""
    return keys.marker(badge_id, mark).item(badge=badge_id, ttl=ttl)


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
