"""The scaling estimates: the page equals the program's output, and the handlers match the model."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import moto  # noqa: F401  it answers only sessions of botocore that are made after its import
import pytest

from bench import aws_events as events
from bench.aws_events import WINDOWS
from bench.cost.deployed import Deployed
from bench.cost.hot import Hour, lived
from bench.cost.invocations import GET, Design
from bench.cost.metered_handlers import Machine, Requests, machine_of
from bench.cost.simulate_views import START, Agenda, badge_of
from bench.scale import __main__ as scale
from bench.scale.__main__ import BEGIN
from bench.scale.model import (
    HOTTEST,
    Model,
    Traffic,
    fold_batches,
    highest,
    highest_carried,
    in_a_batch,
    in_tiers,
    most_of_one_id,
    quotas,
    shards,
    stages,
    tiers,
)
from bench.scale.one_id import simulate
from bench.scale.tables import SIZES, traffic_of, used
from bench.scale.usage import transactions
from bench.stubbed_aws import BADGE_ID
from chalicelib.aws.consumers import fold_views, put_views
from chalicelib.counting import keys
from chalicelib.settings import HOT_VIEWS
from simulation.logs import logging_put_back
from simulation.report import END, publish

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "scale.md"
NUMBER = re.compile(r"\d[\d,]*\d(?:\.\d+)?|\d+\.\d+")
PARTITION = keys.partition(BADGE_ID)
SECONDS_UNTIL_FOLD = WINDOWS.window + WINDOWS.grace
"""Seconds until all views of a window that begins can be folded."""


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with logging_put_back():
        yield scale.model()


@pytest.fixture
def agenda() -> Agenda:
    return Agenda()


@pytest.fixture
def machine(agenda: Agenda) -> Iterator[Machine]:
    with machine_of(lambda: agenda.now) as machine:
        yield machine


def badge_ids(count: int) -> list[str]:
    return [f"{BADGE_ID}/{place}" for place in range(count)]


def put(machine: Machine, ids: Sequence[str], now: float, *, hot: bool = False) -> Requests:
    """Put a batch of messages, with one view for each badge."""
    return machine.run(put_views, events.views(ids, now, hot=hot))


def fold(machine: Machine, ids: Sequence[str], now: float) -> Requests:
    """Fold the last windows of these badges in one batch, after TTL has removed their markers."""
    return machine.run(fold_views, events.removals(ids, now))


def writes(run: Requests, partition: str = "") -> int:
    """Return the units of all writes, or of those to one partition."""
    return sum(
        write.units
        for request in run
        for write in request.written
        if write.key.pk.startswith(partition)
    )


def reads(run: Requests) -> float:
    return sum(request.read_units for request in run)


# ---- the page


def test_the_page_has_the_tables_that_the_program_makes(model: Model) -> None:
    """`python -m bench.scale docs/scale.md` updates the page."""
    _, printed = PAGE.read_text().split(BEGIN)
    assert scale.tables(model) == printed.split(END)[0]


def test_the_program_writes_its_tables_into_the_files_that_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "scale.md"
    page.write_text(f"before\n{BEGIN}old\n{END}after\n")
    publish("new\n", [str(page)], BEGIN)
    assert page.read_text() == f"before\n{BEGIN}new\n{END}after\n"
    assert capsys.readouterr().out == "new\n"


def test_the_text_of_the_page_has_only_figures_of_its_tables() -> None:
    reading, tables = PAGE.read_text().split(BEGIN)
    assert len(set(NUMBER.findall(reading))) > 30
    assert set(NUMBER.findall(reading)) <= set(NUMBER.findall(tables))


def rows_of(title: str) -> dict[str, list[str]]:
    """Return the cells of a table of the page, by the first of each row."""
    found = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in found.splitlines() if line.startswith("|")]
    return {first.strip(): [cell.strip() for cell in cells] for first, *cells in rows}


def test_the_answer_of_the_page_has_the_figures_of_its_rows() -> None:
    text = " ".join(PAGE.read_text().partition("\n## ")[0].split())
    dollars = {size: rows_of("$ a month")[f"{size:,}"][-2] for size in SIZES[1:]}
    alone = rows_of("The highest rate of one badge, alone in its batches")
    among = rows_of("The hottest id")[f"{SIZES[-1]:,}"][4]
    [*_, wallet] = rows_of("The highest rate of one wallet").values()
    for figures in (
        f"fit into the stack as it is deployed. They cost ${dollars[SIZES[1]]} a month.",
        f"and a warm table. They cost ${dollars[SIZES[2]]}.",
        f"one of Lambda. They cost ${dollars[SIZES[3]]}.",
        f"carries {alone['the lowest of these'][1]} views a second,",
        f"views a second, which are {alone['views a day'][1]} a day",
        f"Among a billion views of other badges it carries {among} a second.",
        f"**One wallet** carries about {min(wallet, key=int)} postings a second",
    ):
        assert figures in text


def test_the_limits_have_that_of_one_badge(model: Model) -> None:
    carried = model.becoming_hot(quotas()["partition_reads"].default)
    limits = (ROOT / "docs" / "limits.md").read_text()
    assert f"| one badge | up to {carried:,} views a second," in limits


def test_the_limits_have_that_of_one_wallet() -> None:
    [*_, carried] = rows_of("The highest rate of one wallet").values()
    told = f"ne wallet takes about {min(carried, key=int)} postings a second"
    assert told in (ROOT / "docs" / "limits.md").read_text()
    assert told in (ROOT / "docs" / "wallets.md").read_text()


def test_every_quota_has_its_source() -> None:
    assert all(quota.source and quota.default > 0 for quota in quotas().values())


# ---- units, compared with the handlers over the simulated table


@pytest.mark.parametrize(("views", "badges"), [(1, 1), (37, 5), (100, 1), (100, 100)])
def test_a_batch_of_cool_badges_writes_what_the_model_says(
    model: Model, machine: Machine, views: int, badges: int
) -> None:
    """Each view costs one unit and so does the marker of each window; no unit is read."""
    ids = [badge_ids(badges)[place % badges] for place in range(views)]
    run = put(machine, ids, START)
    assert writes(run) == model.units.put_batch(views, badges)
    assert reads(run) == 0


@pytest.mark.parametrize(("views", "badges"), [(1, 1), (50, 1), (100, 1), (100, 7), (100, 100)])
def test_a_fold_costs_what_the_model_says(
    model: Model, machine: Machine, agenda: Agenda, views: int, badges: int
) -> None:
    ids = [badge_ids(badges)[place % badges] for place in range(views)]
    put(machine, ids, START)
    agenda.now += SECONDS_UNTIL_FOLD
    run = fold(machine, badge_ids(badges), agenda.now)
    assert writes(run) == badges * model.units.count
    assert reads(run) == badges * model.units.read_of_fold(views / badges)


@pytest.mark.parametrize(
    ("views", "takes"), [(1, 1), (37, 1), (98, 1), (99, 2), (100, 2), (196, 2), (197, 3)]
)
def test_a_batch_of_a_hot_badge_costs_what_the_model_says(
    model: Model, machine: Machine, views: int, takes: int
) -> None:
    """One transaction has 98 views: 2 units for the marker of each, and 2 for the summary."""
    run = put(machine, [BADGE_ID] * views, START, hot=True)
    assert writes(run) == model.units.hot_batch(views)
    assert writes(run, PARTITION) == model.units.own_of_hot_batch(views)
    assert reads(run) == takes * model.units.look
    assert transactions(views) == takes
    assert sum(request.operation == "TransactWriteItems" for request in run) == takes


def test_a_get_reads_as_much_as_the_model_says(model: Model) -> None:
    """This uses the metered simulator. docs/cost.md has the cost of 7,999 live views."""
    with badge_of(Design.vu_mi, model.deployed) as badge:
        badge.take(views=1, seconds=60)
        for live in (0, 10, 53, 54, 55, 100, 150, 500, 1_157):
            assert reads(badge.get_with(live).requests) == model.units.read_of_get(live)
    assert model.units.read_of_get(7_999) == 131


def test_no_view_is_in_an_index(model: Model) -> None:
    with badge_of(Design.vu_mi, model.deployed) as badge:
        runs = badge.take(views=2, seconds=60)
    written = [write for run in runs for request in run.requests for write in request.written]
    assert {write.index_units for write in written} == {0}


# ---- averages, compared with the handlers over time


def test_a_badge_at_a_steady_rate_costs_what_the_model_says(model: Model) -> None:
    """50 views come in 3,000 s, one every 60 s: a window has 5, which are folded together.

    1 + 2 / 5 = 1.4. In the model views come at random, so some windows have none.
    """
    with badge_of(Design.vu_mi, model.deployed) as badge:
        runs = badge.take(views=50, seconds=3_000)
    units = sum(writes(run.requests) for run in runs)
    rate = 50 / 3_000
    load = model.load(Traffic(50, 1), rate)
    assert units / 50 == pytest.approx(1.4)
    assert load.writes / rate == pytest.approx(units / 50, rel=0.005)
    put_ms = [model.bill.billed_ms(run) for run in runs if run.function == "put_views"]
    assert max(put_ms) == model.put_ms(1, 1)
    gets = [model.bill.billed_ms(run) for run in runs if run.function == GET]
    assert model.get_ms() in gets


def test_markers_and_folds_of_many_badges_are_as_many_as_the_model_says(
    model: Model, machine: Machine, agenda: Agenda
) -> None:
    """500 badges have views by Zipf and at random, in batches of 100, all in one window."""
    chance, traffic, views = random.Random(7), Traffic(0, 500), 2_000  # noqa: S311  nothing hangs on it
    weights = [1 / rank for rank in range(1, 501)]
    ids = chance.choices(badge_ids(500), weights, k=views)
    batches = [ids[start : start + 100] for start in range(0, views, 100)]
    for batch in batches:
        put(machine, batch, START)
    agenda.now += SECONDS_UNTIL_FOLD
    folds = writes(fold(machine, sorted(set(ids)), agenda.now)) / model.units.count
    groups = traffic.groups()
    of_a_window = sum(group.badges * in_a_batch(group.share, views) for group in groups)
    assert folds == pytest.approx(of_a_window, rel=0.03)


def test_a_badge_that_becomes_hot_reads_and_writes_what_the_model_says(model: Model) -> None:
    """5 views a second come from a mark on. They are stored for 200 s and folded after 900 s."""
    seconds, rate = 960, 5
    hour, kept = lived(seconds, HOT_VIEWS, rate)
    assert kept == rate * seconds
    cycle = model.cycle(rate, standing=WINDOWS.window + WINDOWS.grace - HOT_VIEWS / rate)
    assert sum(map(reads, hour.gets)) / seconds == pytest.approx(
        cycle.read_of_get(seconds), rel=0.01
    )
    stored, at_once = HOT_VIEWS, seconds - HOT_VIEWS / rate
    expected = stored * model.units.view + at_once * model.units.hot_batch(rate)
    assert sum(map(writes, hour.others)) == pytest.approx(expected, rel=0.01)


def test_a_partition_reads_at_most_its_quota_at_the_limit_of_one_id(model: Model) -> None:
    """The simulator delivers after a second, the model after milliseconds, so more are live."""
    most = quotas()["partition_reads"].default
    carried = model.becoming_hot(most)
    hours = {rate: becoming_hot(rate) for rate in (carried, 180)}
    asked = {rate: rate * max(map(reads, hour.gets)) for rate, hour in hours.items()}
    assert asked[carried] <= most < asked[180]
    assert hours[carried].most_live >= HOT_VIEWS
    assert hours[carried].inexact == 0
    assert carried < 180


def becoming_hot(visitors: int) -> Hour:
    agenda = Agenda()
    with machine_of(lambda: agenda.now) as machine:
        hour = Hour(machine, agenda, visitors)
        hour.live_through(20)
    return hour


# ---- the model by itself


def test_all_shares_are_one_and_groups_are_close_to_each_badge_by_itself() -> None:
    for exponent in (1.0, 0.8):
        groups = Traffic(0, 20_000, exponent).groups()
        assert sum(group.share * group.badges for group in groups) == pytest.approx(1)
        assert sum(group.badges for group in groups) == 20_000
        first = 1 / sum(rank**-exponent for rank in range(1, 20_001))
        assert groups[0].share == pytest.approx(first, rel=0.001)


def test_a_view_a_day_shares_nothing_and_many_fill_their_batches(model: Model) -> None:
    """A view, its marker, the count and the day are 4 units, as in docs/cost.md.

    Views come at random, so with one view a day, more than a third share a day; with one in 100
    days, few do.
    """
    assert model.load(Traffic(1, 1), 1e-7).writes * 1e7 == pytest.approx(4, rel=0.01)
    busy = model.load(traffic_of(SIZES[-1]), 10_000)
    assert busy.batch == model.deployed.put_batch


def test_a_hot_badge_reads_one_unit_once_its_views_have_ended(model: Model) -> None:
    """(40 s x 8.8 + 750 s x 17 + 2,850 s x 1) / 3,640 s: about 4.4 units."""
    cycle = model.cycle(25)
    assert (cycle.warming, cycle.standing, cycle.quiet) == (40, 750, 2_850)
    assert (cycle.standing_reads, cycle.quiet_reads) == (17, 1)
    assert cycle.warming_reads == pytest.approx(8.8, abs=0.1)
    assert cycle.read_of_get() == pytest.approx((40 * 8.8 + 750 * 17 + 2_850) / 3_640, rel=0.01)


def test_a_badge_is_hot_from_as_many_live_views_on_as_the_handlers_say(model: Model) -> None:
    """A view is live for 150 s of its window, 600 s of grace, and 1,200 s of TTL: 1,950 s."""
    assert model.life == 1_950
    below, above = (model.load(Traffic(0, 1), live / 1_950) for live in (999, 1_001))
    assert below.hot_batches == 0
    assert below.stored * 1_950 == pytest.approx(999)
    assert above.hot_batches > 0
    assert above.stored < below.stored


def test_a_hot_badge_costs_the_sum_of_its_cycle(model: Model) -> None:
    """25 views a second come in 5 batches of 5, for 3,640 s.

    Stored: 1,000 views, and a marker and a fold for each window that the 40 s touch: 1.13 on
    average. Then for 3,600 s each batch reads once and writes a summary and 5 markers, 2 + 10
    units. For 750 s each batch reads twice more, to see that no view can be folded yet.
    """
    load = model.load(Traffic(0, 1), 25)
    folds, days = 40 / 300 + 1, 3_640 / 86_400
    assert load.writes * 3_640 == pytest.approx(1_000 + folds * 2 + days + 3_600 * 5 * 12)
    gets = 25 * model.cycle(25).read_of_get()
    others = folds * (1 + 15) + 3_600 * 5 + 750 * 5 * 2
    assert (load.reads - gets) * 3_640 == pytest.approx(others)


def test_few_markers_are_folded_in_a_batch_a_shard_and_window(model: Model) -> None:
    """4 shards in 5 s: 0.8 a second. With fewer markers, each has its own batch."""
    small = model.load(traffic_of(SIZES[0]), traffic_of(SIZES[0]).mean)
    assert fold_batches(model, small) == pytest.approx(4 / 5)
    one = model.load(Traffic(0, 1), 0.1)
    assert fold_batches(model, one) == pytest.approx(1 / 300)


def test_requests_and_runs_of_a_view_are_as_docs_cost_counts_them(model: Model) -> None:
    """A view alone takes 3 requests to SQS and 3 runs.

    In batches of 100 it takes 1 + 2 x 10 / 100 requests and 1 + 1 / 100 runs. With hundreds of
    markers, 1,000 in a batch are one run.
    """
    quiet = Traffic(1, 1)
    alone = used(model, quiet)
    assert alone["sqs_request"] / quiet.mean == pytest.approx(3)
    assert alone["lambda_request"] / quiet.mean == pytest.approx(3, rel=0.001)
    busy = traffic_of(SIZES[-1])
    shared = used(model, busy)
    assert shared["sqs_request"] / busy.mean == pytest.approx(1.2)
    assert 1.01 < shared["lambda_request"] / busy.mean < 1.02


def test_one_id_alone_is_bounded_by_its_reads_and_among_many_by_its_conflicts(
    model: Model,
) -> None:
    """Among others, an id is in few more batches a second than the simulation carries."""
    alone, among = (most_of_one_id(model, rate) for rate in (100, 34_722))
    assert alone == model.becoming_hot(3_000)
    assert among < alone
    batch = model.deployed.put_batch
    batches = 34_722 / batch * in_a_batch(among / 34_722, batch)
    assert batches == pytest.approx(model.batches_carried(2), rel=0.01)


def test_the_rate_that_is_carried_is_the_highest_of_its_steps(model: Model) -> None:
    badge = model.badge(model.deployed.put_batch)
    carried = highest_carried(badge)
    assert simulate(badge, carried).in_time >= 0.99 > simulate(badge, carried + 5).in_time
    assert model.batches_carried(98) == carried
    assert carried < model.batches_carried(10) <= model.batches_carried(1)


def test_the_simulation_has_the_latencies_of_the_prices_and_the_settings_of_the_stack(
    model: Model,
) -> None:
    """A round trip takes 5 ms. A function of 512 MB has 0.289 of a processor of 1,769 MB.

    `put_views` takes 0.21 ms for a view and 2.09 ms for a hundred.
    """
    latency = model.latency
    assert latency.round_trip == 0.005
    assert latency.with_more(1).fixed * 512 / 1_769 == pytest.approx(0.00021)
    assert latency.with_more(100).fixed * 512 / 1_769 == pytest.approx(0.00209)
    badge = model.badge(98)
    assert (badge.at_once, badge.visibility, badge.views) == (50, 121, 1)
    assert badge.latency == latency.with_more(97)


def test_the_api_is_the_first_limit_then_those_that_the_page_names(model: Model) -> None:
    of_all = {stage.name: stage for stage in stages(model, traffic_of(SIZES[-1]))}
    assert max(of_all.values(), key=lambda stage: stage.over).over == pytest.approx(
        3 * 10**9 / 86_400 / model.deployed.most_requests_a_second
    )
    short = {name for name, stage in of_all.items() if stage.over_quota > 1}
    assert short == {
        "requests a second to the API",
        "concurrent functions, ten requests a second each",
        "write units a second",
        "read units a second",
        HOTTEST,
    }
    small = stages(model, traffic_of(SIZES[0]))
    assert not [stage for stage in small if stage.over > 1]


def test_a_shard_takes_no_more_than_a_thousand_writes(model: Model) -> None:
    for size in SIZES:
        load = model.load(traffic_of(size), traffic_of(size).at_peak)
        assert load.writes / shards(load) <= 1_000
        assert shards(load) >= 4


def test_a_fold_of_many_badges_is_slower_than_of_one(model: Model) -> None:
    """1,000 markers of different badges take 3,000 requests, eight concurrently, plus CPU time."""
    waiting = 1_000 * 3 * 5 / 8
    assert model.fold_ms(1_000, 1_000) > waiting > 10 * model.fold_ms(1_000, 1)
    assert model.fold_a_second(1) == pytest.approx(1_000 * 1_000 / model.fold_ms(1_000, 1_000))


def test_each_tier_is_paid_for_by_its_own_price() -> None:
    """1,100 million: 333 x 3.50 + 667 x 2.80 + 100 x 2.38."""
    steps = tiers("rest_api_request")
    assert in_tiers(1.1e9, steps) == pytest.approx(333 * 3.5 + 667 * 2.8 + 100 * 2.38)
    assert in_tiers(1e6, steps) == pytest.approx(3.5)


@pytest.mark.parametrize("most", [0, 1, 2, 7, 8, 150])
@pytest.mark.parametrize("guess", [1, 2, 8, 100])
def test_the_highest_that_fits(most: int, guess: int) -> None:
    assert highest(lambda number: number <= most, guess) == most


def test_deployed_knows_the_window_and_the_shards_of_the_fold() -> None:
    deployed = Deployed.read()
    assert (deployed.fold_window_seconds, deployed.fold_batches_of_a_shard) == (5, 10)
