"""The Lambda functions: the values that they read from AWS's events, and those that they return."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.aws.consumers import (
    archive_entries,
    deliver_events,
    distribute_events,
    entry_removal,
    fold_views,
    marker_removal,
    put_views,
    sweep_events,
)
from chalicelib.counting import keys
from chalicelib.counting.consumers import MarkerRemoval
from chalicelib.events import schedule
from chalicelib.events.event import Status, message
from chalicelib.storage.errors import StorageError, StorageRefusedError, UnavailableError
from chalicelib.storage.messages import MalformedError
from chalicelib.wallets.archive import EntryRemoval
from chalicelib.wallets.wallet import Entry, Posting
from simulation import aws_events as events
from simulation.aws_events import entry_record, marker_record
from simulation.clocks import NOON, ulid_of
from simulation.logs import counting_metrics, logged_events
from simulation.resources import GivenResources
from simulation.scheduled_events import AT, an_event
from simulation.storage import FakeArchive, FakeQueue, FaultyTable, MemoryTable, refusing
from simulation.views import AT_NOON, BADGE, shown, summary, ulid, view
from simulation.views import put_views as put_items

MARK = int(NOON) + 300
AFTER_GRACE = MARK + 600.0
ALICE, BOB = ulid_of(NOON, "A" * 16), ulid_of(NOON, "B" * 16)
DONE: dict[str, Any] = {"batchItemFailures": []}


@dataclass
class World(GivenResources):
    """Resources that a test can read."""

    delivery_queue: FakeQueue = field(default_factory=FakeQueue)
    distribution_queue: FakeQueue = field(default_factory=FakeQueue)
    archive: FakeArchive = field(default_factory=FakeArchive)
    now: float = NOON

    def __post_init__(self) -> None:
        self.clock = lambda: self.now


@pytest.fixture
def world() -> Iterator[World]:
    world = World(table=MemoryTable())
    resources.use(world)
    yield world
    resources.use(None)


@pytest.fixture
def counted() -> Iterator[dict[str, dict[str, int]]]:
    with counting_metrics() as sums:
        yield sums


def again(*identifiers: str) -> dict[str, Any]:
    """Return the partial batch response that asks for these again."""
    return {"batchItemFailures": [{"itemIdentifier": one} for one in identifiers]}


def put(**bodies: object) -> Any:
    return put_views(events.sqs_event(bodies), None)


def fold(*records: Mapping[str, Any]) -> Any:
    return fold_views(events.stream_event(records), None)


def archive(*records: Mapping[str, Any]) -> Any:
    return archive_entries(events.stream_event(records), None)


# ---- messages


def test_the_views_of_messages_are_stored_and_those_in_between_are_returned(world: World) -> None:
    waits = view(AT_NOON - 600_000).to_message()
    assert put(young=view().to_message(), one=waits, other=waits) == again("one", "other")
    assert shown(world.table) == 1


def test_only_a_malformed_message_is_returned(
    world: World, counted: dict[str, dict[str, int]], caplog: pytest.LogCaptureFixture
) -> None:
    assert put(bad="{", m=view().to_message()) == again("bad")
    assert shown(world.table) == 1
    assert counted["put_views"]["malformed"] == 1
    assert logged_events(caplog) == [(logging.ERROR, "malformed_message", {"message_id": "bad"})]


@pytest.mark.parametrize("body", ['{"event": 7}', None])
def test_an_event_is_delivered_despite_a_malformed_message(world: World, body: object) -> None:
    for name in ("a", "b"):
        schedule.accept(an_event(name), world.table, FakeQueue(), AT)
    world.table = FaultyTable(world.table, before_write=refusing("TIMER#b"))
    bodies = {"bad": body, "m-a": message("a"), "m-b": message("b")}
    assert deliver_events(events.sqs_event(bodies), None) == again("bad", "m-b")
    assert schedule.read(world.table, "a").status is Status.SUCCESS


def test_the_events_of_a_group_are_enqueued_and_only_a_malformed_group_is_returned(
    world: World,
) -> None:
    groups = {"bad": '{"events": [["a"]]}', "good": json.dumps({"events": [["a", AT]]})}
    assert distribute_events(events.sqs_event(groups), None) == again("bad")
    assert world.delivery_queue.bodies == [message("a")]
    world.delivery_queue.failure = UnavailableError("no queue")
    assert distribute_events(events.sqs_event(groups), None) == again("bad", "good")


def test_a_sweep_returns_the_number_of_events(world: World) -> None:
    assert sweep_events(events.tick(), None) == {"sent": 0, "overdue": 0}
    schedule.accept(an_event("overdue", AT - 120_000), world.table, FakeQueue(), 0)
    assert sweep_events(events.tick(), None) == {"sent": 1, "overdue": 1}


# ---- the stream


def test_the_badge_of_a_removed_marker_is_folded_and_other_records_are_skipped(
    world: World, counted: dict[str, dict[str, int]], caplog: pytest.LogCaptureFixture
) -> None:
    world.now = AFTER_GRACE
    put_items(world.table, AT_NOON)
    malformed: dict[str, Any] = {"eventName": "REMOVE"}
    others = [
        marker_record(1, BADGE, MARK) | {"eventName": "INSERT"},
        events.removal(2, *keys.view(BADGE, ulid())),
        malformed,
    ]
    assert fold(*others) == DONE
    assert summary(world.table) == {}
    assert fold(*others, marker_record(3, BADGE, MARK)) == DONE
    assert summary(world.table)["count"] == 1
    assert counted["fold_views"] == {
        "malformed": 2,
        "views_folded": 1,
        "folds_postponed": 0,
        "fold_lag_seconds": round(AFTER_GRACE) - 1_767_225_600,
    }
    logged = (logging.ERROR, "malformed_stream_record", {"record": malformed})
    assert logged_events(caplog) == [logged, logged]


def test_badges_that_are_not_folded_are_returned_from_the_lowest_sequence_number(
    world: World,
) -> None:
    """Of the records 9 to 13 of a, b, c, b and c only a's is done: b's first is 10."""
    world.now = AFTER_GRACE
    for badge_id in "abc":
        put_items(world.table, AT_NOON, badge_id=badge_id)
    refused = [keys.partition(badge_id) for badge_id in "bc"]
    markers = [keys.marker(badge_id, MARK).pk for badge_id in "bc"]
    world.table = FaultyTable(world.table, before_write=refusing(*refused, *markers))
    records = [marker_record(n, badge_id, MARK) for n, badge_id in enumerate("abcbc", 9)]
    assert fold(*reversed(records)) == again("10")


def entry(sequence: int, days: int = 0) -> dict[str, Any]:
    """Return the removal of an entry that was made some days before noon."""
    posting = Posting(f"n{sequence}", 1, BOB, ALICE)
    at = int(NOON - days * 86_400) * 1000
    return entry_record(Entry(ulid_of(NOON, f"{sequence:016}"), posting, at), ALICE, sequence)


@pytest.mark.parametrize(
    "failure", [UnavailableError("slow down"), StorageRefusedError("no such bucket")]
)
def test_entries_that_are_not_archived_are_returned_from_the_lowest_sequence_number(
    world: World, failure: StorageError
) -> None:
    """The two of yesterday fail, and the first of them is 9: 10 is no smaller."""
    world.archive.failure, world.archive.failing = failure, "/13/"
    batch = [entry(8), entry(9, days=1), entry(10, days=1), entry(11)]
    assert archive(*batch) == again("9")
    world.archive.failure = None
    assert archive(*batch[1:]) == DONE
    assert {line["nonce"] for line in world.archive.lines()} == {"n8", "n9", "n10", "n11"}


def test_a_malformed_record_is_archived_completely_with_the_entries(
    world: World, counted: dict[str, dict[str, int]], caplog: pytest.LogCaptureFixture
) -> None:
    malformed = entry(1)
    del malformed["dynamodb"]["OldImage"]["amount"]
    assert archive(malformed, entry(2), events.removal(3, "USER#a", "VIEW#1")) == DONE
    entries, kept = sorted(world.archive.objects)
    assert json.loads(gzip.decompress(world.archive.objects[kept])) == malformed
    assert json.loads(gzip.decompress(world.archive.objects[entries]))["nonce"] == "n2"
    sums = counted["archive_entries"]
    assert (sums["malformed"], sums["entries_archived"]) == (1, 1)
    assert logged_events(caplog) == [
        (logging.ERROR, "malformed_stream_record", {"record": malformed})
    ]


def test_if_a_malformed_record_can_not_be_archived_its_whole_batch_is_returned(
    world: World,
) -> None:
    """It may have no sequence number to return."""
    world.archive.failure, world.archive.failing = UnavailableError("slow down"), "malformed"
    with pytest.raises(UnavailableError):
        archive(entry(1), {})
    world.archive.failure = None
    assert archive(entry(1), {}) == DONE
    assert len(world.archive.objects) == 2


def test_without_entries_no_archive_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a function without the setting of its bucket can take an empty batch."""
    monkeypatch.delenv("ARCHIVE_BUCKET", raising=False)
    resources.use(None)
    assert archive() == DONE
    resources.use(None)


