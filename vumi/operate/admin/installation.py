"""The installation that a command works on: the file of one machine, or a stack on AWS.

`vumi.operate.installations` has both. An export takes the items of an installation in groups. A
group is all that moves of one badge, wallet, event or token. Its head comes first: the summary of a
badge, or the item of a wallet, event or token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeVar

from chalicelib.storage.items import Item
from chalicelib.storage.retry import Retry
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from chalicelib.concurrency import MapParallel
    from chalicelib.counting.view import Counting
    from chalicelib.settings import Settings
    from chalicelib.storage.ports import Archive, Queue, Table
    from vumi.journals import ArchivedObject
    from vumi.operate.admin.overview import BadgeOverview


Given = TypeVar("Given")
Result = TypeVar("Result")

BATCH = 100
PATIENCE = Retry(attempts=12, base=0.2, cap=10.0, budget=60.0)
"""Longer than the table's own retries, because no visitor waits for a command."""


class LetterOutcome(Enum):
    """The outcome of one dead letter; its value is printed for the operator."""

    SENT = "sent again"
    TOO_OLD = "kept: too old, so the view may have been counted"
    MALFORMED = "kept: not a view"


@dataclass(frozen=True, slots=True)
class Group:
    """The head of a group and its other items; a large group reads them as they are needed."""

    head: Item
    rest: Iterable[Item] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """The content of an installation, as an export reads it. Reading it raises `StorageError`.

    Each group comes once, and is of one moment. `objects` are the names and contents of those of
    the archive, and `queued_events` the queue and the body of each event that the operator has not
    received yet. `left_out`, complete after all was read, says what could not be exported.
    """

    engine: str
    groups: Iterator[Group]
    objects: Iterable[tuple[str, bytes]] = ()
    queued_events: Iterable[tuple[str, str]] = ()
    left_out: Sequence[str] = ()


def batched(items: Iterable[Given], size: int) -> Iterator[list[Given]]:
    """Yield lists of so many items; the last one may be shorter."""
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def map_patiently(
    function: Callable[[Given], Result],
    given: Iterable[Given],
    map_parallel: MapParallel,
    patience: Retry = PATIENCE,
) -> Iterator[Result]:
    """Yield the results in order. If storage is unavailable, a batch is tried again for a minute.

    Raises `StorageError`; the results before it were yielded then.
    """
    for batch in batched(given, BATCH):
        yield from patience.call(lambda: list(map_parallel(function, batch)))  # noqa: B023  called now


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
        """Yield the objects of the archive with entries of a day (UTC) and later.

        Those of the file begin with one for each entry that has left the table and waits to be
        archived. On a stack, such entries are in the stream, for some minutes.
        """

    def viewed_ids(self) -> Iterator[str]:
        """Yield the ids that views are stored under; an id may come twice."""

    def redrive_views(self) -> Counter[LetterOutcome]:
        """Send the dead letters of views again; return the number of letters by outcome."""
