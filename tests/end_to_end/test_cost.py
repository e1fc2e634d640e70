"""The cost of a view: the page equals the program's output, and the program counts correctly."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import moto  # noqa: F401  it answers only sessions of botocore that are made after its import
import pytest

from bench.cost import deployed as deploying
from bench.cost import simulate_events
from bench.cost.__main__ import BEGIN, main
from bench.cost.bill import PRICES, Bill, Prices, add_usages, interpolated, per_view
from bench.cost.deployed import Deployed
from bench.cost.event_tables import EVENT_SERVICES
from bench.cost.event_usage import CountedEvents, Rush
from bench.cost.invocations import (
    ACCEPT,
    API,
    ARCHIVE,
    AUTHORIZE,
    DISTRIBUTE,
    FIRE,
    FOLD,
    GET,
    PUT,
    SWEEP,
    Design,
    Invocation,
    Mailbox,
)
from bench.cost.metering import Request, Written
from bench.cost.simulate_events import LOG, QUEUE, EventRun, event_run_of
from bench.cost.simulate_views import START, Badge, Lag, badge_of, view_items
from bench.cost.view_tables import SERVICES, polls_of_a_queue
from bench.cost.view_usage import get_with_folded
from bench.cost.wallet_usage import Bank, bank_of
from bench.stubbed_aws import BADGE_ID
from chalicelib.api import TABLE
from chalicelib.aws.clients import aws_client
from chalicelib.aws.sqs import SqsQueue
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Key, number
from deploy import http_api
from simulation.environment import isolate
from simulation.report import END, put_into

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "cost.md"
DECISION = ROOT / "docs" / "decisions" / "http-api.md"
NUMBER = re.compile(r"\d[\d,]*\d(?:\.\d+)?|\d+\.\d+")
PARTITION = f"USER#{BADGE_ID}"


@pytest.fixture(scope="module")
def deployed() -> Deployed:
    return Deployed.read()


@pytest.fixture
def badge(deployed: Deployed) -> Iterator[Badge]:
    with badge_of(Design.vu_mi, deployed) as badge:
        yield badge


@pytest.fixture
def environment() -> Iterator[None]:
    """Give the environment of the program, in which the original's module makes its clients."""
    with patch.dict(os.environ):
        isolate(os.environ)
        yield


def runs_of(function: str, invocations: list[Invocation]) -> list[Invocation]:
    return [run for run in invocations if run.function == function]


def writes_of(run: Invocation) -> list[tuple[str, int]]:
    """Return the units of each item that a run wrote, by sort key; of views, only the prefix."""
    return [
        (re.sub("VIEW#.*", "VIEW#", written.key.sk), written.units)
        for request in run.requests
        for written in request.written
    ]


def operations_of(run: Invocation) -> list[tuple[str, float]]:
    """Return the requests of a run, each with the units that it read."""
    return [(request.operation, request.read_units) for request in run.requests]


