"""The tables of `cost` for views that depend on assumptions: cold starts, and the delay of TTL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bench.aws_events import WINDOWS
from bench.cost.bill import Usage, add_usages, per_view
from bench.cost.invocations import FOLD, GET, PUT
from bench.cost.simulate_views import MINUTES
from bench.cost.view_tables import MILLION, dollar
from bench.cost.view_usage import BUSY, DAY, QUIET, Counted, Run
from bench.stubbed_aws import BADGE_ID
from chalicelib.counting.badge_count import page_size
from simulation.report import Report

FUNCTIONS = (GET, PUT, FOLD)
MINUTE = 60
IDLE_MINUTES = (5, 10, 15)


def reports(designs: Sequence[Counted]) -> Iterator[Report]:
    """Yield the tables; the first design is this project's."""
    yield _starts(designs)
    yield _cold_starts(designs)
    yield _late_ttl(*designs)


def _starts(designs: Sequence[Counted]) -> Report:
    own = designs[0].bill.prices.assumed["runtime_init_ms"]
    return Report(
        title="A cold start, in ms",
        head=("function", "design", "INIT", "first event", "billed", "billed, INIT not faster"),
        rows=[_start_row(counted, function) for function in FUNCTIONS for counted in designs],
        notes=(
            "INIT and first event are processor time",
            f"{own} ms of Lambda's own are billed too",
        ),
    )


def _start_row(counted: Counted, function: str) -> Sequence[str]:
    bill = counted.bill
    measured = bill.prices.measured["start_ms"][function][bill.design]
    return (
        function,
        bill.design,
        f"{measured['init']:.0f}",
        f"{measured['first_event']:.0f}",
        f"{bill.start_ms(function):,}",
        f"{bill.start_ms(function, has_burst=False):,}",
    )


def _cold_starts(designs: Sequence[Counted]) -> Report:
    assumed = designs[0].bill.prices.assumed["idle_seconds"] // MINUTE
    cases = [
        (QUIET, assumed),
        *((BUSY, minutes) for minutes in IDLE_MINUTES),
    ]
    return Report(
        title="$ per million views for cold starts, in a stack with one badge",
        head=(
            "views a day",
            "idle minutes",
            *(f"cold {function}" for function in FUNCTIONS),
            *(counted.bill.design for counted in designs),
        ),
        rows=[
            *(_cold_row(designs, *case) for case in cases),
            _cold_row(designs, QUIET, assumed, has_burst=False),
            _cold_row(designs, BUSY, assumed, has_burst=False),
        ],
        notes=(f"the other tables have {assumed} minutes",),
    )


def _cold_row(
    designs: Sequence[Counted], run: Run, minutes: int, *, has_burst: bool = True
) -> Sequence[str]:
    idle = minutes * MINUTE
    return (
        run.label + ("" if has_burst else ", INIT not faster"),
        f"{minutes}",
        *(f"{designs[0].cold_share(run, function, idle):.2%}" for function in FUNCTIONS),
        *(
            dollar(
                counted.bill.prices.cost(counted.cold_starts(run, idle, has_burst=has_burst))
                * MILLION
            )
            for counted in designs
        ),
    )


def _late_ttl(ours: Counted, original: Counted) -> Report:
    return Report(
        title="$ per million views by the delay of TTL",
        head=(
            "views a day",
            "live views of vu-mi",
            "vu-mi",
            "live views of the original",
            "original",
        ),
        rows=[_late_row(ours, original, run) for run in ours.taken],
        notes=(
            f"TTL is {MINUTES.least // MINUTE} minutes late where the row does not say otherwise",
        ),
    )


def _late_row(ours: Counted, original: Counted, run: Run) -> Sequence[str]:
    delay = WINDOWS.window / 2 + (run.lag.least + run.lag.most) / 2
    per_second = run.views_a_day / DAY
    in_the_original = per_second * delay
    live = min(per_second * (delay + WINDOWS.grace), page_size(BADGE_ID) - 1)
    punctual = replace(run, lag=MINUTES)
    get = original.get_of(round(in_the_original))
    return (
        run.label,
        f"{live:,.0f}",
        _dollars(ours, _of_a_view(ours, run, round(live))),
        f"{in_the_original:,.0f}",
        _dollars(original, original.of_a_view(get, punctual)),
    )


def _of_a_view(counted: Counted, run: Run, live_views: int) -> Usage:
    """Return the usage of a view with the average GET of the simulation, not with one GET."""
    gets = [replace(one, records=live_views) for one in counted.taken[run] if one.function == GET]
    get = per_view(counted.bill.usage(gets), len(gets))
    return add_usages(get, counted.after_the_get(run), counted.kept(), counted.cold_starts(run))


def _dollars(counted: Counted, usage: Usage) -> str:
    return dollar(counted.bill.prices.cost(usage) * MILLION)
