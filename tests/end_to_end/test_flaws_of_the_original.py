"""The flaws of the project that this one follows. Each test shows that one is absent here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app import app
from chalicelib.aws import resources
from chalicelib.aws.consumers import fold_views, put_views
from chalicelib.counting import keys
from chalicelib.counting.view import View, earliest, new_ulid
from chalicelib.counting.view_queue import ViewMessages
from chalicelib.storage.errors import Unavailable
from chalicelib.storage.items import Item
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Delete, Write
from simulation import aws_events as events
from simulation.resources import GivenResources
from vumi.engine import VIEWS_QUEUE
from vumi.storage.database import FILE, Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable

NOW = 1_767_225_600.0


class Machine:
    """The handlers over a table and a queue. The test runs each step."""

    def __init__(self, folder: Path) -> None:
        self.now = NOW
        self.database = Database(folder / FILE)
        self.table = SqliteTable(self.database)
        self.queue = SqliteQueue(self.database, VIEWS_QUEUE, self.clock)
        self.use(self.table)

    def use(self, table: Table) -> None:
        resources.use(
            GivenResources(clock=self.clock, table=table, views_queue=ViewMessages(self.queue))
        )

    def clock(self) -> float:
        return self.now

    def get(self, badge_id: str, *, peek: bool = False) -> str:
        query = {"id": [badge_id], **({"peek": ["1"]} if peek else {})}
        message: str = json.loads(app(events.http_event(query), None)["body"])["message"]
        return message

    def deliver(self, bad: dict[str, object] | None = None) -> set[str]:
        """Deliver every message as one batch with malformed ones; return the ids that failed."""
        received = self.queue.receive(10_000)
        batch: dict[str, object] = {str(message.id): message.body for message in received}
        answer = put_views(events.sqs_event({**(bad or {}), **batch}), None)
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        self.queue.delete(message for message in received if str(message.id) not in failed)
        return failed

    def expire(self, *badges: str) -> list[dict[str, Any]]:
        """Remove the marker of each badge, as TTL does; return the stream's records."""
        self.now = NOW + 900
        markers = [keys.marker(badge_id, int(NOW) + 300) for badge_id in badges]
        for marker in markers:
            assert self.table.get(marker) is not None
            self.table.write(Delete(marker))
        return [events.removal(sequence, *marker) for sequence, marker in enumerate(markers, 1)]

    def store_views(self, badge_id: str, views: int) -> None:
        pk = f"USER#{badge_id}"
        first = earliest(int(NOW * 1000))[:10]
        self.table.put_all(
            [{"PK": pk, "SK": f"VIEW#{first}{n:016}", "ttl": int(NOW) + 300} for n in range(views)]
        )


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    running = Machine(tmp_path)
    yield running
    resources.use(None)
    running.database.close()


def fold(records: list[dict[str, Any]]) -> list[dict[str, str]]:
    answer: dict[str, Any] = fold_views(events.stream_event(records), None)
    failures: list[dict[str, str]] = answer["batchItemFailures"]
    return failures


def test_20_concurrent_first_visits_are_20_views(machine: Machine) -> None:
    """The original stored 1."""
    with ThreadPoolExecutor(20) as pool:
        shown = list(pool.map(lambda _: machine.get("new"), range(20)))
    assert shown == ["0"] * 20
    assert machine.deliver() == set()
    assert machine.get("new", peek=True) == "20"


def test_an_id_with_a_quote_loses_nothing(machine: Machine) -> None:
    """The original lost its whole batch and counted the neighbours 4 times."""
    for badge_id in ("before", 'quo"te', "after"):
        machine.get(badge_id)
    assert machine.deliver() == set()
    for badge_id in ("before", 'quo"te', "after"):
        assert machine.get(badge_id, peek=True) == "1"


def test_a_malformed_message_fails_alone(machine: Machine) -> None:
    machine.get("before")
    assert machine.deliver({"bad": '{"id": "quo"te"}', "worse": "[]"}) == {"bad", "worse"}
    assert machine.get("before", peek=True) == "1"


@pytest.mark.parametrize("badge_id", ["victim#VIEW#x", 'a", "view": "x', "USER#victim", "VIEW#"])
def test_an_id_can_not_forge_a_view_of_another_badge(machine: Machine, badge_id: str) -> None:
    machine.get(badge_id)
    machine.get("victim")
    assert machine.deliver() == set()
    assert machine.get("victim", peek=True) == "1"
    assert machine.get(badge_id, peek=True) == "1"
    assert fold(machine.expire(badge_id)) == []
    assert machine.get(badge_id, peek=True) == machine.get("victim", peek=True) == "1"
    assert (machine.table.get(keys.summary(badge_id)) or {})["count"] == 1


