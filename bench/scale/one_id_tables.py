"""The tables of one badge and of one wallet: upper bounds, and the rates that are simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.scale.figures import DAY_SECONDS, figure, seconds
from bench.scale.model import SIMULATED, Model, highest_carried, quotas
from bench.scale.one_id import CLIENT, WALLETS, WRITERS, Role, Wallet, simulate
from bench.scale.usage import transactions
from bench.scale.writers import CARRIED, IN_TIME
from chalicelib.counting.badge_count import MAX_LIVE
from chalicelib.settings import HOT_VIEWS
from simulation.report import Report

BATCH_RATES = (5, 10, 20, 40)
POSTING_RATES = (20, 40, 80, 120)
SLOW = 0.99
"""The share whose slowest member a table shows."""
LIMIT = f"carried: {CARRIED:.0%} are done within {IN_TIME:.0f} s, without a second run"


def reports(model: Model) -> Iterator[Report]:
    """Yield all tables of one id."""
    yield _one_id(model)
    yield _batches(model)
    yield _contended_badge(model)
    yield _wallet(model)
    yield _contended_wallet(model)


def _one_id(model: Model) -> Report:
    """Compare the phases of one id: not hot, becoming hot, hot, and never counted at once."""
    units, most, batch = model.units, quotas(), model.deployed.put_batch
    reads, writes = most["partition_reads"].default, most["partition_writes"].default
    becoming = model.becoming_hot(reads)
    live = (HOT_VIEWS - 1, model.live_when_hot(becoming), 0.0, float(MAX_LIVE))
    of_get = [units.read_of_get(views) for views in live]
    stored, counted = batch * units.view, units.own_of_hot_batch(batch)
    own = [stored, stored, counted, stored]
    by_reads = [reads / of_read for of_read in of_get]
    by_reads[1] = float(becoming)
    by_reads[2] = reads / (of_get[2] + transactions(batch) * units.look / batch)
    by_writes = [writes * batch / units_of for units_of in own]
    simulated = model.batches_carried(batch) * batch
    exact = model.exact_if_stored()
    fewest = [min(pair) for pair in zip(by_reads, by_writes, strict=True)]
    fewest[1], fewest[2] = min(fewest[1], simulated), min(fewest[2], simulated)
    fewest[3] = min(fewest[3], exact)
    rows = [
        ("live views", *map(figure, live)),
        ("read units of a GET", *map(figure, of_get)),
        ("upper bound: GETs a second, by the reads of a partition", *map(figure, by_reads)),
        (f"write units of its partition for {batch} views", *map(figure, own)),
        ("upper bound: views a second, by the writes of a partition", *map(figure, by_writes)),
        ("upper bound: views a second whose live ones are all read", "", "", "", figure(exact)),
        ("simulated: views a second that are counted", "", *[figure(simulated)] * 2, ""),
        ("the lowest of these", *map(figure, fewest)),
        ("views a day", *(f"{views * DAY_SECONDS:,.0f}" for views in fewest)),
    ]
    return Report(
        title="The highest rate of one badge, alone in its batches",
        head=("", "not hot yet", "becoming hot", "hot", "if nothing were counted at once"),
        rows=rows,
        notes=(
            f"hot from {HOT_VIEWS:,} live views on: {HOT_VIEWS / model.life:.2f} a second or more",
            f"becoming hot lasts {model.until_over:,.0f} s, and comes again after each hot hour",
        ),
    )


def _batches(model: Model) -> Report:
    units = model.units
    carried = [model.batches_carried(views) for views in SIMULATED]
    counted = [rate * views for rate, views in zip(carried, SIMULATED, strict=True)]
    return Report(
        title="A batch of a hot badge",
        head=("", *(f"of {views}" for views in SIMULATED)),
        rows=[
            ("write units", *(figure(units.hot_batch(views)) for views in SIMULATED)),
            (
                "of these, of its own partition",
                *(figure(units.own_of_hot_batch(views)) for views in SIMULATED),
            ),
            ("a view", *(f"{units.hot_batch(views) / views:.2f}" for views in SIMULATED)),
            ("simulated: batches a second that are carried", *map(figure, carried)),
            ("simulated: views a second that are carried", *map(figure, counted)),
        ],
        notes=(f"a stored view costs {units.view} unit, and its share of a marker and of a fold",),
    )


def _contended_badge(model: Model) -> Report:
    batch, visibility = model.deployed.put_batch, model.deployed.put_visibility_seconds
    return Report(
        title=f"A hot badge with batches of {batch}, simulated",
        head=(
            "batches a second",
            "views a second",
            "counted by the first delivery",
            "of these, a second",
            "attempts of a batch",
            "99% counted within s",
            "all counted within s",
        ),
        rows=[_badge_row(model, rate) for rate in BATCH_RATES],
        notes=(
            LIMIT,
            f"{WRITERS} batches at random times; an attempt is one transaction that is sent",
            f"a batch that failed is delivered again after {visibility} s",
        ),
    )


def _badge_row(model: Model, rate: int) -> Sequence[str]:
    batch = model.deployed.put_batch
    outcome = simulate(model.badge(batch), rate)
    return (
        figure(rate),
        figure(rate * batch),
        f"{outcome.at_first:.1%}",
        figure(outcome.at_first * rate * batch),
        f"{outcome.attempts:.2f}",
        seconds(outcome.slowest(SLOW)),
        seconds(outcome.slowest(1.0)),
    )


def _wallet(model: Model) -> Report:
    writes = quotas()["partition_writes"].default
    of_all = [Wallet(role, model.latency) for role in Role]
    units = [wallet.units() for wallet in of_all]
    rows = [
        ("write units of its partition for a posting", *(figure(own) for own, _ in units)),
        ("of these, of the wallet's item", *(figure(item) for _, item in units)),
        (
            "upper bound: postings a second, by the writes of a partition",
            *(figure(writes / own) for own, _ in units),
        ),
        (
            "upper bound: postings a second, by the writes of its item",
            *(figure(writes / item) for _, item in units),
        ),
        (
            "simulated: postings a second that are carried",
            *(figure(highest_carried(wallet)) for wallet in of_all),
        ),
    ]
    return Report(
        title="The highest rate of one wallet",
        head=("", *(str(role) for role in Role)),
        rows=rows,
        notes=(LIMIT, f"the other wallet of each transfer is one of {WALLETS}"),
    )


def _contended_wallet(model: Model) -> Report:
    return Report(
        title="A wallet that is the source of transfers, simulated",
        head=(
            "postings a second",
            "done by the first request",
            "of these, a second",
            "attempts of a posting",
            "99% done within s",
            "done, if clients repeat",
            "99% done within s",
        ),
        rows=[_wallet_row(model, rate) for rate in POSTING_RATES],
        notes=(
            "a client that repeats waits as long as the 503 says, 1 s, up to three times",
            "without that, a posting that gets a 503 is never done",
        ),
    )


def _wallet_row(model: Model, rate: int) -> Sequence[str]:
    once = simulate(Wallet(Role.SOURCE, model.latency), rate)
    repeated = simulate(Wallet(Role.SOURCE, model.latency, CLIENT), rate)
    return (
        figure(rate),
        f"{once.done:.1%}",
        figure(once.done * rate),
        f"{once.attempts:.2f}",
        seconds(once.slowest(SLOW)),
        f"{repeated.done:.1%}",
        seconds(repeated.slowest(SLOW)),
    )
