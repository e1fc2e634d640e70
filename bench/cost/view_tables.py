"""The tables of `cost` for views: their cost and usage, and the cost of an unused stack."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal

from bench.aws_events import WINDOWS
from bench.cost.bill import GB, HTTP, REST, Prices, Usage, add_usages
from bench.cost.deployed import Unused
from bench.cost.event_usage import STORED_OVERHEAD_BYTES, CountedEvents
from bench.cost.invocations import COUNT_OF_THE_ORIGINAL, Invocation
from bench.cost.metering import Request
from bench.cost.view_usage import BUSY, DAY, HOURS, LIVE_VIEWS, QUIET, RUNS, Counted, Run
from bench.stubbed_aws import BADGE_ID
from chalicelib.counting import keys
from chalicelib.counting.badge_count import page_size
from simulation.report import Report

FEW_LIVE, MOST_LIVE = min(LIVE_VIEWS), max(LIVE_VIEWS)
MILLION = 1_000_000
FIXED = ("", "a month", "$", "free a month", "$ beyond")
"""The columns of tables by the month."""
SERVICES = {
    "API Gateway": (REST, HTTP),
    "Lambda": ("lambda_request", "lambda_arm64_gb_second", "lambda_x86_64_gb_second"),
    "SQS": ("sqs_request",),
    "reads": ("read_unit",),
    "writes": ("write_unit",),
    "logs": ("log_gb",),
}
"""The services, with the names of their prices; reads and writes are DynamoDB's."""
VIEW_SERVICES = {
    **SERVICES,
    "15 days stored": ("stored_gb_month", "pitr_gb_month"),
    "cold starts": ("cold_start_arm64_gb_second", "cold_start_x86_64_gb_second"),
}
"""The same, the storage of a view with point-in-time recovery, and the cold starts."""
PURPOSES: Mapping[str, str | tuple[str, ...]] = {
    "the view": keys.VIEW,
    "the marker of its window": keys.WINDOW,
    "the count": (keys.SUMMARY, COUNT_OF_THE_ORIGINAL),
    "the day": keys.DAY,
}
"""The purposes of writes, with the prefixes of their sort keys."""
BADGES, DAYS = 1_000, 365
VIEWS_A_DAY = (1_000, 10_000, 100_000)
"""The views of all badges of a stack."""
REQUESTS_A_SECOND = (10, 100, 500)
"""Values of RequestsPerSecond; the last is the default."""


def reports(
    designs: Sequence[Counted], folded: Mapping[int, Sequence[Request]], events: CountedEvents
) -> Iterator[Report]:
    """Yield all tables of views; the first design is this project's, which also sweeps events."""
    yield _months(designs[0])
    yield _attacked(designs[0])
    yield _dollars(designs)
    yield _gets(designs)
    yield _gets_with_folded(folded)
    yield _views(designs)
    yield _writes(designs)
    yield _kept(designs[0])
    yield _alternatives(designs)
    deployed = designs[0].bill.deployed
    yield _unused("events and wallets too", deployed.unused, events)
    yield _unused("badges alone", deployed.badges_alone, events)
    yield _fixed(designs[0], events)


def _months(counted: Counted) -> Report:
    """Return the price of a month by the views of all badges, at the price of a busy badge."""
    days = float(counted.bill.prices.assumed["hours_a_month"]) / HOURS
    dollars = counted.bill.prices.cost(_busy(counted))
    return Report(
        title="$ a month by the views of all badges",
        head=("views a day", "views a month", "$"),
        rows=[
            (f"{views:,}", f"{views * days:,.0f}", dollar(views * days * dollars))
            for views in VIEWS_A_DAY
        ],
        notes=(
            f"each badge has {BUSY.views_a_day:,} views a day, of which {FEW_LIVE} are live",
            "beside it is what a stack costs that nobody uses; no free tier is subtracted",
        ),
    )


