"""The file of one machine, which a command opens while the server runs or not.

An export has the content that one read transaction sees while others write. It reads a partition
from its last sort key on, so that the summary or the wallet comes first.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date
from functools import cached_property, partial
from io import BytesIO
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from chalicelib.concurrency import MapParallel
from chalicelib.counting import keys
from chalicelib.counting.summary import Summary
from chalicelib.counting.view import Counting, View, Windows
from chalicelib.settings import Settings
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Item
from chalicelib.storage.messages import MalformedError
from chalicelib.ulids import TIME_CHARACTERS, earliest, latest
from chalicelib.units import Seconds
from chalicelib.wallets.archive import EntryRemoval, make_object
from chalicelib.wallets.wallet import ENTRY
from vumi.engine import VIEWS_QUEUE
from vumi.errors import ReportedError
from vumi.folder import refuse_foreign_entries
from vumi.journals import ArchivedObject, in_folder
from vumi.operate.admin import overview
from vumi.operate.admin.installation import Group, LetterOutcome, Source
from vumi.operate.admin.overview import BadgeOverview
from vumi.operate.kinds import BADGE, HEADS, STAYING, VIEW, kind_of
from vumi.resources import EVENT_QUEUE
from vumi.settings import StandaloneSettings
from vumi.storage import archive
from vumi.storage.archive import FolderArchive
from vumi.storage.database import FILE, Database
from vumi.storage.limits import ViewClock
from vumi.storage.private_files import FOLDER_MODE
from vumi.storage.queue import DEAD_LETTERS, SqliteQueue
from vumi.storage.table import ALL_ITEMS, SqliteTable, all_items, fetch, item_of
from vumi.workers.events import DELIVERY_QUEUE, find_queue

ITEMS = f"{ALL_ITEMS} ORDER BY pk DESC, sk DESC"
MESSAGES = "SELECT id, queue, body FROM messages WHERE queue IN (?, ?)"
QUEUED_EVENTS = "SELECT queue, body FROM messages WHERE substr(queue, 1, ?) = ? ORDER BY id"
CHANGES = (
    "SELECT sequence, removed_at, pk, sk, attributes FROM changes"
    " WHERE substr(sk, 1, 3) = ? ORDER BY sequence"
)


class FileSource:
    """The content of a file; the connection has begun a read transaction."""

    def __init__(self, connection: sqlite3.Connection, archive: FolderArchive) -> None:
        self._connection = connection
        self._archive = archive
        self._left_out: list[str] = []
        self._waiting = self._read_waiting()

    @property
    def source(self) -> Source:
        return Source(
            "one machine", self._groups(), self._objects(), self._queued_events(), self._left_out
        )

    def _groups(self) -> Iterator[Group]:
        rows = self._connection.execute(ITEMS)
        for pk, partition in groupby(rows, itemgetter(0)):
            yield from self._read_partition(pk, partition)
        for badge_id in list(self._waiting):
            yield from self._read_badge(badge_id, iter(()))

    def _objects(self) -> Iterator[tuple[str, bytes]]:
        """Yield the objects of the archive, and those of entries that wait to be archived."""
        yield from self._archive.read_all()
        yield from _make_objects(self._connection.execute(CHANGES, (ENTRY,)), self._left_out)

    def _queued_events(self) -> Iterator[tuple[str, str]]:
        queues = len(EVENT_QUEUE), EVENT_QUEUE
        for name, body in self._connection.execute(QUEUED_EVENTS, queues):
            yield name.removeprefix(EVENT_QUEUE).removesuffix(DEAD_LETTERS), body

    def _read_waiting(self) -> defaultdict[str, list[str]]:
        """Return the ULIDs of the views that wait in the queue, by the ids of their badges."""
        waiting: defaultdict[str, list[str]] = defaultdict(list)
        queues = VIEWS_QUEUE, VIEWS_QUEUE + DEAD_LETTERS
        for number, name, body in self._connection.execute(MESSAGES, queues):
            try:
                view = View.from_message(body)
            except MalformedError as error:
                self._left_out.append(f"message {number} of {name}: {error}")
                continue
            waiting[view.badge_id].append(view.ulid)
        return waiting

    def _read_partition(self, pk: str, rows: Iterator[tuple[str, str, str]]) -> Iterator[Group]:
        if pk.startswith(BADGE.partition):
            yield from self._read_badge(pk.removeprefix(BADGE.partition), rows)
            return
        first = next(rows)
        kind = kind_of(item_of(*first))
        if kind in STAYING:
            return
        if kind not in HEADS:
            raise ReportedError(f"{pk} has no item {kind.partition} of its own; run vumi check")
        if kind.is_alone:
            yield from (Group(item_of(*row)) for row in chain([first], rows))
            return
        yield Group(item_of(*first), (item_of(*row) for row in rows))

    def _read_badge(self, badge_id: str, rows: Iterator[tuple[str, str, str]]) -> Iterator[Group]:
        """Yield a badge with its live views, and with its views that wait in the queue."""
        first = next(rows, None)
        has_summary = first is not None and first[1] == keys.SUMMARY
        head = item_of(*first) if first and has_summary else None
        summary = Summary.of(badge_id, head or {})
        views = list(self._find_uncounted(summary, self._waiting.pop(badge_id, [])))
        if head is None and (first or views):
            head = keys.summary(badge_id).item()
        rest = rows if has_summary or first is None else chain([first], rows)
        counted = VIEW.sort + latest(summary.watermark)
        moving = (item_of(*row) for row in rest if not VIEW.sort <= row[1] <= counted)
        if head is not None:
            yield Group(head, chain(views, moving))

    def _find_uncounted(self, summary: Summary, ulids: Sequence[str]) -> Iterator[Item]:
        """Yield an item for each waiting view that is not counted or stored."""
        alias = fetch(self._connection, keys.summary(summary.alias)) if summary.alias else None
        ended = max(summary.reset, Summary.of(summary.alias, alias or {}).reset)
        for ulid in dict.fromkeys(ulids):
            stored, seen = keys.view(summary.badge_id, ulid), keys.seen(ulid)
            if fetch(self._connection, stored) or fetch(self._connection, seen):
                continue
            if View(summary.badge_id, ulid).milliseconds > ended:
                # Later than the watermark, with the same random part.
                least = earliest(summary.watermark + 1)[:TIME_CHARACTERS] + ulid[TIME_CHARACTERS:]
                yield keys.view(summary.badge_id, max(ulid, least)).item()


def _make_objects(
    changes: Iterable[tuple[Any, ...]], left_out: list[str]
) -> Iterator[tuple[str, bytes]]:
    """Yield an object for each entry in the change log; `left_out` gets the malformed ones."""
    for sequence, removed_at, *row in changes:
        try:
            yield make_object([EntryRemoval.of(item_of(*row), sequence, removed_at)])
        except MalformedError as error:
            left_out.append(f"change {sequence}: {error}")


class FileInstallation:
    """The `admin.installation.Installation` in one open file."""

    def __init__(
        self, database: Database, settings: StandaloneSettings, clock: Callable[[], Seconds]
    ) -> None:
        self.database = database
        self.data = settings.folder
        self.settings: Settings = settings.product
        self.clock = clock
        self.table = SqliteTable(database)
        self.archive = FolderArchive(settings.folder / archive.FOLDER)
        self.views_queue = SqliteQueue(database, VIEWS_QUEUE, clock)
        self.delivery_queue = SqliteQueue(database, DELIVERY_QUEUE, clock)
        self.delivery_queue.route = find_queue
        self.map_parallel: MapParallel = database.map_in_commits

    @cached_property
    def view_clock(self) -> ViewClock:
        return ViewClock(self.database, self.views_queue, self.clock)

    def keep_view_time(self, at: Seconds) -> None:
        self.view_clock.keep(at)

    @property
    def counting(self) -> Counting:
        now = self.view_clock.keep()
        return Counting(self.table, Windows.of(self.settings), lambda: now)

    def event_queue(self, name: str) -> SqliteQueue:
        """Return the queue for events that the operator has listed under this name."""
        return self.delivery_queue.sibling(EVENT_QUEUE + name)

    @contextmanager
    def open_source(self) -> Iterator[Source]:
        """Open the content of one moment; the file keeps all later commits in its WAL."""
        with self.database.snapshot() as connection:
            yield FileSource(connection, self.archive).source

    def items(self) -> Iterator[Item]:
        return all_items(self.database)

    def badges(self, now: Seconds) -> Iterator[BadgeOverview]:
        return overview.of_file(self.database.read, now)

    def archived(self, since: date | None = None) -> Iterator[ArchivedObject]:
        for name, content in _make_objects(self.database.stream(CHANGES, (ENTRY,)), []):
            yield ArchivedObject(name, partial(BytesIO, content))
        yield from in_folder(self.data / archive.FOLDER, since)

    def viewed_ids(self, limit: int = 1_000) -> Iterator[str]:
        """Yield the ids that views are stored under; one query reads `limit` of them."""
        after = ""
        while rows := self.database.read(
            "SELECT pk FROM viewed WHERE pk > ? ORDER BY pk LIMIT ?",
            (keys.partition(after), limit),
        ):
            ids = [partition.removeprefix(keys.PARTITION) for (partition,) in rows]
            yield from ids
            after = ids[-1]

    def redrive_views(self) -> Counter[LetterOutcome]:
        return Counter({LetterOutcome.SENT: self.views_queue.redrive()})


def find_file(folder: Path) -> Path:
    """Return the path of the file in a folder. Raises `ReportedError`."""
    path = folder / FILE
    if not path.exists():
        raise ReportedError(f"{path} does not exist; set DATA to the folder of the file")
    return path


def make_file(folder: Path) -> None:
    """Make a new file. Raises `FileExistsError`, and `UnsafeFileError` for an unsafe folder."""
    path = folder / FILE
    if path.exists():
        raise FileExistsError(f"{path} exists already; import into it without --new")
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    refuse_foreign_entries(folder)
    Database(path).close()


@contextmanager
def open_installation(
    settings: StandaloneSettings, clock: Callable[[], Seconds]
) -> Iterator[FileInstallation]:
    """Open the file of DATA, which must exist: a new file would mean that DATA is wrong.

    Raises `ReportedError`, and `UnsafeFileError` if another user controls the folder.
    """
    path = find_file(settings.folder)
    refuse_foreign_entries(settings.folder)
    try:
        database = Database(path)
    except StorageError as error:
        raise ReportedError(f"{path} can't be opened: {error}") from error
    with closing(database):
        yield FileInstallation(database, settings, clock)