@pytest.mark.parametrize("query", [None, {"id": [""]}])
def test_a_missing_or_empty_id_is_no_internal_error(
    machine: Machine, query: dict[str, list[str]] | None
) -> None:
    answer = app(events.http_event(query), None)
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["isError"] is True
    assert machine.queue.size() == 0


def test_9000_live_views_show_as_8000_until_their_fold_and_no_view_is_lost(
    machine: Machine,
) -> None:
    """The original always showed 7,999. With this many live views, the GET requests a fold."""
    machine.store_views("hot", 8_998)
    assert machine.get("hot") == "8000"
    machine.now = NOW + 900
    assert machine.get("hot") == "8000"
    assert machine.deliver() == set()
    assert machine.get("hot", peek=True) == "9000"


def test_6000_views_of_a_long_id_show_as_6000(machine: Machine) -> None:
    """The original showed 3,366, which is the number that fits into a page of 1 MB."""
    machine.store_views("x" * 200, 6_000)
    assert machine.get("x" * 200, peek=True) == "6000"


def test_the_count_does_not_dip_between_removal_and_fold(machine: Machine) -> None:
    for _ in range(3):
        machine.get("steady")
        machine.deliver()
    records = machine.expire("steady")
    assert machine.get("steady", peek=True) == "3"
    for _ in range(2):
        assert fold(records) == []
        assert machine.get("steady", peek=True) == "3"


def test_a_stream_batch_delivered_again_counts_once(machine: Machine) -> None:
    for badge_id in ("one", "two", "two", "three"):
        machine.get(badge_id)
    machine.deliver()
    records = machine.expire("one", "two", "three")
    for again in (records[:2], records[:2], records[1:], records[::-1], records[2:], records):
        assert fold(again) == []
    assert [machine.get(id_, peek=True) for id_ in ("one", "two", "three")] == ["1", "2", "1"]


def test_concurrent_folds_lose_no_view(machine: Machine) -> None:
    for _ in range(50):
        machine.get("both")
    machine.deliver()
    records = machine.expire("both")
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(fold, [records] * 30)) == [[]] * 30
    assert machine.get("both", peek=True) == "50"
    assert (machine.table.get(keys.summary("both")) or {})["count"] == 50


class Throttled:
    """A table that refuses all writes, or only those for the named badges."""

    def __init__(self, table: Table, badges: set[str]) -> None:
        self._table = table
        self._throttled = {f"USER#{badge}" for badge in badges}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def write(self, *writes: Write) -> None:
        if any(write.key.pk in self._throttled for write in writes):
            raise Unavailable("throttled")
        self._table.write(*writes)

    def put_all(self, items: list[Item]) -> None:
        if any(item["PK"] in self._throttled for item in items):
            raise Unavailable("throttled")
        self._table.put_all(items)


def test_a_throttled_put_is_repeated(machine: Machine) -> None:
    view = View("slow", new_ulid(int(NOW * 1000)))
    machine.use(Throttled(machine.table, {"slow"}))  # type: ignore[arg-type]
    answer = put_views(events.sqs_event({"m": view.to_message()}), None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m"}]}
    machine.use(machine.table)
    assert put_views(events.sqs_event({"m": view.to_message()}), None) == {"batchItemFailures": []}
    assert machine.get("slow", peek=True) == "1"


def test_a_throttled_fold_is_repeated_and_delays_no_other_badge(machine: Machine) -> None:
    """Its marker is put again, so no removal is reported as failed, unless all writes fail."""
    for badge_id in ("slow", "quick"):
        machine.get(badge_id)
    machine.deliver()
    records = machine.expire("slow", "quick")
    machine.use(Throttled(machine.table, {"slow"}))  # type: ignore[arg-type]
    assert fold(records) == []
    assert (machine.table.get(keys.summary("quick")) or {})["count"] == 1
    assert machine.table.get(keys.summary("slow")) is None
    machine.use(machine.table)
    assert fold(machine.expire("slow")) == []
    assert (machine.table.get(keys.summary("slow")) or {})["count"] == 1
    assert machine.get("slow", peek=True) == machine.get("quick", peek=True) == "1"


def test_deleting_the_badge_itself_counts_no_view(machine: Machine) -> None:
    for sequence, identity in enumerate((events.BY_TTL, None), 1):
        assert fold([events.removal(sequence, "USER#gone", "VIEWS", identity=identity)]) == []
    assert machine.get("gone", peek=True) == "0"