def _attacked(counted: Counted) -> Report:
    """Return the price of a day in which every request that the API accepts views a new id."""
    view = counted.of_a_view(counted.gets[FEW_LIVE], QUIET)
    costs = by_service(view, counted.bill.prices, VIEW_SERVICES)
    dollars = sum(costs.values()) - costs["cold starts"]
    routes = counted.bill.deployed.routes
    return Report(
        title="$ a day, if every accepted request is a view of a new id",
        head=(
            "RequestsPerSecond",
            "views a day on one route",
            "$",
            f"requests a day on all {routes} routes",
            "$ for all",
        ),
        rows=[_attacked_row(rate, routes, dollars) for rate in REQUESTS_A_SECOND],
        notes=(
            "each view as that of a badge with one view a day, without cold starts",
            "each route has this limit of its own, and AWS applies it by best effort",
            "each request as such a view; one that lacks the token of its route costs less",
        ),
    )


def _attacked_row(rate: int, routes: int, dollars: float) -> Sequence[str]:
    days = (rate * DAY, rate * DAY * routes)
    return f"{rate:,}", *(cell for day in days for cell in (f"{day:,}", dollar(day * dollars)))


def _dollars(designs: Sequence[Counted]) -> Report:
    rows = [
        _bill_row(counted, live_views, run)
        for run in RUNS
        for live_views in LIVE_VIEWS
        for counted in designs
    ]
    return Report(
        title="$ per million views",
        head=("live views", "views a day", "design", *VIEW_SERVICES, "together"),
        rows=rows,
        notes=(
            "reads and writes are DynamoDB's",
            f"so many views are live at {_rates(designs[0].bill.prices)} views a day",
        ),
    )


def _bill_row(counted: Counted, live_views: int, run: Run) -> Sequence[str]:
    usage = counted.of_a_view(counted.gets[live_views], run)
    costs = by_service(usage, counted.bill.prices, VIEW_SERVICES)
    dollars = [dollar(cost * MILLION) for cost in (*costs.values(), sum(costs.values()))]
    return (f"{live_views:,}", run.label, counted.bill.design, *dollars)


def by_service(
    usage: Usage, prices: Prices, services: Mapping[str, Sequence[str]] = SERVICES
) -> dict[str, float]:
    """Return the dollars by service."""
    return {
        service: prices.cost({name: usage[name] for name in names if name in usage})
        for service, names in services.items()
    }


def _rates(prices: Prices) -> str:
    """Format the rates of views, each live for half a window, the grace, and the delay of TTL."""
    seconds = WINDOWS.window / 2 + WINDOWS.grace + prices.assumed["ttl_delay_seconds"]
    rates = [f"{live_views * DAY / seconds:,.0f}" for live_views in LIVE_VIEWS]
    return f"{', '.join(rates[:-1])} and {rates[-1]}"


def _gets(designs: Sequence[Counted]) -> Report:
    return Report(
        title="A GET",
        head=("live views", "design", "requests", "read units", "billed ms"),
        rows=[_get_row(c, live_views) for live_views in LIVE_VIEWS for c in designs],
    )


def _get_row(counted: Counted, live_views: int) -> Sequence[str]:
    get = counted.gets[live_views]
    units = sum(request.read_units for request in get.requests)
    return (
        f"{live_views:,}",
        counted.bill.design,
        f"{len(get.requests)}",
        f"{units:g}",
        f"{_billed_ms(counted, [get]):.0f}",
    )


def _gets_with_folded(folded: Mapping[int, Sequence[Request]]) -> Report:
    return Report(
        title="A GET of vu-mi by the folded views that are still in the table",
        head=("folded views", "requests", "read units"),
        rows=[
            (f"{views:,}", f"{len(get)}", f"{sum(request.read_units for request in get):g}")
            for views, get in folded.items()
        ],
        notes=(f"a page has the summary and the newest {page_size(BADGE_ID) - 1} views",),
    )


def _billed_ms(counted: Counted, runs: Iterable[Invocation]) -> float:
    return sum(map(counted.bill.billed_ms, runs))


def _views(designs: Sequence[Counted]) -> Report:
    return Report(
        title="A view, from its GET to its fold",
        head=(
            "views a day",
            "design",
            "write units",
            "read units of the GET",
            "read units but for the GET",
            "requests to SQS",
            "runs of functions",
            "billed ms but for the GET",
            "bytes of log",
        ),
        rows=[_view_row(counted, run) for counted in designs for run in counted.taken],
    )


