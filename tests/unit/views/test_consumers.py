"""What `put_views` and `fold_views` do, answer and count, over a real table."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.concurrency import Each
from chalicelib.settings import Settings
from chalicelib.storage.errors import Refused, Unavailable
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Write
from chalicelib.views import keys
from chalicelib.views.fold import fold_views
from chalicelib.views.put import put_views
from chalicelib.views.view import View
from simulation import aws_events as events
from simulation.aws_events import marker_record
from simulation.clocks import NOON, Clock
from simulation.logs import told
from simulation.queues import FakeQueue
from simulation.tables import FaultyTable, sqlite_table
from simulation.views import AT_NOON, BADGE, fold, shown, summary, ulid, view
from simulation.views import put_views as put_items
from vumi.storage.table import SqliteTable

MARK = int(NOON) + 300
"""The end of the window that begins at noon, in seconds."""
OVER = MARK + 600.0


@dataclass
class Use:
    """A `resources.Resources`."""

    table: Table
    clock: Clock = field(default_factory=Clock)
    views_queue: FakeQueue = field(default_factory=FakeQueue)
    settings: Settings = field(default_factory=Settings)
    each: Each = map


@pytest.fixture
def table(tmp_path: Path) -> Iterator[SqliteTable]:
    with sqlite_table(tmp_path) as opened:
        yield opened


@pytest.fixture
def use(table: SqliteTable) -> Iterator[Use]:
    used = Use(table)
    resources.use(used)
    yield used
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


def put(**messages: object) -> list[str]:
    """Deliver messages by their ids; return the ids of those that are to come again."""
    batch = {
        name: body.to_message() if isinstance(body, View) else body
        for name, body in messages.items()
    }
    answer = put_views(events.sqs_event(batch), None)
    assert set(answer) == {"batchItemFailures"}
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def deliver(*records: dict[str, Any]) -> list[str]:
    """Deliver stream records; return the sequence numbers that are reported."""
    answer = fold_views(events.stream_event(records), None)
    assert set(answer) == {"batchItemFailures"}
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def refusing(*partitions: str) -> Callable[[Sequence[Write]], None]:
    """Return what refuses every write to some partitions."""

    def step(writes: Sequence[Write]) -> None:
        for write in writes:
            if write.key.pk in partitions:
                raise Refused(f"no right to {write.key.pk}")

    return step


# ---- put_views


@pytest.mark.usefixtures("use")
def test_views_are_put_counted_or_reported_by_their_age(
    table: SqliteTable, counted: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    """A view that waits is nothing that anybody must look at."""
    batch = {"young": view(), "old": view(AT_NOON - 900_000), "waits": view(AT_NOON - 600_000)}
    assert put(**batch) == ["waits"]
    assert counted == {
        "views_put": 2,
        "views_waiting": 1,
        "malformed": 0,
        "views_folded_early": 0,
    }
    assert told(caplog) == []
    assert (shown(table), summary(table)["count"]) == (2, 1)


@pytest.mark.usefixtures("use")
def test_a_view_twice_in_a_batch_is_put_once_and_both_messages_are_done(
    table: SqliteTable, counted: dict[str, int]
) -> None:
    assert put(m=view(), n=view()) == []
    assert (shown(table), counted["views_put"]) == (1, 1)
    assert put(m=view(AT_NOON - 600_000), n=view(AT_NOON - 600_000)) == ["m", "n"]


def test_the_settings_say_how_old_a_young_view_may_be(use: Use, table: SqliteTable) -> None:
    use.settings = Settings(view_window_seconds=1, grace_seconds=2, retention_seconds=9)
    assert put(young=view(AT_NOON - 1_000), waits=view(AT_NOON - 1_001)) == ["waits"]
    assert table.get(keys.marker(BADGE, int(NOON))) is not None


@pytest.mark.usefixtures("use")
def test_a_malformed_message_is_told_by_its_id_and_reported_alone(
    table: SqliteTable, counted: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    assert put(bad="{", m=view()) == ["bad"]
    assert shown(table) == 1
    assert (counted["views_put"], counted["malformed"]) == (1, 1)
    assert told(caplog) == [(logging.ERROR, "malformed_message", {"message_id": "bad"})]


def test_a_view_that_is_not_stored_is_reported_with_all_its_messages_and_told_why(
    use: Use, counted: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    use.table = FaultyTable(use.table, before_write=refusing(keys.partition(BADGE)))
    bad, good = view(hot=True), view(badge_id="b", hot=True)
    assert put(m=bad, n=good, again=bad) == ["m", "again"]
    assert (counted["views_put"], counted["views_waiting"]) == (1, 0)
    assert told(caplog) == [
        (logging.WARNING, "view_not_stored", {"reason": "no right to USER#octocat"})
    ]


@pytest.mark.usefixtures("use")
def test_a_badge_whose_fold_is_overdue_is_folded_if_a_message_asks_for_it(
    table: SqliteTable, counted: dict[str, int]
) -> None:
    """Two views wait in each of two badges; only one is asked for, by two messages."""
    for badge_id in (BADGE, "hubot"):
        put_items(table, AT_NOON - 900_000, AT_NOON - 899_000, badge_id=badge_id)
    asks = [View(BADGE, ulid(AT_NOON, place), fold=True) for place in range(2)]
    assert put(m=asks[0], n=asks[1], other=view(badge_id="hubot")) == []
    assert (summary(table)["count"], summary(table, "hubot")) == (2, {})
    assert counted["views_folded_early"] == 2
    assert (shown(table), shown(table, "hubot")) == (4, 3)


@pytest.mark.parametrize("failure", [Unavailable("no answer"), TypeError("no number")])
def test_a_badge_that_can_not_be_folded_early_delays_no_view(
    use: Use,
    table: SqliteTable,
    counted: dict[str, int],
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
) -> None:
    def fail(method: str) -> None:
        if method == "query":
            raise failure

    use.table = FaultyTable(table, before_read=fail)
    assert put(m=View(BADGE, ulid(), fold=True)) == []
    assert shown(table) == 1
    assert counted["views_folded_early"] == 0
    assert told(caplog) == [(logging.WARNING, "badge_not_folded", {"reason": str(failure)})]


# ---- fold_views


def test_the_removal_of_a_marker_folds_its_badge_up_to_its_mark(
    use: Use, table: SqliteTable, counted: dict[str, int]
) -> None:
    use.clock.now = OVER + 300
    put_items(table, AT_NOON, AT_NOON + 1, MARK * 1000 + 1)
    record = marker_record(1, BADGE, MARK)
    record["dynamodb"]["ApproximateCreationDateTime"] = OVER + 300 - 7
    assert deliver(record) == []
    assert counted == {
        "views_folded": 2,
        "folds_postponed": 0,
        "malformed": 0,
        "fold_lag_seconds": 7,
    }
    assert (summary(table)["count"], summary(table)["watermark"]) == (2, MARK * 1000)
    assert shown(table) == 3
    assert deliver(record) == []
    assert counted["views_folded"] == 0
    assert table.get(keys.marker(BADGE, MARK)) is None


def test_of_the_removals_of_one_badge_the_last_mark_is_folded_once(
    use: Use, table: SqliteTable, counted: dict[str, int]
) -> None:
    """In whatever order the stream has them."""
    use.clock.now = OVER + 600
    put_items(table, *(AT_NOON + place * 300_000 + 1 for place in range(3)))
    watched = FaultyTable(table)
    use.table = watched
    assert deliver(*(marker_record(n, BADGE, MARK + n * 300) for n in (1, 2, 0))) == []
    assert (counted["views_folded"], len(watched.written)) == (3, 1)


def test_other_removals_and_changes_are_passed_over(use: Use, counted: dict[str, int]) -> None:
    use.clock.now = OVER
    put_items(use.table, AT_NOON)
    inserted = marker_record(1, BADGE, MARK) | {"eventName": "INSERT"}
    assert deliver(inserted, events.removal(2, *keys.view(BADGE, ulid()))) == []
    assert counted == {}
    assert summary(use.table) == {}


@pytest.mark.parametrize(
    "failure", [Unavailable("throttled"), Refused("no right"), RuntimeError("a bug")]
)
def test_a_badge_that_is_not_folded_has_its_marker_put_again_and_is_not_reported(
    use: Use,
    table: SqliteTable,
    counted: dict[str, int],
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
) -> None:
    """Reported, it would delay everybody else in its shard."""
    use.clock.now = OVER
    put_items(table, AT_NOON)
    put_items(table, AT_NOON, badge_id="hubot")

    def fail(writes: Sequence[Write]) -> None:
        if writes[0].key == keys.summary(BADGE):
            raise failure

    use.table = FaultyTable(table, before_write=fail)
    records = [marker_record(8, BADGE, MARK), marker_record(9, "hubot", MARK)]
    assert deliver(*records) == []
    assert (counted["views_folded"], counted["folds_postponed"]) == (1, 1)
    marker = table.get(keys.marker(BADGE, MARK)) or {}
    assert marker["ttl"] == int(OVER) + 600
    assert table.get(keys.marker("hubot", MARK)) is None
    reason = {"badge": BADGE, "reason": repr(failure)}
    assert told(caplog) == [(logging.ERROR, "badge_not_folded", reason)]
    use.table = table
    assert deliver(records[0]) == []
    assert summary(table)["count"] == 1


def test_a_fold_whose_grace_is_not_over_is_postponed(
    use: Use, table: SqliteTable, counted: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    """TTL's clock is ahead of this one by a second; what can be folded is folded."""
    use.clock.now = OVER - 1
    put_items(table, AT_NOON - 1, AT_NOON + 1)
    assert deliver(marker_record(1, BADGE, MARK)) == []
    assert (counted["views_folded"], counted["folds_postponed"]) == (1, 1)
    assert (table.get(keys.marker(BADGE, MARK)) or {})["ttl"] == int(OVER) - 1 + 600
    assert (summary(table)["count"], shown(table)) == (1, 2)
    assert told(caplog) == []
    use.clock.now = OVER + 600
    assert deliver(marker_record(2, BADGE, MARK)) == []
    assert summary(table)["count"] == 2


