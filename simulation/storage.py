"""Storage for tests: tables, queues and an archive in memory, and tables with faults."""

from __future__ import annotations

import gzip
import json
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, TypeVar

from chalicelib.http import tokens
from chalicelib.http.messages import Caller, Role
from chalicelib.storage.errors import StorageError, StorageRefusedError
from chalicelib.storage.items import Due, Item, Key, check_item, key_of
from chalicelib.storage.ports import MAX_DUE, Message, Table, items_per_read_unit
from chalicelib.storage.writes import (
    Check,
    ConditionFailedError,
    Delete,
    Put,
    Update,
    Write,
    check_transaction,
)
from chalicelib.units import Milliseconds, Seconds
from vumi.storage.database import Database
from vumi.storage.table import SqliteTable, holds, updated
from vumi.tokens import StoredToken


class MemoryTable:
    """A `ports.Table` whose items are in dictionaries, with sorted keys for each partition."""

    def __init__(self) -> None:
        self.items: dict[Key, Item] = {}
        self._sort_keys: defaultdict[str, list[str]] = defaultdict(list)
        self._writing = Lock()

    def get(self, key: Key) -> Item | None:
        item = self.items.get(key)
        return dict(item) if item is not None else None

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        return [item for key in keys if (item := self.get(key)) is not None]

    def query(  # noqa: PLR0913  the arguments of the port
        self,
        partition: str,
        *,
        limit: int,
        first: str = "",
        last: str = "",
        attributes: Sequence[str] = (),
        descending: bool = False,
    ) -> list[Item]:
        found = self.sort_keys(partition, first, last)
        kept = found[::-1][:limit] if descending else found[:limit]
        return [_part(self.items[Key(partition, sk)], attributes) for sk in kept]

    def page_items(self, first: int, other: int) -> int:
        return items_per_read_unit(first, other)

    def count(self, partition: str, *, limit: int, first: str = "", last: str = "") -> int:
        return min(limit, len(self.sort_keys(partition, first, last)))

    def query_due(
        self,
        batch: str,
        *,
        limit: int,
        first: Milliseconds = 0,
        last: Milliseconds = MAX_DUE,
        after: Due | None = None,
    ) -> list[Due]:
        found = sorted(
            Due(due, key)
            for key, item in self.items.items()
            if item.get("batch") == batch
            and isinstance(due := item.get("due"), int)
            and first <= due <= last
        )
        return [due for due in found if not after or due > after][:limit]

    def write(self, *writes: Write) -> None:
        check_transaction(writes)
        with self._writing:
            self.check(writes)
            for write in writes:
                self._apply(write)

    def check(self, writes: Sequence[Write]) -> None:
        """Raise `ConditionFailedError` unless the conditions of all writes hold."""
        failed = {
            place: self.get(write.key)
            for place, write in enumerate(writes)
            if not holds(write.condition, self.items.get(write.key))
        }
        if failed:
            raise ConditionFailedError(failed)

    def put_all(self, items: Sequence[Item]) -> None:
        for item in items:
            check_item(item)
        for item in items:
            self._store(dict(item))

    def _apply(self, write: Write) -> None:
        match write:
            case Put():
                self._store(dict(write.item))
            case Update():
                self._store(updated(write, self.items.get(write.key)))
            case Delete():
                self.remove(write.key)
            case Check():
                pass

    def _store(self, item: Item) -> None:
        key = key_of(item)
        if key not in self.items:
            insort(self._sort_keys[key.pk], key.sk)
        self.items[key] = item

    def remove(self, key: Key) -> None:
        """Remove an item; no error if there is none."""
        if self.items.pop(key, None) is not None:
            self._sort_keys[key.pk].remove(key.sk)

    def sort_keys(self, partition: str, first: str, last: str) -> list[str]:
        """Return the sort keys of a partition between two, in their order."""
        found = self._sort_keys.get(partition, [])
        end = bisect_right(found, last) if last else len(found)
        return found[bisect_left(found, first) : end]


def _part(item: Mapping[str, object], attributes: Sequence[str]) -> Item:
    names = attributes or item
    return {name: item[name] for name in names if name in item}  # type: ignore[misc]


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


@dataclass
class FakeQueue:
    """A queue that keeps its messages; it raises `failure` instead, or `after` keeping them."""

    failure: StorageError | None = None
    after: bool = False
    bodies: list[str] = field(default_factory=list)

    def send(self, body: str, *, delay: Seconds = 0.0) -> None:
        self.send_all([Message(body, delay)])

    def send_all(self, messages: Sequence[Message]) -> None:
        if self.failure is None or self.after:
            self.bodies += [
                one.body + (f" after {one.delay} s" if one.delay else "") for one in messages
            ]
        if self.failure is not None:
            raise self.failure


@dataclass
class FakeArchive:
    """An archive in memory; it raises `failure` for names that contain `failing`."""

    failure: StorageError | None = None
    failing: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)

    def put(self, name: str, body: bytes) -> None:
        if self.failure is not None and self.failing in name:
            raise self.failure
        self.objects[name] = body

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines of all objects, in the order of the objects' names."""
        return [
            json.loads(line)
            for _, body in sorted(self.objects.items())
            for line in gzip.decompress(body).decode().splitlines()
        ]


def store_token(table: Table, token: str, user: str = "") -> None:
    """Store a token of an operator, or of a user."""
    holder = Caller(Role.USER, user) if user else Caller(Role.OPERATOR)
    table.write(Put(StoredToken(tokens.digest(token), "a-test", holder, 0).item))