@pytest.mark.usefixtures("environment")
def test_the_page_equals_the_output_of_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`python -m bench.cost docs/cost.md` updates the page."""
    reading, tables = PAGE.read_text().split(BEGIN)
    page = tmp_path / "cost.md"
    page.write_text(f"{reading}{BEGIN}old\n{END}{tables.split(END)[1]}")
    assert main([str(page)]) == 0
    assert page.read_text() == PAGE.read_text()
    assert capsys.readouterr().out == tables.split(END)[0]


def test_the_text_of_the_page_has_only_figures_of_its_tables() -> None:
    reading, tables = PAGE.read_text().split(BEGIN)
    assert len(set(NUMBER.findall(reading))) > 60
    assert set(NUMBER.findall(reading)) <= set(NUMBER.findall(tables))


def test_the_answer_of_the_page_has_the_figures_of_its_rows() -> None:
    [busy] = [row for row in rows_of("$ per million views") if row[:3] == ["10", "1,000", "vu-mi"]]
    [quiet] = [row for row in rows_of("$ per million views") if row[:3] == ["10", "1", "vu-mi"]]
    months = {row[0]: row[2] for row in rows_of("$ a month by the views of all badges")}
    unused = [
        rows_of(f"$ a month of a stack that nobody uses: {stack}")[-1][-1]
        for stack in ("badges alone", "events and wallets too")
    ]
    attack = rows_of("$ a day, if every accepted request is a view of a new id")[-1]
    events = [row[-1] for row in rows_of("$ per million events")[:2]]
    deposit, transfer = (row[-1] for row in rows_of("What is asked of wallets, and its units")[:2])
    text = " ".join(PAGE.read_text().partition("\n## ")[0].split())
    for figures in (
        f"**A million views cost ${busy[-1]}**",
        (
            f"with 10,000 views a day costs ${months['10,000']} a month, one with 100,000 costs"
            f" ${months['100,000']}."
        ),
        f"costs ${unused[0]} a month beyond what AWS gives for free, and ${unused[1]} with events",
        f"**A badge with one view a day** costs ${quiet[-1]} per million views",
        f"by views of new ids costs up to ${attack[2]} a day on one route",
        f"on all of them, ${attack[-1]}",
        (
            f"**An event** costs ${events[0]} to ${events[1]} per million, **a transfer** between"
            f" wallets ${transfer}, **a deposit** ${deposit}."
        ),
        (
            f"of the ${busy[-1]} are SQS (${busy[5]}), the API (${busy[3]}) and writes to the table"
            f" (${busy[7]})"
        ),
    ):
        assert figures in text


def test_new_tables_replace_those_in_a_page() -> None:
    page = f"before\n{BEGIN}old\n{END}after\n"
    assert put_into(page, "new\n", BEGIN) == f"before\n{BEGIN}new\n{END}after\n"
    assert put_into(put_into(page, "a\n", BEGIN), "b\n", BEGIN) == put_into(page, "b\n", BEGIN)


def test_one_view_takes_one_get_one_put_and_one_fold(badge: Badge) -> None:
    get, put, fold = badge.take(views=1, seconds=86_400)
    assert [get.function, put.function, fold.function] == [GET, PUT, FOLD]
    assert (get.sends, put.sends, fold.sends) == (1, 0, 0)
    assert operations_of(get) == [("Query", 1)]
    assert operations_of(put) == [("BatchWriteItem", 0)] * 2
    assert operations_of(fold) == [("GetItem", 1), ("Query", 1), ("UpdateItem", 0)]
    assert writes_of(get) == []
    assert writes_of(put) == [("WINDOW", 1), ("VIEW#", 1)]
    assert writes_of(fold) == [("VIEWS", 1)]


def test_a_fold_of_one_badge_costs_the_write_of_its_summary(badge: Badge) -> None:
    """It is one unit for any number of views: 60 in a minute are in one window."""
    [fold] = runs_of(FOLD, badge.take(views=60, seconds=60))
    assert fold.records == 60
    assert writes_of(fold) == [("VIEWS", 1)]
    assert sum(units for _, units in operations_of(fold)) == 2


def test_the_first_fold_of_a_day_puts_the_day_before(badge: Badge) -> None:
    badge.take(views=1, seconds=86_400)
    badge.agenda.now = START + 86_400
    [fold] = runs_of(FOLD, badge.take(views=1, seconds=60))
    assert writes_of(fold) == [("DAY#2026-01-01", 1), ("VIEWS", 1)]


def test_views_of_one_window_share_a_marker(badge: Badge) -> None:
    """Five views come in 2 s: those at 0.2, 0.6 and 1.0 are in one second, the others in the next.

    The first three see no view of the window, the others see the earlier views.
    """
    puts = runs_of(PUT, badge.take(views=5, seconds=2))
    assert [put.records for put in puts] == [3, 2]
    assert [writes_of(put) for put in puts] == [
        [("WINDOW", 1), *[("VIEW#", 1)] * 3],
        [("VIEW#", 1)] * 2,
    ]


def test_views_of_one_window_are_folded_together_and_of_another_alone(badge: Badge) -> None:
    """Views come at 75, 225, 375 and 525 s: two in each of two windows."""
    folds = runs_of(FOLD, badge.take(views=4, seconds=600))
    assert [fold.records for fold in folds] == [2, 2]


def test_a_removal_that_comes_after_a_later_one_costs_one_read(deployed: Deployed) -> None:
    """The marker of the second window is removed first, so its fold counts the views of both."""
    with badge_of(Design.vu_mi, deployed, Lag(600, 1_800)) as badge:
        folds = runs_of(FOLD, badge.take(views=24, seconds=7_200))
    assert sum(fold.records for fold in folds) == len(folds) == 24
    assert {1, 2} <= {fold.records for fold in folds}
    for fold in folds:
        if fold.records == 0:
            assert operations_of(fold) == [("GetItem", 1)]


def test_views_are_kept_after_their_fold(badge: Badge) -> None:
    badge.take(views=30, seconds=86_400)
    summary = badge.runner.table.get(Key(PARTITION, "VIEWS"))
    assert summary is not None
    assert number(summary, "count") == 30
    assert badge.runner.table.count(PARTITION, first="VIEW#", last="VIEW#~", limit=99) == 30


def test_a_get_costs_by_the_views_that_are_live(badge: Badge) -> None:
    """The page is a unit.

    A view is 68 bytes: of 150 live views the page has 54, and 97 are counted.
    """
    few, many = badge.get_with(10), badge.get_with(150)
    assert operations_of(few) == [("Query", 1)]
    assert operations_of(many) == [("Query", 1), ("Query", 2)]
    assert (few.records, many.records) == (10, 150)


@pytest.mark.parametrize("folded", [0, 100, 10_000])
def test_a_get_costs_a_unit_however_many_folded_views_there_are(badge: Badge, folded: int) -> None:
    table, mark = badge.runner.table, int(badge.agenda.now) * 1000
    table.put_all(list(view_items(folded, mark)))
    table.put_all([{"PK": PARTITION, "SK": "VIEWS", "count": folded, "watermark": mark}])
    assert operations_of(badge.get_with(0)) == [("Query", 1)]
    assert operations_of(badge.get_with(53)) == [("Query", 1)]


def test_a_metered_table_in_memory_counts_the_same_as_a_meter_on_moto(deployed: Deployed) -> None:
    """Views are stored and folded; events are swept, and attempted again after a failure."""
    runs: list[list[Invocation]] = []
    for on_moto in (False, True):
        runs.append(views_of(Design.vu_mi, deployed, on_moto=on_moto))
        for life in (simulate_events.far_ahead, simulate_events.failed_once):
            with event_run_of(deployed, on_moto=on_moto) as timers:
                life(timers, QUEUE)
                runs[-1] += [run for own in timers.invocations.values() for run in own]
    in_memory, moto_s = runs
    assert [units_of(run) for run in in_memory] == [units_of(run) for run in moto_s]


@pytest.mark.usefixtures("environment")
def test_the_table_in_memory_answers_the_original_as_moto_does(deployed: Deployed) -> None:
    in_memory, moto_s = (
        views_of(Design.original, deployed, on_moto=on_moto) for on_moto in (False, True)
    )
    assert list(map(units_of, in_memory)) == list(map(units_of, moto_s))
    assert list(map(writes_of, in_memory)) == list(map(writes_of, moto_s))


def views_of(
    design: Callable[[], Design], deployed: Deployed, *, on_moto: bool
) -> list[Invocation]:
    with badge_of(design, deployed, on_moto=on_moto) as badge:
        return [*badge.take(views=20, seconds=1_000), badge.get_with(100)]


def test_a_get_of_folded_views_costs_a_unit() -> None:
    assert [sum(r.read_units for r in get_with_folded(folded)) for folded in (0, 100, 2_000)] == [
        1,
        1,
        1,
    ]


def test_a_view_costs_less_than_its_targets() -> None:
    """The page has at most 1.7 write units a view at 1,000 views a day, and 4.0 at 1 a day."""
    rows = [[cell.strip() for cell in row.split("|")] for row in PAGE.read_text().splitlines()]
    units = {row[1]: float(row[3]) for row in rows if len(row) == 11 and row[2] == "vu-mi"}
    by_rate = [(label.split(", ")[0], value) for label, value in units.items()]
    quiet, busy = ([value for rate, value in by_rate if rate == own] for own in ("1", "1,000"))
    assert (len(quiet), len(busy)) == (2, 3)
    assert max(quiet) <= 4.0
    assert max(busy) <= 1.7


def test_a_view_costs_less_than_in_the_original_in_every_row() -> None:
    """With cold starts, and however late TTL is; and at most $4.60 a million at 1,000 a day."""
    dollars = rows_of("$ per million views")
    pairs = list(zip(dollars[::2], dollars[1::2], strict=True))
    assert [(ours[2], original[2]) for ours, original in pairs] == [("vu-mi", "original")] * 6
    assert all(float(ours[-1]) < float(original[-1]) for ours, original in pairs)
    [busy] = [ours for ours, _ in pairs if ours[:2] == ["10", "1,000"]]
    assert float(busy[-1]) <= 4.60
    late = rows_of("$ per million views by the delay of TTL")
    assert len(late) == 5
    assert all(float(ours) < float(original) for _, _, ours, _, original in late)


def rows_of(title: str) -> list[list[str]]:
    """Return the cells of a table of the page, without its head."""
    _, found = PAGE.read_text().split(f"\n## {title}\n")
    lines = [line for line in found.split("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_log_bytes_are_those_of_the_lines_that_were_written(badge: Badge) -> None:
    get, *consumers = badge.take(views=1, seconds=86_400)
    assert (get.log_bytes, get.metrics) == (0, frozenset())
    for run in consumers:
        assert 300 < run.log_bytes < 600
        assert run.metrics >= {{PUT: "views_put", FOLD: "views_folded"}[run.function]}


@pytest.mark.usefixtures("environment")
def test_the_original_puts_and_gets_and_puts(deployed: Deployed) -> None:
    with badge_of(Design.original, deployed) as badge:
        get, put, fold = badge.take(views=1, seconds=86_400)
    assert [(r.operation, r.read_units) for r in get.requests] == [("Query", 1)]
    assert writes_of(put) == [("VIEW#", 1)]
    assert [(r.operation, r.read_units, r.write_units) for r in fold.requests] == [
        ("GetItem", 1, 0),
        ("PutItem", 0, 1),
    ]


def test_a_design_that_loses_views_is_not_billed(badge: Badge) -> None:
    badge.runner.table.put_all([{"PK": PARTITION, "SK": "VIEWS", "frozen": 1}])
    with pytest.raises(RuntimeError, match="2 views were counted as 0"):
        badge.take(views=2, seconds=60)


# ---- an event, from its acceptance to its end


@pytest.fixture
def timers(deployed: Deployed) -> Iterator[EventRun]:
    with event_run_of(deployed) as timers:
        yield timers


def units_of(run: Invocation) -> list[tuple[str, float, int, int]]:
    """Return each operation with its units: read, written to the table, and to the index."""
    return [
        (
            request.operation,
            request.read_units,
            sum(write.units for write in request.written),
            sum(write.index_units for write in request.written),
        )
        for request in run.requests
    ]


READ, CLAIMED, MOVED = ("GetItem", 1, 0, 0), ("UpdateItem", 0, 1, 0), ("UpdateItem", 0, 1, 2)
"""An event is read and claimed. Then it succeeds or waits, with another key in the index."""


def test_an_event_due_soon_is_one_request_and_one_run(timers: EventRun) -> None:
    simulate_events.soon(timers, LOG)
    simulate_events.check_fired(timers, ["event"])
    [accept], [fire] = timers.invocations[ACCEPT], timers.invocations[FIRE]
    assert set(timers.invocations) == {ACCEPT, FIRE}
    assert units_of(accept) == [("PutItem", 0, 1, 1)]
    assert units_of(fire) == [READ, CLAIMED, MOVED]
    assert (accept.sends, fire.sends) == (1, 0)


def test_an_event_far_ahead_is_swept_and_distributed_too(timers: EventRun) -> None:
    """The sweep costs a message more than one that finds nothing."""
    timers.sweep()
    [idle] = timers.invocations.pop(SWEEP)
    simulate_events.far_ahead(timers, LOG)
    simulate_events.check_fired(timers, ["event"])
    runs = [
        run
        for function in (ACCEPT, SWEEP, DISTRIBUTE, FIRE)
        for run in timers.invocations[function]
    ]
    accept, sweep, distribute, fire = runs
    assert [run.sends for run in runs] == [0, 1, 1, 0]
    assert units_of(accept) == [("PutItem", 0, 1, 1)]
    assert sum(r.read_units for r in sweep.requests) == sum(r.read_units for r in idle.requests)
    assert distribute.requests == ()
    assert units_of(fire) == [READ, CLAIMED, MOVED]


def test_an_event_to_a_queue_is_one_message_more(timers: EventRun) -> None:
    simulate_events.soon(timers, QUEUE)
    simulate_events.check_fired(timers, ["event"])
    [fire] = timers.invocations[FIRE]
    assert fire.sends == 1
    assert units_of(fire) == [READ, CLAIMED, MOVED]


def test_a_failed_attempt_costs_as_much_as_the_last_one(timers: EventRun) -> None:
    """It sends two messages: one that the queue refuses, and one for the next attempt."""
    simulate_events.failed_once(timers, QUEUE)
    simulate_events.check_fired(timers, ["event"], tries=2)
    failed, succeeded = timers.invocations[FIRE]
    assert units_of(failed) == units_of(succeeded) == [READ, CLAIMED, MOVED]
    assert (failed.sends, succeeded.sends) == (2, 1)
    assert "attempts_failed" in failed.metrics


def test_a_sweep_without_events_queries_each_shard_twice_and_moves_its_cursor(
    timers: EventRun,
) -> None:
    """8 shards x 2 queries x 0.5 and 1 for the cursor are 9 units; nothing is sent or logged."""
    timers.sweep()
    [idle] = timers.invocations[SWEEP]
    assert units_of(idle) == [
        ("GetItem", 1, 0, 0),
        *[("Query", 0.5, 0, 0)] * 8,
        ("UpdateItem", 0, 1, 0),
        *[("Query", 0.5, 0, 0)] * 8,
    ]
    assert (idle.sends, idle.log_bytes) == (0, 0)


def test_events_due_together_are_fired_in_batches_of_ten(timers: EventRun) -> None:
    for place in range(25):
        timers.accept(f"e{place}", simulate_events.SOON, LOG)
    timers.run()
    simulate_events.check_fired(timers, [f"e{place}" for place in range(25)])
    fired = timers.invocations[FIRE]
    assert [run.records for run in fired] == [10, 10, 5]
    assert [len(run.requests) for run in fired] == [30, 30, 15]


def test_a_group_of_a_hundred_is_enqueued_in_batches_of_ten(timers: EventRun) -> None:
    at = int((timers.agenda.now + 240) * 1000) + 1
    [shard] = {event["batch"] for event in [simulate_events.far_off(0, at)]}
    same = [
        item
        for item in (simulate_events.far_off(n, at) for n in range(900))
        if item["batch"] == shard
    ]
    timers.runner.table.put_all(same[:100])
    [group] = timers.sweep(found=100)
    timers.distribute(group)
    [sweep], [distribute] = timers.invocations[SWEEP], timers.invocations[DISTRIBUTE]
    assert (sweep.sends, distribute.sends, distribute.records) == (1, 10, 100)


def test_an_event_that_was_not_delivered_is_not_billed(timers: EventRun) -> None:
    timers.runner.mailbox.closed.add("https://sqs.us-east-1.amazonaws.com/000000000000/orders")
    timers.accept("event", simulate_events.SOON, QUEUE)
    timers.run()
    with pytest.raises(RuntimeError, match="was not delivered"):
        simulate_events.check_fired(timers, ["event"])


def test_a_token_is_checked_by_one_read(timers: EventRun) -> None:
    timers.authorize()
    [authorize] = timers.invocations[AUTHORIZE]
    assert [(one.operation, one.read_units) for one in authorize.requests] == [("GetItem", 1)]
    assert (authorize.sends, authorize.log_bytes) == (0, 0)


@pytest.mark.parametrize(("size", "requests"), [(10, 1), (65_536, 1), (65_537, 2), (131_073, 3)])
def test_a_message_is_billed_for_each_started_64_kb(size: int, requests: int) -> None:
    client, mailbox = aws_client("sqs"), Mailbox()
    with mailbox.receiving(client):
        SqsQueue(client, "https://sqs.example/queue").send("x" * size)
    sent, billed = mailbox.take()
    assert ([len(message.body) for message in sent], billed) == ([size], requests)
    assert mailbox.take() == ([], 0)


def test_a_refused_message_is_billed_too() -> None:
    url = "https://sqs.example/queue"
    client, mailbox = aws_client("sqs"), Mailbox(closed={url})
    with mailbox.receiving(client), pytest.raises(StorageError):
        SqsQueue(client, url).send("order")
    assert mailbox.take() == ([], 1)


def test_events_are_billed_for_the_additional_cost_of_their_sweep(bill: Bill) -> None:
    """A sweep makes 17 of the 19 queries anyway.

    The other two are one unit for two events: 0.5 each.
    """
    queries = [Request("Query", 0.5)] * 19
    idle, swept = Invocation(SWEEP, 0, tuple(queries[:17])), Invocation(SWEEP, 2, tuple(queries))
    rush = Rush([], swept, [], [], [])
    counted = CountedEvents(bill, {"life": [swept]}, idle, rush, 0, 0)
    assert counted.alone("life")["read_unit"] == 1
    assert counted.alone("life")["lambda_request"] == 0


def test_an_event_that_is_done_is_stored_with_its_entry_for_30_days(bill: Bill) -> None:
    """900 + 100 bytes and 24 + 100 of the index, for 720 of 730 hours; a backup has no index."""
    rush = Rush([], Invocation(SWEEP, 0), [], [], [])
    kept = CountedEvents(bill, {}, Invocation(SWEEP, 0), rush, 900, 24).kept()
    assert kept["stored_gb_month"] * 2**30 == pytest.approx(1_124 * 720 / 730)
    assert kept["pitr_gb_month"] * 2**30 == pytest.approx(1_000 * 720 / 730)


# ---- the requests of wallets


@pytest.fixture
def bank(deployed: Deployed) -> Iterator[Bank]:
    with bank_of(deployed) as bank:
        yield bank


def test_a_deposit_writes_a_nonce_an_entry_and_a_balance(bank: Bank) -> None:
    """It is a transaction, so each costs 2 units."""
    assert units_of(bank.deposit()) == [("TransactWriteItems", 0, 6, 0)]


def test_a_transfer_writes_a_nonce_two_entries_and_two_balances(bank: Bank) -> None:
    bank.deposit()
    transfer = bank.transfer()
    assert units_of(transfer) == [("TransactWriteItems", 0, 10, 0)]
    [request] = transfer.requests
    of_each = Counter[str]()
    for write in request.written:
        assert write.units == 2, "each item is below 1 KB"
        of_each[write.key.pk] += write.units
    source, target = (f"WALLET#{wallet_id}" for wallet_id in bank.wallets)
    assert of_each == {source: 6, target: 4}


def test_a_repeated_transfer_costs_as_much_as_the_first(bank: Bank) -> None:
    bank.deposit()
    bank.transfer()
    assert units_of(bank.transfer(again=True)) == [("TransactWriteItems", 0, 10, 0)]


def test_a_refusal_costs_the_transfer_that_failed_and_its_nonce(bank: Bank) -> None:
    """First the five items of the transfer, then a nonce and the balance that is checked."""
    refused = bank.transfer(status=409)
    assert [units for _, _, units, _ in units_of(refused)] == [10, 4]


def test_a_page_of_a_journal_is_a_wallet_and_one_query(bank: Bank) -> None:
    """3 entries in all: under 4 KB."""
    for _ in range(3):
        bank.deposit()
    assert [(what, read) for what, read, *_ in units_of(bank.get("transactions"))] == [
        ("GetItem", 1),
        ("Query", 1),
    ]


def test_a_batch_of_entries_is_one_object_and_no_request_to_the_table(bank: Bank) -> None:
    run = bank.archive(100)
    assert (run.requests, run.sends, len(run.objects)) == ((), 0, 1)
    assert 100 * 30 < run.objects[0] < 100 * 60


def test_an_object_is_billed_with_its_waiting_time(bill: Bill) -> None:
    """For 100 records: 11 ms of CPU at its share, and 20 ms for each of two objects."""
    run = Invocation(ARCHIVE, 100, objects=(1_000, 2_000))
    assert bill.billed_ms(run) == math.ceil(11 * 1_769 / bill.deployed.memory_mb + 40)
    assert bill.usage([run])["s3_put_request"] == 2


def test_a_posting_with_an_unexpected_response_is_not_billed(bank: Bank) -> None:
    with pytest.raises(RuntimeError, match="a handler answered"):
        bank.transfer()


# ---- the bill


def prices(**assumed: Any) -> Prices:
    """Return prices. A run takes 1 ms, a record 0.1, DynamoDB 5, SQS 10 and S3 20 ms."""
    functions = (GET, PUT, FOLD, SWEEP, FIRE, ARCHIVE)
    cpu_ms = {function: {"vu-mi": {"0": 1.0, "100": 11.0}} for function in functions}
    waiting = {
        "waiting_ms": {"dynamodb": 5, "sqs": 10, "s3": 20},
        "vcpu_mb": 1_769,
        "hours_a_month": 730,
    }
    usd = {name: 1.0 for names in SERVICES.values() for name in names} | {"s3_put_request": 1.0}
    return Prices("here", "now", usd, {}, {"cpu_ms": cpu_ms}, {**waiting, **assumed})


@pytest.fixture
def bill(deployed: Deployed) -> Bill:
    return Bill(prices(), deployed, "vu-mi")


def test_a_run_is_billed_for_its_cpu_share_and_its_waiting_time(bill: Bill) -> None:
    """1 ms at 512 / 1,769 of a vCPU takes 3.46 ms. With one query and one send it is 18.46 ms.

    That is billed as 19 ms of half a GB.
    """
    run = Invocation(GET, 0, (Request("Query", 1),), sends=1)
    assert bill.gb_seconds(run) == pytest.approx(0.019 * 0.5)


def test_a_batch_is_billed_for_its_records(bill: Bill) -> None:
    """1 ms and 20 x 0.1 ms are 3 ms; at the share they take 10.37 ms. With two requests: 20.37 ms.

    That is billed as 21 ms.
    """
    run = Invocation(PUT, 20, (Request("UpdateItem"), Request("BatchWriteItem")))
    assert bill.gb_seconds(run) == pytest.approx(0.021 * 0.5)


def test_events_that_are_fired_concurrently_wait_together(bill: Bill) -> None:
    """Of ten events, eight are claimed concurrently: two rounds of three requests and a message.

    1 ms and 10 x 0.1 ms at the share are 6.91 ms; 2 x (3 x 5 + 10) = 50 ms: 56.91 ms, billed as 57
    ms.
    """
    run = Invocation(FIRE, 10, (Request("UpdateItem"),) * 30, sends=10)
    assert bill.gb_seconds(run) == pytest.approx(0.057 * 0.5)


def test_a_get_is_billed_for_a_request_a_message_and_its_units(bill: Bill) -> None:
    run = Invocation(GET, 0, (Request("Query", 2), Request("Query", 1)), sends=1, log_bytes=2**20)
    usage = bill.usage([run])
    assert usage["http_api_request"] == usage["lambda_request"] == usage["sqs_request"] == 1
    assert (usage["read_unit"], usage["write_unit"]) == (3, 0)
    assert usage["log_gb"] == 1 / 1024


@pytest.mark.parametrize(("records", "polls"), [(1, 2), (10, 2), (11, 4), (100, 20)])
def test_a_batch_is_received_and_deleted_in_batches_of_ten(
    bill: Bill, records: int, polls: int
) -> None:
    assert bill.usage([Invocation(PUT, records)])["sqs_request"] == polls
    assert bill.usage([Invocation(FIRE, records)])["sqs_request"] == polls
    assert bill.usage([Invocation(FOLD, records)])["sqs_request"] == 0


def test_runs_are_billed_in_total_and_by_view(bill: Bill) -> None:
    write = Request("UpdateItem", written=(Written(Key("a", "b"), 3),))
    usage = bill.usage([Invocation(PUT, 1, (write,)), Invocation(FOLD, 1, (write, write))])
    assert (usage["write_unit"], usage["lambda_request"]) == (9, 2)
    assert per_view(usage, 2)["write_unit"] == 4.5
    assert add_usages(usage, {"write_unit": 1.0})["write_unit"] == 10


@pytest.mark.parametrize(("at", "ms"), [(0, 1), (5, 2), (10, 3), (15, 4), (20, 5), (40, 9)])
def test_cpu_time_is_interpolated_between_two_sizes(at: int, ms: float) -> None:
    assert interpolated({0: 1.0, 10: 3.0, 20: 5.0}, at) == ms


def test_every_price_has_its_source() -> None:
    content = json.loads(PRICES.read_text())
    assert all(price["usd"] > 0 and price["source"] for price in content["prices"].values())
    assert {name for names in EVENT_SERVICES.values() for name in names} <= set(content["prices"])
    assert set(content["free_each_month"]) - {"source"} <= {
        *content["prices"],
        "lambda_gb_second",
    }


# ---- the deployed resources


def test_an_attack_is_bound_by_the_limits_of_all_routes(deployed: Deployed) -> None:
    """Each route has the limit of the stage for itself; `$default` is one of them."""
    made = len(http_api.routes(TABLE.routes)) + 1
    assert deployed.routes == made
    for rate, one, one_dollars, total, total_dollars in rows_of(
        "$ a day, if every accepted request is a view of a new id"
    ):
        views, requests = (int(cell.replace(",", "")) for cell in (one, total))
        assert (views, requests) == (int(rate) * 86_400, int(rate) * 86_400 * made)
        dollars = [float(cell.replace(",", "")) for cell in (one_dollars, total_dollars)]
        assert dollars[1] == pytest.approx(dollars[0] * made, rel=0.001)


def test_an_alarm_costs_by_its_metrics(deployed: Deployed) -> None:
    """One metric alone and three in an expression are four."""
    config, template = files()
    resources = template["Resources"]
    for name in [name for name in resources if name.endswith("Alarm")]:
        del resources[name]
    resources["One"] = alarm(MetricName="Latency")
    metrics = [{"Id": f"m{n}", "MetricStat": {}} for n in range(3)]
    resources["Three"] = alarm(Metrics=[{"Id": "all", "Expression": "m0 + m1 + m2"}, *metrics])
    assert Deployed.of(config, template).unused.alarm_metrics == 4
    assert deployed.unused.alarm_metrics > 4


def test_an_event_source_with_metrics_costs_five_of_them(deployed: Deployed) -> None:
    """That of the archive has them, for its alarm."""
    assert deployed.unused.mapping_metrics == 5
    config, template = files()
    sources: dict[str, Any] = {"Stream": {"Properties": {"MetricsConfig": {}}}}
    template["Resources"]["Other"] = {"Properties": {"Events": sources}}
    assert Deployed.of(config, template).unused.mapping_metrics == 10


def test_every_queue_that_runs_a_function_is_polled(deployed: Deployed) -> None:
    """These are the queues of views, of groups of events, and of events."""
    assert deployed.unused.polled_queues == 3
    config, template = files()
    sources = {"Sqs": {"Properties": {"Queue": "a fourth"}}, "Stream": {"Properties": {}}}
    template["Resources"]["Other"] = {"Properties": {"Events": sources}}
    assert Deployed.of(config, template).unused.polled_queues == 4


def test_a_stack_of_badges_alone_that_nobody_uses_is_free_of_charge(deployed: Deployed) -> None:
    """It has one queue to poll, no sweep, and no more alarms and dashboards than are free."""
    assert deployed.unused.is_swept
    alone, free = deployed.badges_alone, Prices.read().free
    assert (alone.polled_queues, alone.mapping_metrics, alone.is_swept) == (1, 0, False)
    assert alone.alarm_metrics <= free["alarm_metric_month"]
    assert alone.dashboards <= free["dashboard_month"]
    polls = alone.polled_queues * polls_of_a_queue(Prices.read())
    assert polls <= free["sqs_request"]


def test_functions_have_their_names_in_the_template(deployed: Deployed) -> None:
    """Each log line has the function's name."""
    events = {AUTHORIZE, ACCEPT, SWEEP, DISTRIBUTE, FIRE}
    assert set(deployed.function_names) == {GET, API, PUT, FOLD, ARCHIVE, *events}
    assert deployed.function_names[ACCEPT] == deployed.function_names[API]
    assert all(name.startswith("vu-mi-prod") for name in deployed.function_names.values())


