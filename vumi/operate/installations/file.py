"""The file of one machine, which a command opens while the server runs or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date
from functools import cached_property
from pathlib import Path

from chalicelib.concurrency import MapParallel
from chalicelib.counting import keys
from chalicelib.counting.resources import Counting
from chalicelib.counting.windows import Windows
from chalicelib.settings import Settings
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Item
from chalicelib.units import Seconds
from chalicelib.wallets import wallet as wallets
from vumi.engine import VIEWS_QUEUE
from vumi.errors import ReportedError
from vumi.folder import refuse_foreign_entries
from vumi.journals import ArchivedObject, in_folder
from vumi.operate.admin import overview
from vumi.operate.admin.installation import LetterOutcome
from vumi.operate.admin.overview import BadgeOverview
from vumi.operate.exchange.file_source import FileSource
from vumi.resources import EVENT_QUEUE
from vumi.settings import StandaloneSettings
from vumi.storage import archive
from vumi.storage.archive import FolderArchive
from vumi.storage.database import FILE, Database
from vumi.storage.private_files import FOLDER_MODE
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable, all_items, item_of
from vumi.storage.view_clock import ViewClock
from vumi.workers.events import DELIVERY_QUEUE, find_queue

PAGE_IDS = 1_000


class NoFileError(ReportedError):
    """The file does not exist. The message says where it was expected."""


class UnreadableFileError(ReportedError):
    """The file can't be opened. The message says why."""


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
    def open_source(self) -> Iterator[FileSource]:
        """Open the content of one moment; the file keeps all later commits in its WAL."""
        with self.database.snapshot() as connection:
            yield FileSource(connection, self.archive, VIEWS_QUEUE, EVENT_QUEUE)

    def items(self) -> Iterator[Item]:
        return all_items(self.database)

    def badges(self, now: Seconds) -> Iterator[BadgeOverview]:
        return overview.of_file(self.database.read, now)

    def archived(self, since: date | None = None) -> Iterator[ArchivedObject]:
        return in_folder(self.data / archive.FOLDER, since)

    def removed_entries(self, wallet_id: str) -> Iterator[Item]:
        """Yield the entries that TTL has removed and the archive does not have yet."""
        query = "SELECT pk, sk, attributes FROM changes WHERE pk = ?"
        rows = self.database.stream(query, (wallets.PARTITION + wallet_id,))
        return (item_of(*row) for row in rows)

    def viewed_ids(self, limit: int = PAGE_IDS) -> Iterator[str]:
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
    """Return the path of the file in a folder. Raises `NoFileError`."""
    path = folder / FILE
    if not path.exists():
        raise NoFileError(f"{path} does not exist; set DATA to the folder of the file")
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

    Raises `NoFileError`, `UnreadableFileError`, and `UnsafeFileError` if another user controls the
    folder.
    """
    path = find_file(settings.folder)
    refuse_foreign_entries(settings.folder)
    try:
        database = Database(path)
    except StorageError as error:
        raise UnreadableFileError(f"{path} can't be opened: {error}") from error
    with closing(database):
        yield FileInstallation(database, settings, clock)