def _view_row(counted: Counted, run: Run) -> Sequence[str]:
    after = counted.after_the_get(run)
    usage = counted.of_a_view(counted.gets[min(LIVE_VIEWS)], run)
    return (
        run.label,
        counted.bill.design,
        f"{usage['write_unit']:.3f}",
        f"{counted.reads_of_get(run):.3f}",
        f"{after['read_unit']:.3f}",
        f"{usage['sqs_request']:.3f}",
        f"{usage['lambda_request']:.3f}",
        f"{_billed_ms(counted, counted.consumed(run)) / run.views:.1f}",
        f"{usage['log_gb'] * GB:,.0f}",
    )


def _writes(designs: Sequence[Counted]) -> Report:
    columns = [(counted, run) for counted in designs for run in counted.taken]
    rows = [
        (purpose, *(f"{_spent_on(purpose, *column):.3f}" for column in columns))
        for purpose in PURPOSES
    ]
    return Report(
        title="What the write units of a view are spent on",
        head=(
            "by views a day",
            *(f"{counted.bill.design}, {run.label}" for counted, run in columns),
        ),
        rows=rows,
        notes=(
            f"at {BUSY.views_a_day:,} a day a day ends here after {BUSY.views} views: too often",
        ),
    )


def _spent_on(purpose: str, counted: Counted, run: Run) -> float:
    units = [
        write.units
        for one in counted.consumed(run)
        for request in one.requests
        for write in request.written
        if write.key.sk.startswith(PURPOSES[purpose])
    ]
    return sum(units) / run.views


def _kept(counted: Counted) -> Report:
    """Return the cost of keeping stored views, and the markers of views counted at once."""
    kept = counted.kept()
    dollars = {name: counted.bill.prices.cost({name: kept[name]}) * MILLION for name in kept}
    return Report(
        title="What it costs to keep a view after its fold",
        head=("", ""),
        rows=[
            ("bytes of a view", f"{counted.sizes[keys.VIEW]:,}"),
            ("bytes that DynamoDB adds to an item", f"{STORED_OVERHEAD_BYTES:,}"),
            ("days", f"{WINDOWS.retention / DAY:g}"),
            ("$ per million views", dollar(dollars["stored_gb_month"])),
            ("$ per million views, point-in-time recovery", dollar(dollars["pitr_gb_month"])),
            *(
                (f"GB at {views:,} views a day", f"{_gb_kept(counted, views):.4f}")
                for views in (BUSY.views_a_day, MILLION)
            ),
        ],
    )


def _gb_kept(counted: Counted, views_a_day: int) -> float:
    size = counted.sizes[keys.VIEW] + STORED_OVERHEAD_BYTES
    return views_a_day * WINDOWS.retention / DAY * size / GB


def _alternatives(designs: Sequence[Counted]) -> Report:
    columns: Mapping[str, Callable[[Counted], str]] = {
        f"$ per million views: {FEW_LIVE} live, {BUSY.views_a_day:,} a day": lambda c: _total(
            _busy(c), c
        ),
        "the same behind a REST API": lambda c: _total(_renamed(_busy(c), HTTP, REST), c),
        "the same behind an HTTP API": lambda c: _total(_renamed(_busy(c), REST, HTTP), c),
        f"$ per million views: {MOST_LIVE:,} live, {BUSY.views_a_day:,} a day": _of_hot_badge,
        "of these, the reads of the GET": _reads_of_hot_badge,
        "live views at which reads cost as much as all else": _equal_share,
    }
    return Report(
        title="Alternatives, and where the reads take over",
        head=("", *(counted.bill.design for counted in designs)),
        rows=[(what, *map(cell, designs)) for what, cell in columns.items()],
    )


def _busy(counted: Counted) -> Usage:
    return counted.of_a_view(counted.gets[FEW_LIVE], BUSY)


def _renamed(usage: Usage, before: str, after: str) -> Usage:
    """Return the usage with the requests to one kind of API as requests to another."""
    return {after if name == before else name: quantity for name, quantity in usage.items()}


def _of_hot_badge(counted: Counted) -> str:
    return _total(counted.of_a_view(counted.gets[MOST_LIVE], BUSY), counted)


def _reads_of_hot_badge(counted: Counted) -> str:
    usage = counted.bill.usage([counted.gets[MOST_LIVE]])
    return _total({"read_unit": usage["read_unit"]}, counted)


