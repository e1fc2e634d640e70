"""A table in its own file, and a table with steps before and after its calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.items import Due, Item, Key
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Write
from vumi.storage.database import Database
from vumi.storage.table import SqliteTable

Result = TypeVar("Result")


@contextmanager
def sqlite_table(folder: Path | None = None) -> Iterator[SqliteTable]:
    """Make a real table in its own file."""
    with (
        TemporaryDirectory(dir=folder) as fresh,
        closing(Database(Path(fresh) / "table.sqlite3")) as database,
    ):
        yield SqliteTable(database)


class InterceptedTable(ABC):
    """A table of which every read goes through `read`, which gets the name of the method."""

    @property
    @abstractmethod
    def engine(self) -> Table:
        """The table itself."""

    @abstractmethod
    def read(self, method: str, operation: Callable[[], Result]) -> Result:
        """Run a read."""

    def get(self, key: Key) -> Item | None:
        return self.read("get", lambda: self.engine.get(key))

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        return self.read("get_all", lambda: self.engine.get_all(keys))

    def query(self, partition: str, **how: Any) -> list[Item]:
        return self.read("query", lambda: self.engine.query(partition, **how))

    def query_due(self, batch: str, **how: Any) -> list[Due]:
        return self.read("query_due", lambda: self.engine.query_due(batch, **how))

    def page_items(self, first: int, other: int) -> int:
        return self.engine.page_items(first, other)

    def count(self, partition: str, **how: Any) -> int:
        return self.read("count", lambda: self.engine.count(partition, **how))


def _nothing(_: object) -> None:
    """Do nothing: the default step."""


@dataclass
class FaultyTable(InterceptedTable):
    """A table with steps before and after its calls; `written` and `put` record its writes.

    `before_read` gets the name of the method. A failure of `after_write` or `after_put` is a lost
    answer.
    """

    table: Table
    before_write: Callable[[Sequence[Write]], None] = _nothing
    after_write: Callable[[Sequence[Write]], None] = _nothing
    before_put: Callable[[Sequence[Item]], None] = _nothing
    after_put: Callable[[Sequence[Item]], None] = _nothing
    before_read: Callable[[str], None] = _nothing
    written: list[tuple[Write, ...]] = field(default_factory=list)
    put: list[list[Item]] = field(default_factory=list)

    @property
    def engine(self) -> Table:
        return self.table

    def read(self, method: str, operation: Callable[[], Result]) -> Result:
        self.before_read(method)
        return operation()

    def write(self, *writes: Write) -> None:
        self.written.append(writes)
        self.before_write(writes)
        self.table.write(*writes)
        self.after_write(writes)

    def put_all(self, items: Sequence[Item]) -> None:
        self.put.append(list(items))
        self.before_put(items)
        self.table.put_all(items)
        self.after_put(items)


def raising(*failures: BaseException | None) -> Callable[[object], None]:
    """Return a step that raises the next failure at each call; None raises nothing."""
    left = iter(failures)

    def step(_: object) -> None:
        failure = next(left, None)
        if failure is not None:
            raise failure

    return step


def refusing(
    *partitions: str, failure: Exception | None = None
) -> Callable[[Sequence[Write]], None]:
    """Return a step that fails every write to some partitions."""

    def step(writes: Sequence[Write]) -> None:
        if any(write.key.pk in partitions for write in writes):
            raise failure or StorageRefusedError("no right")

    return step


def once(act: Callable[[], object], *, after: int = 0) -> Callable[[object], None]:
    """Return a step of a `FaultyTable` that acts at one call only, `after` so many others."""
    left = iter([*[lambda: None] * after, act])

    def step(_: object) -> None:
        next(left, lambda: None)()

    return step