# ---- all


@dataclass(frozen=True)
class Context:
    """The context that Lambda passes to a handler."""

    function_name: str = "vu-mi-prod-a-consumer"
    aws_request_id: str = "request-7"


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    ("consumer", "event", "name"),
    [
        (put_views, events.sqs_event({"bad": "{"}), "put_views"),
        (fold_views, events.stream_event([{"eventName": "REMOVE"}]), "fold_views"),
        (distribute_events, events.sqs_event({"bad": "{"}), "distribute_events"),
        (deliver_events, events.sqs_event({"bad": "{"}), "deliver_events"),
        (archive_entries, events.stream_event([{}]), "archive_entries"),
    ],
)
def test_a_log_line_has_the_name_of_its_function_on_lambda(
    caplog: pytest.LogCaptureFixture,
    consumer: Callable[..., object],
    event: dict[str, Any],
    name: str,
) -> None:
    consumer(event, None)
    consumer(event, Context())
    lines = [vars(line)["fields"] for line in caplog.records if line.name == telemetry.log.name]
    assert [(line["function"], line.get("request_id")) for line in lines] == [
        (name, None),
        ("vu-mi-prod-a-consumer", "request-7"),
    ]


# ---- records


REMOVED_AT = 1_767_225_600.0
TRANSFER = Entry(ulid_of(NOON), Posting("t-1", 5, BOB, ALICE), int(NOON) * 1000)


