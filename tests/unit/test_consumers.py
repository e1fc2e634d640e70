"""What `put_views` and `fold_views` answer and count, over a real table."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chalicelib import resources, telemetry
from chalicelib.concurrency import Each
from chalicelib.ports import Item, Key, Put, Refused, Table, Unavailable, Write
from chalicelib.settings import Settings
from chalicelib.views import counting, keys
from chalicelib.views.counting import Count
from chalicelib.views.fold import fold_views
from chalicelib.views.put import put_views
from chalicelib.views.view import View
from local.table import SqliteTable
from tests import events
from tests.unit.fakes import FakeQueue, FaultyTable, sqlite_table, told

NOW = 1_767_225_600.0
REDELIVERY = 300


@dataclass(frozen=True)
class Use:
    """A `resources.Resources`."""

    table: Table
    views_queue: FakeQueue
    settings: Settings = Settings(redelivery_seconds=REDELIVERY)  # noqa: RUF009  it is frozen
    each: Each = map
    ttl_lags: bool = True

    def clock(self) -> float:
        return NOW


@pytest.fixture
def table(tmp_path: Path) -> Iterator[SqliteTable]:
    with sqlite_table(tmp_path) as table:
        resources.use(Use(table, FakeQueue()))
        yield table
        resources.use(None)


@pytest.fixture
def counted(caplog: pytest.LogCaptureFixture) -> Iterator[dict[str, int]]:
    """The metrics of the one line that a handler writes."""
    values: dict[str, int] = {}

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            line = json.loads(telemetry.JsonFormatter().format(record))
            for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]:
                values[metric["Name"]] = line[metric["Name"]]

    handler = Collect()
    caplog.set_level(logging.INFO, telemetry.metrics.name)
    telemetry.metrics.addHandler(handler)
    yield values
    telemetry.metrics.removeHandler(handler)


def message(age: float, badge_id: str = "a") -> str:
    """A view taken so many seconds ago."""
    return View.taken(badge_id, 0, NOW - age).to_message()


def refusing(*partitions: str) -> Callable[[Sequence[Write]], None]:
    """What refuses every write to some partitions."""

    def step(writes: Sequence[Write]) -> None:
        for write in writes:
            if write.key.pk in partitions:
                raise Refused(f"no right to {write.key.pk}")

    return step


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("age", "receives", "late"),
    [(301, 1, 0), (299, 2, 0), (300, 2, 0), (301, 2, 1), (86_400, 9, 1)],
)
def test_a_message_that_comes_again_after_the_bound_is_counted_as_late(
    counted: dict[str, int], age: float, receives: int, late: int
) -> None:
    batch = {"m": message(age), "bad": "{"}
    put_views(events.sqs_event(batch, receives=receives), None)
    assert counted == {"views_put": 1, "malformed": 1, "late_redeliveries": late}


def test_a_view_twice_in_a_batch_is_put_once_and_both_messages_are_done(
    table: SqliteTable, counted: dict[str, int]
) -> None:
    body = message(0)
    assert put_views(events.sqs_event({"m": body, "n": body}), None) == {"batchItemFailures": []}
    assert table.count("USER#a", after="USER", limit=9) == 1
    assert counted == {"views_put": 1, "malformed": 0, "late_redeliveries": 0}


def test_a_batch_with_a_hot_view_folds_its_badge_early(
    table: SqliteTable, counted: dict[str, int]
) -> None:
    """Of two views that are over, and two of a badge that is not hot."""
    for badge_id in ("hot", "cool"):
        for age in (900, 901):
            key = keys.view(badge_id, View.taken(badge_id, 0, NOW - age).ulid)
            table.write(Put({"PK": key.pk, "SK": key.sk, "ttl": int(NOW) - 1}))
    batch = {
        "m": View.taken("hot", 2, NOW, hot=int(NOW) + 3_600).to_message(),
        "n": message(0, "cool"),
    }
    assert put_views(events.sqs_event(batch), None) == {"batchItemFailures": []}
    assert counting.read(table, "hot") == Count(folded=3, live=0, floor=3)
    assert counting.read(table, "cool") == Count(folded=0, live=3, floor=1)
    assert counted == {
        "views_put": 2,
        "malformed": 0,
        "late_redeliveries": 0,
        "views_folded_early": 2,
    }


def test_where_ttl_is_prompt_it_removes_what_is_over(
    table: SqliteTable, counted: dict[str, int]
) -> None:
    """There it holds a view whose message may come again, which nothing here knows."""
    resources.use(Use(table, FakeQueue(), ttl_lags=False))
    old = keys.view("hot", View.taken("hot", 0, NOW - 900).ulid)
    table.write(Put({"PK": old.pk, "SK": old.sk, "ttl": int(NOW) - 1}))
    put_views(
        events.sqs_event({"m": View.taken("hot", 1, NOW, hot=int(NOW) + 3_600).to_message()}), None
    )
    assert counting.read(table, "hot") == Count(folded=1, live=1, floor=2)
    assert "views_folded_early" not in counted


@pytest.mark.parametrize("failure", [Unavailable("no answer"), TypeError("no number")])
def test_a_hot_badge_that_can_not_be_folded_early_delays_no_view(
    table: SqliteTable,
    counted: dict[str, int],
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
) -> None:
    class Unread(FaultyTable):
        def get(self, _: Key) -> Item | None:
            raise failure

    resources.use(Use(Unread(table), FakeQueue()))
    view = View.taken("hot", 1, NOW, hot=int(NOW) + 3_600)
    answer = put_views(events.sqs_event({"m": view.to_message()}), None)
    assert answer == {"batchItemFailures": []}
    assert counting.read(table, "hot").folded == 1
    assert "views_folded_early" not in counted
    assert told(caplog) == [
        (logging.WARNING, "a hot badge is not folded yet", {"reason": str(failure)})
    ]


def test_a_malformed_message_is_told_by_its_id_and_reported_alone(
    table: SqliteTable, caplog: pytest.LogCaptureFixture
) -> None:
    batch = {"bad": "{", "m": message(0)}
    answer = put_views(events.sqs_event(batch), None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "bad"}]}
    assert table.count("USER#a", after="USER", limit=9) == 1
    assert told(caplog) == [(logging.ERROR, "a malformed message", {"message_id": "bad"})]


def test_a_view_that_is_not_stored_is_reported_with_all_its_messages_and_told_why(
    table: SqliteTable, counted: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    resources.use(Use(FaultyTable(table, before_write=refusing("USER#a")), FakeQueue()))
    batch = {"m": message(0), "n": message(0, "b")}
    answer = put_views(events.sqs_event({**batch, "again": batch["m"]}), None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m"}, {"itemIdentifier": "again"}]}
    assert counted == {"views_put": 1, "malformed": 0, "late_redeliveries": 0}
    assert told(caplog) == [
        (logging.WARNING, "a view is not stored yet", {"reason": "no right to USER#a"})
    ]


@dataclass(frozen=True)
class Context:
    """What Lambda hands to a handler."""

    function_name: str = "vu-mi-prod-a-consumer"
    aws_request_id: str = "request-7"


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("consumer", "event", "name"),
    [
        (put_views, events.sqs_event({"bad": "{"}), "put_views"),
        (fold_views, events.stream_event([{"eventName": "REMOVE"}]), "fold_views"),
    ],
)
def test_a_line_is_named_for_its_function_as_lambda_names_it(
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


def test_an_empty_batch_is_a_success(table: SqliteTable) -> None:
    assert put_views(events.sqs_event({}), None) == {"batchItemFailures": []}
    assert fold_views(events.stream_event([]), None) == {"batchItemFailures": []}
    assert table.query("USER#a", limit=9) == []


def test_a_fold_counts_what_it_folded_dropped_and_could_not_read(
    table: SqliteTable, counted: dict[str, int]
) -> None:
    """3 removals, one of them delivered before: 2 folded, 1 dropped, 1 malformed."""
    views = [json.loads(message(age))["view"] for age in (3, 2, 1)]
    records = [events.removal(n, "USER#a", f"VIEW#{ulid}") for n, ulid in enumerate(views, 9)]
    fold_views(events.stream_event(records[:1]), None)
    assert counted == {
        "views_folded": 1,
        "duplicates_dropped": 0,
        "malformed": 0,
        "fold_lag_seconds": 0,
    }
    fold_views(events.stream_event([*records, {"eventName": "REMOVE"}]), None)
    assert counted == {
        "views_folded": 2,
        "duplicates_dropped": 1,
        "malformed": 1,
        "fold_lag_seconds": 0,
    }
    badge = table.get(Key("USER#a", "USER"))
    assert badge is not None
    assert badge["count"] == 3


def test_badges_that_are_not_folded_come_again_from_the_first_of_them_all(
    table: SqliteTable, counted: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    """Of the removals 8 to 12 of a, b, c, b and c only a's are folded: b's first is 9."""
    resources.use(Use(FaultyTable(table, before_write=refusing("USER#b", "USER#c")), FakeQueue()))
    records = [
        events.removal(n, f"USER#{badge_id}", f"VIEW#{json.loads(message(n))['view']}")
        for n, badge_id in enumerate("abcbc", 8)
    ]
    answer = fold_views(events.stream_event(records), None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "9"}]}
    assert counted["views_folded"] == 1
    assert told(caplog) == [
        (
            logging.WARNING,
            "a badge is not folded yet",
            {"reason": repr(Refused(f"no right to {pk}"))},
        )
        for pk in ("USER#b", "USER#c")
    ]


def test_malformed_records_are_told_whole_and_passed_over(
    table: SqliteTable, counted: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    malformed: list[dict[str, Any]] = [
        {"eventName": "REMOVE"},
        {"eventName": "REMOVE", "dynamodb": 1},
    ]
    removed = events.removal(1, "USER#a", f"VIEW#{json.loads(message(9))['view']}")
    answer = fold_views(events.stream_event([*malformed, removed]), None)
    assert answer == {"batchItemFailures": []}
    assert (counted["views_folded"], counted["malformed"]) == (1, 2)
    assert told(caplog) == [
        (logging.ERROR, "a malformed stream record", {"record": record}) for record in malformed
    ]
    assert counting.read(table, "a").folded == 1


def test_the_lag_of_a_batch_is_that_of_its_first_removal(
    table: SqliteTable, counted: dict[str, int]
) -> None:
    """One view removed 90 s ago, one 20 s ago, one the clock has not come to: 90."""
    assert table.query("USER#a", limit=9) == []
    records = [
        events.removal(n, "USER#a", f"VIEW#{json.loads(message(400))['view']}") for n in range(3)
    ]
    for record, ago in zip(records, (20, 90, -5), strict=True):
        record["dynamodb"]["ApproximateCreationDateTime"] = NOW - ago
    fold_views(events.stream_event(records), None)
    assert counted["fold_lag_seconds"] == 90


def test_a_record_that_does_not_say_when_it_was_removed_has_no_lag(
    table: SqliteTable, counted: dict[str, int]
) -> None:
    record = events.removal(1, "USER#a", f"VIEW#{json.loads(message(400))['view']}")
    del record["dynamodb"]["ApproximateCreationDateTime"]
    fold_views(events.stream_event([record]), None)
    assert counted["views_folded"] == 1
    assert counted["fold_lag_seconds"] == 0
    assert table.count("USER#a", after="", limit=9) > 0
