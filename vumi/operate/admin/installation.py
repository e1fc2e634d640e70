"""The installation that a command works on: the file of one machine, or a stack on AWS.

`vumi.operate.installations` has both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from chalicelib.units import Seconds

if TYPE_CHECKING:
    from chalicelib.concurrency import MapParallel
    from chalicelib.counting.resources import Counting
    from chalicelib.settings import Settings
    from chalicelib.storage.items import Item
    from chalicelib.storage.ports import Archive, Queue, Table
    from vumi.journals import ArchivedObject
    from vumi.operate.admin.overview import BadgeOverview
    from vumi.operate.admin.source import Source


class LetterOutcome(Enum):
    """The outcome of one dead letter; its value is printed for the operator."""

    SENT = "sent again"
    TOO_OLD = "kept: too old, so the view may have been counted"
    MALFORMED = "kept: not a view"


class Installation(Protocol):
    """The table, the queues and the archive of an installation, and its settings.

    `map_parallel` works on independent parts of a batch. `view_clock` is the clock of views; on one
    machine it never goes back.
    """

    @property
    def settings(self) -> Settings: ...
    @property
    def table(self) -> Table: ...
    @property
    def archive(self) -> Archive: ...
    @property
    def views_queue(self) -> Queue: ...
    @property
    def delivery_queue(self) -> Queue:
        """Return the queue of events to deliver. Raises `ReportedError` if events are off."""

    @property
    def map_parallel(self) -> MapParallel: ...
    @property
    def clock(self) -> Callable[[], Seconds]: ...
    @property
    def view_clock(self) -> Callable[[], Seconds]: ...
    def keep_view_time(self, at: Seconds) -> None:
        """Raise the clock of views to a time, on one machine."""

    @property
    def counting(self) -> Counting:
        """Return the table, windows and clock of a fold of badges."""

    def event_queue(self, name: str) -> Queue | None:
        """Return the queue for events that EVENT_QUEUES has under this name."""

    def open_source(self) -> AbstractContextManager[Source]:
        """Open the content for an export."""

    def items(self) -> Iterator[Item]:
        """Yield all items; those of a partition come together, in the order of their sort keys.

        Those of the file are of one moment, in the order of their keys. Those of a stack are read
        in pages, while others may write.
        """

    def badges(self, now: Seconds) -> Iterator[BadgeOverview]:
        """Yield the numbers of all badges, each as of one moment, in any order.

        The file is read in short queries. A stack is scanned: see docs/monitoring.md for the cost.
        """

    def archived(self, since: date | None = None) -> Iterator[ArchivedObject]:
        """Yield the objects of the archive with entries of a day (UTC) and later."""

    def removed_entries(self, wallet_id: str) -> Iterator[Item]:
        """Yield entries of a wallet that are neither in the table nor yet in the archive.

        Only the file has them; on a stack they are in the stream, for some minutes.
        """

    def viewed_ids(self) -> Iterator[str]:
        """Yield the ids that views are stored under; an id may come twice."""

    def redrive_views(self) -> Counter[LetterOutcome]:
        """Send the dead letters of views again; return the number of letters by outcome."""