def record(**changed: Any) -> dict[str, Any]:
    return marker_record("111", "octocat", MARK) | changed


def changing(**changed: Any) -> dict[str, Any]:
    """Return a record with another change of a marker; None removes a part of it."""
    change = record()["dynamodb"] | changed
    return record(dynamodb={name: part for name, part in change.items() if part is not None})


def keyed(pk: object, sk: object) -> dict[str, Any]:
    return changing(Keys={"PK": pk, "SK": sk})


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in record().items() if key != name}


def journaled(**changed: Any) -> dict[str, Any]:
    return entry_record(TRANSFER, ALICE, 1) | changed


def image(**changed: Any) -> dict[str, Any]:
    """Return a record whose item has these changes; None removes an attribute."""
    change = journaled()["dynamodb"]
    item = change["OldImage"] | changed
    kept = {name: value for name, value in item.items() if value is not None}
    return journaled(dynamodb=change | {"OldImage": kept})


@pytest.mark.parametrize("badge_id", ["octocat", "a#b", "WINDOW#1#x", "日本"])
def test_a_marker_that_was_removed_has_its_badge_and_its_mark(badge_id: str) -> None:
    removal = MarkerRemoval(badge_id=badge_id, mark=MARK, removed_at=REMOVED_AT)
    removed = marker_record(1, badge_id, MARK)
    assert marker_removal(removed) == removal
    assert marker_removal(removed | {"userIdentity": None}) == removal  # by no service


def test_a_record_without_the_time_of_its_removal_has_0() -> None:
    removal = marker_removal(changing(ApproximateCreationDateTime=None))
    assert removal == MarkerRemoval(badge_id="octocat", mark=MARK, removed_at=0)


def test_a_removed_entry_has_its_wallet_and_its_sequence_number() -> None:
    assert entry_removal(journaled()) == EntryRemoval.of(TRANSFER.item(ALICE), 1, REMOVED_AT)


@pytest.mark.parametrize(
    ("parse", "other"),
    [
        (marker_removal, record(eventName="INSERT")),
        (marker_removal, record(eventName="MODIFY")),
        (marker_removal, keyed({"S": "USER#octocat"}, {"S": "VIEWS"})),
        (marker_removal, keyed({"S": "USER#WINDOW#1#x"}, {"S": "VIEWS"})),
        (marker_removal, keyed({"S": "WINDOWS"}, {"S": "VIEWS"})),
        (marker_removal, keyed({"S": "TIMER#1"}, {"S": "WINDOW"})),
        (entry_removal, journaled(eventName="INSERT")),
        (entry_removal, events.removal(1, f"WALLET#{ALICE}", "NONCE#1")),
        (entry_removal, events.removal(1, "USER#a", "TX#1")),
    ],
)
def test_another_change_is_no_removal(
    parse: Callable[[dict[str, Any]], object], other: dict[str, Any]
) -> None:
    assert parse(other) is None


@pytest.mark.parametrize(
    ("parse", "malformed"),
    [
        (marker_removal, {}),
        (marker_removal, without("eventName")),
        (marker_removal, without("dynamodb")),
        (marker_removal, record(dynamodb=None)),
        (marker_removal, keyed({"N": "1"}, {"S": "WINDOW"})),
        (marker_removal, keyed({"S": 1}, {"S": "WINDOW"})),
        (marker_removal, keyed({"S": "WINDOW"}, {"S": "WINDOW"})),
        (marker_removal, keyed({"S": "WINDOW#5"}, {"S": "WINDOW"})),
        (marker_removal, keyed({"S": "WINDOW#x#octocat"}, {"S": "WINDOW"})),
        (marker_removal, keyed({"S": "WINDOW##octocat"}, {"S": "WINDOW"})),
        *(
            (marker_removal, changing(SequenceNumber=n))
            for n in (None, 111, "1.5", "\u0661", "1" * 41)
        ),
        (entry_removal, events.removal(1, f"WALLET#{ALICE}", "TX#1")),
        (entry_removal, image(SK=None)),
        (entry_removal, image(amount=None)),
        (entry_removal, image(amount={"N": "0.5"})),
        (entry_removal, image(more={"BOOL": True})),
    ],
)
def test_a_record_with_unexpected_values_is_malformed(
    parse: Callable[[dict[str, Any]], object], malformed: dict[str, Any]
) -> None:
    with pytest.raises(MalformedError, match=r"^expected a stream record of this table: "):
        parse(malformed)