def test_a_grace_that_ends_while_its_badge_is_folded_was_not_over(
    use: Use, table: SqliteTable, counted: dict[str, int]
) -> None:
    """The fold has left the window's views: without the marker nobody would come for them."""
    use.clock.now = OVER - 0.001
    put_items(table, AT_NOON + 1)

    def pass_time(_: str) -> None:
        use.clock.now = OVER

    use.table = FaultyTable(table, before_read=pass_time)
    assert deliver(marker_record(1, BADGE, MARK)) == []
    assert counted["folds_postponed"] == 1
    assert table.get(keys.marker(BADGE, MARK)) is not None


def test_badges_that_take_no_marker_either_come_again_from_the_first_of_them_on(
    use: Use, table: SqliteTable, counted: dict[str, int]
) -> None:
    """Of the records 9 to 13 of a, b, c, b and c only a's is done: b's first is 10."""
    use.clock.now = OVER
    for badge_id in "abc":
        put_items(table, AT_NOON, badge_id=badge_id)
    refused = [keys.partition(badge) for badge in "bc"] + [
        keys.marker(badge, MARK).pk for badge in "bc"
    ]
    use.table = FaultyTable(table, before_write=refusing(*refused))
    records = [marker_record(n, badge_id, MARK) for n, badge_id in enumerate("abcbc", 9)]
    assert deliver(*reversed(records)) == ["10"]
    assert (counted["views_folded"], counted["folds_postponed"]) == (1, 0)
    use.table = table
    assert deliver(*records[1:]) == []
    assert [summary(table, badge)["count"] for badge in "abc"] == [1, 1, 1]


