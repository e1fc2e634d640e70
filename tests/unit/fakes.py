"""What the unit tests put in place of time, AWS and a reliable table."""

from __future__ import annotations

import copy
import gzip
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pytest
from botocore.exceptions import ClientError
from ulid import ULID

from chalicelib import telemetry
from chalicelib.aws.attribute_values import encode_item
from chalicelib.aws.retry import Retry
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Due, Item, Key
from chalicelib.storage.ports import Message, Table
from chalicelib.storage.writes import Write
from chalicelib.views import keys
from chalicelib.wallets.wallet import Entry
from tests import events
from vumi.storage.database import Database
from vumi.storage.table import SqliteTable

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC).timestamp()
Request: TypeAlias = dict[str, Any]


@dataclass
class FakeTime:
    """A clock that moves only while somebody sleeps on it; keeps how long each sleep was."""

    now: float = 1_000.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def monotonic(self) -> float:
        return self.now

    def retry(self, **settings: Any) -> Retry:
        """A `Retry` on this clock, whose jitter is always the longest."""
        steps: dict[str, Any] = {
            "sleep": self.sleep,
            "monotonic": self.monotonic,
            "jitter": lambda: 1.0,
        }
        return Retry(**(steps | settings))


class FakeClient:
    """A boto3 client: one function answers every operation; `calls` keeps what was asked."""

    def __init__(self, answer: Callable[[str, Request], Request]) -> None:
        self._answer = answer
        self.calls: list[tuple[str, Request]] = []

    def __getattr__(self, operation: str) -> Callable[..., Request]:
        def call(**request: Any) -> Request:
            self.calls.append((operation, copy.deepcopy(request)))
            return self._answer(operation, request)

        return call

    @property
    def operations(self) -> list[str]:
        return [operation for operation, _ in self.calls]

    @property
    def requests(self) -> list[Request]:
        return [request for _, request in self.calls]


def script(*answers: Request | Exception) -> FakeClient:
    """A client that gives these answers in turn, and fails the test that asks for more."""
    left = iter(answers)

    def answer(operation: str, _: Request) -> Request:
        following = next(left, None)
        if following is None:
            raise AssertionError(f"{operation} is one call more than the {len(answers)} expected")
        if isinstance(following, Exception):
            raise following
        return following

    return FakeClient(answer)


def client_error(code: str, status: int = 400, **answer: Any) -> ClientError:
    """The error that botocore raises for an answer with an error code."""
    response: Any = {
        "Error": {"Code": code, "Message": f"the message of {code}"},
        "ResponseMetadata": {"HTTPStatusCode": status},
        **answer,
    }
    return ClientError(response, "Operation")


def cancelled(*reasons: str | Mapping[str, Any]) -> ClientError:
    """The error of a cancelled transaction, one reason for each write."""
    given = [{"Code": reason} if isinstance(reason, str) else dict(reason) for reason in reasons]
    return client_error("TransactionCanceledException", CancellationReasons=given)


@contextmanager
def sqlite_table(folder: Path | None = None) -> Iterator[SqliteTable]:
    """A real table in a file of its own."""
    with TemporaryDirectory(dir=folder) as fresh:
        database = Database(Path(fresh) / "table.sqlite3")
        try:
            yield SqliteTable(database)
        finally:
            database.close()


@contextmanager
def logging_put_back() -> Iterator[None]:
    """Undo what a test's code does to the handlers and levels of the process."""
    root = logging.getLogger()
    handlers, loggers = list(root.handlers), (root, telemetry.log, telemetry.metrics)
    levels = [logger.level for logger in loggers]
    try:
        yield
    finally:
        root.handlers[:] = handlers
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str, dict[str, object]]]:
    """What was logged beside metrics: level, message and fields, without the function."""
    return [
        (
            record.levelno,
            record.message,
            {name: value for name, value in vars(record)["fields"].items() if name != "function"},
        )
        for record in caplog.records
        if record.name == telemetry.log.name
    ]


def _nothing(_: object) -> None:
    """What happens unless a test says otherwise."""


@dataclass
class FaultyTable:
    """A table, with what happens around its calls; `written` and `put` keep what it was asked.

    `before_read` is told which method reads. A failure of `after_write` or `after_put` is an
    answer that is lost.
    """

    table: Table
    before_write: Callable[[Sequence[Write]], None] = _nothing
    after_write: Callable[[Sequence[Write]], None] = _nothing
    before_put: Callable[[Sequence[Item]], None] = _nothing
    after_put: Callable[[Sequence[Item]], None] = _nothing
    before_read: Callable[[str], None] = _nothing
    written: list[tuple[Write, ...]] = field(default_factory=list)
    put: list[list[Item]] = field(default_factory=list)

    def get(self, key: Key) -> Item | None:
        self.before_read("get")
        return self.table.get(key)

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        self.before_read("get_all")
        return self.table.get_all(keys)

    def query(self, partition: str, **how: Any) -> list[Item]:
        self.before_read("query")
        return self.table.query(partition, **how)

    def query_due(self, batch: str, **how: Any) -> list[Due]:
        return self.table.query_due(batch, **how)

    def count(self, partition: str, **how: Any) -> int:
        self.before_read("count")
        return self.table.count(partition, **how)

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


def raising(*failures: Exception | None) -> Callable[[object], None]:
    """What raises the first failure at the first call, the second at the second; None: nothing."""
    left = iter(failures)

    def step(_: object) -> None:
        failure = next(left, None)
        if failure is not None:
            raise failure

    return step


@dataclass
class FakeQueue:
    """A queue that keeps its messages; `failure` is raised instead, or `after` taking them."""

    failure: StorageError | None = None
    after: bool = False
    bodies: list[str] = field(default_factory=list)

    def send(self, body: str, *, delay: float = 0.0) -> None:
        self.send_all([Message(body, delay)])

    def send_all(self, messages: Sequence[Message]) -> None:
        if self.failure is None or self.after:
            self.bodies += [
                one.body + (f" after {one.delay} s" if one.delay else "") for one in messages
            ]
        if self.failure is not None:
            raise self.failure


def ulid_of(taken: float, tail: str = "0" * 16) -> str:
    """A ULID of a time in seconds since 1970, its random part fixed."""
    return str(ULID.from_timestamp(taken))[:10] + tail


def marker_record(sequence: int | str, badge_id: str, mark: int) -> dict[str, Any]:
    """A stream record of a window's marker that TTL removed; `mark` is in seconds since 1970."""
    return events.removal(sequence, *keys.marker(badge_id, mark))


def entry_record(
    entry: Entry, wallet_id: str, sequence: int, arn: str = events.ARN
) -> dict[str, Any]:
    """A stream record of an entry that TTL removed from the journal of a wallet."""
    item = entry.item(wallet_id)
    record = events.removal(sequence, str(item["PK"]), str(item["SK"]), arn=arn)
    record["dynamodb"]["OldImage"] = encode_item(item)
    return record


@dataclass
class FakeArchive:
    """An archive that keeps its objects; `failure` is raised for names with `failing` in them."""

    failure: StorageError | None = None
    failing: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)

    def put(self, name: str, body: bytes) -> None:
        if self.failure is not None and self.failing in name:
            raise self.failure
        self.objects[name] = body

    def lines(self) -> list[dict[str, Any]]:
        """The lines of all objects, in the order of their names."""
        return [
            json.loads(line)
            for _, body in sorted(self.objects.items())
            for line in gzip.decompress(body).decode().splitlines()
        ]