def _equal_share(counted: Counted) -> str:
    """Find by bisection the live views at which reads cost as much as the rest.

    The cost of reads grows with each live view, other costs hardly grow.
    """

    def reached(live_views: int) -> bool:
        usage = counted.of_a_view(counted.get_of(live_views), BUSY)
        costs = by_service(usage, counted.bill.prices, VIEW_SERVICES)
        return costs["reads"] >= sum(costs.values()) / 2

    return f"{bisect_left(range(MOST_LIVE + 1), True, key=reached):,}"  # noqa: FBT003


def _total(usage: Usage, counted: Counted) -> str:
    return dollar(counted.bill.prices.cost(usage) * MILLION)


def _fixed(counted: Counted, events: CountedEvents) -> Report:
    prices = counted.bill.prices
    used = {
        "custom metrics, each written every hour": (
            "custom_metric_month",
            _metrics(counted, events),
        ),
        f"a year of {BADGES:,} badges, GB stored": ("stored_gb_month", _stored_gb(counted)),
        "the same for point-in-time recovery, GB": ("pitr_gb_month", _stored_gb(counted)),
    }
    return Report(
        title="$ a month that use adds beside the views",
        head=FIXED,
        rows=[_fixed_row(what, *entry, prices) for what, entry in used.items()],
    )


def _unused(stack: str, unused: Unused, events: CountedEvents) -> Report:
    """Return a table with the monthly cost of a kind of stack that nobody uses."""
    prices = events.bill.prices
    polls = unused.polled_queues * polls_of_a_queue(prices)
    parts = {
        "alarm metrics": ("alarm_metric_month", unused.alarm_metrics),
        "metrics of an event source": ("custom_metric_month", unused.mapping_metrics),
        "dashboards": ("dashboard_month", unused.dashboards),
        "polls of the empty queues": ("sqs_request", polls),
    }
    sweeps = events.idle_month() if unused.is_swept else {}
    usage = add_usages(dict(parts.values()), sweeps)
    runs = f"{events.sweeps_a_month if unused.is_swept else 0:,}"
    return Report(
        title=f"$ a month of a stack that nobody uses: {stack}",
        head=FIXED,
        rows=[
            *(_fixed_row(what, *entry, prices) for what, entry in parts.items()),
            ("sweeps that find no event", runs, *_cost_and_beyond(sweeps, prices)),
            ("together", "", *_cost_and_beyond(usage, prices)),
        ],
    )


def _cost_and_beyond(usage: Usage, prices: Prices) -> Sequence[str]:
    beyond = sum(beyond_free(name, quantity, prices) for name, quantity in usage.items())
    return dollar(prices.cost(usage)), "", dollar(beyond)


def _fixed_row(what: str, name: str, quantity: float, prices: Prices) -> Sequence[str]:
    return (
        what,
        f"{quantity:,.3g}" if quantity < 1 else f"{quantity:,.0f}",
        dollar(prices.cost({name: quantity})),
        f"{prices.free.get(name, 0):,}",
        dollar(beyond_free(name, quantity, prices)),
    )


def beyond_free(name: str, quantity: float, prices: Prices) -> float:
    """Return the dollars of a month's quantity beyond the free part."""
    return prices.cost({name: max(0, quantity - prices.free.get(name, 0))})


def polls_of_a_queue(prices: Prices) -> float:
    """Return the polls of one queue."""
    assumed = prices.assumed
    seconds = assumed["hours_a_month"] * 3_600
    return float(seconds / assumed["poll_seconds"] * assumed["pollers"])


def _metrics(counted: Counted, events: CountedEvents) -> int:
    """Count the metrics; each function has its own (CloudWatch pricing, "Metrics")."""
    of_events = [run for runs in events.lives.values() for run in runs]
    runs = [*counted.gets.values(), *counted.consumed(BUSY), *of_events]
    return len({(run.function, metric) for run in runs for metric in run.metrics})


def _stored_gb(counted: Counted) -> float:
    badge, day = counted.sizes[keys.SUMMARY], counted.sizes[keys.DAY]
    overhead = (1 + DAYS) * STORED_OVERHEAD_BYTES
    return BADGES * (badge + DAYS * day + overhead) / GB


def dollar(dollars: float) -> str:
    """Round to the cent; half a cent, which floats only approximate, rounds up."""
    exact = Decimal(dollars).quantize(Decimal("1e-6"))
    return f"{exact.quantize(Decimal('0.01'), ROUND_HALF_UP):,}"