def test_views_that_were_folded_are_counted_though_the_marker_is_not_put_again(
    use: Use, table: SqliteTable, counted: dict[str, int]
) -> None:
    use.clock.now = OVER - 1
    put_items(table, AT_NOON - 1, AT_NOON + 1)
    use.table = FaultyTable(table, before_write=refusing(keys.marker(BADGE, MARK).pk))
    assert deliver(marker_record(1, BADGE, MARK)) == ["1"]
    assert counted["views_folded"] == 1


def test_malformed_records_are_told_whole_and_passed_over(
    use: Use, table: SqliteTable, counted: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    use.clock.now = OVER
    put_items(table, AT_NOON)
    malformed: list[dict[str, Any]] = [
        {"eventName": "REMOVE"},
        {"eventName": "REMOVE", "dynamodb": 1},
    ]
    assert deliver(*malformed, marker_record(1, BADGE, MARK)) == []
    assert (counted["views_folded"], counted["malformed"]) == (1, 2)
    assert told(caplog) == [
        (logging.ERROR, "malformed_stream_record", {"record": record}) for record in malformed
    ]


def test_the_lag_of_a_batch_is_that_of_its_first_removal(
    use: Use, table: SqliteTable, counted: dict[str, int]
) -> None:
    """One marker removed 90 s ago, one 20 s ago, one the clock has not come to: 90."""
    use.clock.now = OVER
    records = [marker_record(n, BADGE, MARK) for n in range(3)]
    for record, ago in zip(records, (20, 90, -5), strict=True):
        record["dynamodb"]["ApproximateCreationDateTime"] = OVER - ago
    deliver(*records)
    assert counted["fold_lag_seconds"] == 90
    put_items(table, MARK * 1000 + 1)
    use.clock.now = OVER + 300
    ahead = marker_record(4, BADGE, MARK + 300)
    ahead["dynamodb"]["ApproximateCreationDateTime"] = OVER + 305
    deliver(ahead)
    assert (counted["views_folded"], counted["fold_lag_seconds"]) == (1, 0)


def test_a_record_that_does_not_say_when_it_was_removed_has_no_lag(
    use: Use, table: SqliteTable, counted: dict[str, int]
) -> None:
    use.clock.now = OVER
    put_items(table, AT_NOON)
    record = marker_record(1, BADGE, MARK)
    del record["dynamodb"]["ApproximateCreationDateTime"]
    deliver(record)
    assert (counted["views_folded"], counted["fold_lag_seconds"]) == (1, 0)


def test_a_view_goes_its_whole_way_once(use: Use, table: SqliteTable) -> None:
    """Taken, put twice, folded, delivered again when it is old: it is one view all along."""
    removed = marker_record(1, BADGE, MARK)
    for now, is_put in (
        (NOON, True),
        (NOON + 250, True),
        (OVER, False),
        (OVER + 1, True),
        (OVER + 2, False),
    ):
        use.clock.now = now
        assert (put(m=view()) if is_put else deliver(removed)) == []
        assert shown(table) == 1
    assert fold(table, OVER + 9_000) == 0


# ---- both


@dataclass(frozen=True)
class Context:
    """What Lambda hands to a handler."""

    function_name: str = "vu-mi-prod-a-consumer"
    aws_request_id: str = "request-7"


@pytest.mark.usefixtures("use")
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


@pytest.mark.usefixtures("use")
def test_an_empty_batch_is_a_success(table: SqliteTable) -> None:
    assert (put(), deliver()) == ([], [])
    assert table.query(keys.partition(BADGE), limit=9) == []