def unfiltered(resources: dict[str, Any], function: str = "FoldViews") -> None:
    [source] = resources[function]["Properties"]["Events"].values()
    del source["Properties"]["FilterCriteria"]


def archiving_views(resources: dict[str, Any]) -> None:
    unfiltered(resources, "ArchiveEntries")


def logging_each_run(resources: dict[str, Any]) -> None:
    resources["PutViews"]["Properties"]["LoggingConfig"]["SystemLogLevel"] = "INFO"


def distributing_together(resources: dict[str, Any]) -> None:
    [source] = resources["DistributeTimers"]["Properties"]["Events"].values()
    source["Properties"]["BatchSize"] = 10


def with_a_composite_alarm(resources: dict[str, Any]) -> None:
    resources["Any"] = {"Type": "AWS::CloudWatch::CompositeAlarm", "Properties": {}}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (unfiltered, "not filtered for fold_views"),
        (archiving_views, "not filtered for archive_entries"),
        (logging_each_run, "logs each run of put_views"),
        (with_a_composite_alarm, "no price"),
        (distributing_together, "distributed together"),
    ],
)
def test_a_template_with_another_cost_is_an_error(
    change: Callable[[dict[str, Any]], None], says: str
) -> None:
    config, template = files()
    change(template["Resources"])
    with pytest.raises(RuntimeError, match=says):
        Deployed.of(config, template)


def alarm(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::CloudWatch::Alarm", "Properties": properties}


def files() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a copy of the files that a test may change.

    It goes through JSON, so that no two parts of the template are one object.
    """
    config = json.loads((deploying.FOLDER / "config.json").read_text())
    return config, json.loads(json.dumps(deploying.read_template()))
