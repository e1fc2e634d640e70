"""The tables of `cost` for alternatives: provisioned capacity, and other ways in than the API."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench.cost.bill import GB, HTTP, REST, Prices, Usage
from bench.cost.view_tables import FEW_LIVE, MILLION, beyond_free, dollar
from bench.cost.view_usage import BUSY, DAY, HOUR, HOURS, Counted
from simulation.report import Report

VIEWS_A_DAY = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
MOST_VIEWS_A_DAY = 100_000_000
VIEWS_A_MONTH = (1_000_000, 10_000_000, 100_000_000)
UNITS = {"write_unit": "provisioned_write_unit_hour", "read_unit": "provisioned_read_unit_hour"}
"""The prices of a unit on demand and for each hour in which it is provisioned."""
CONNECTIONS_OF_AN_LCU = 25
"""New connections a second (Elastic Load Balancing pricing); each request is taken to make one."""


def reports(counted: Counted, badge_bytes: int) -> Iterator[Report]:
    """Yield the tables of this project's design; `badge_bytes` are those of an answer."""
    yield _capacity(counted)
    yield _ways_in(counted.bill.prices, badge_bytes)


def _capacity(counted: Counted) -> Report:
    prices = counted.bill.prices
    peak, utilisation = prices.assumed["peak"], prices.assumed["utilisation"]
    usage = counted.of_a_view(counted.gets[FEW_LIVE], BUSY)
    units = {name: usage[name] for name in UNITS}
    return Report(
        title="$ a month of the table's units, on demand and provisioned",
        head=(
            "views a day",
            "on demand",
            f"provisioned, {utilisation:.0%} used all day",
            f"provisioned, {utilisation:.0%} used at a peak of {peak:g} times the average",
        ),
        rows=[
            (
                f"{views:,}",
                dollar(on_demand(units, prices, views)),
                dollar(provisioned(units, prices, views, 1)),
                dollar(provisioned(units, prices, views, peak)),
            )
            for views in VIEWS_A_DAY
        ],
        notes=(
            f"below {_break_even(prices)} of average use, on demand costs less",
            f"below {_pays_from(units, prices):,} views a day too: the least capacity is one unit",
            f"with a peak of {peak:g} times the average, {utilisation / peak:.1%} are used",
        ),
    )


def on_demand(units: Usage, prices: Prices, views_a_day: int) -> float:
    """Return the dollars of a month for the units of each view."""
    return prices.cost(units) * views_a_day * float(prices.assumed["hours_a_month"]) / HOURS


def provisioned(units: Usage, prices: Prices, views_a_day: int, peak: float) -> float:
    """Return the dollars of a month for capacity in whole units a second, one or more.

    The peak, a multiple of the average rate, uses the share of it at which auto scaling aims.
    """
    per_second = views_a_day / DAY * peak / prices.assumed["utilisation"]
    hours: Usage = {
        UNITS[name]: max(1, math.ceil(quantity * per_second)) * prices.assumed["hours_a_month"]
        for name, quantity in units.items()
    }
    return prices.cost(hours)


def _pays_from(units: Usage, prices: Prices) -> int:
    """Return the least views a day, at an even rate, for which provisioned capacity costs less."""

    def pays(views: int) -> bool:
        return provisioned(units, prices, views, 1) < on_demand(units, prices, views)

    return bisect_left(range(MOST_VIEWS_A_DAY), True, key=pays)  # noqa: FBT003


def _break_even(prices: Prices) -> str:
    """Return the share of use at which both cost the same, which reads and writes have alike."""
    [share] = {f"{prices.usd[hour] / HOUR / prices.usd[unit]:.1%}" for unit, hour in UNITS.items()}
    return share


@dataclass(frozen=True, slots=True)
class WayIn:
    """A service in front of the function: the prices of a request, of a GB, and of each hour."""

    name: str
    requests: Sequence[str]
    transfer: str = "transfer_gb"
    hourly: Mapping[str, int] = field(default_factory=dict)

    def usage(self, views: int, badge_bytes: int) -> dict[str, float]:
        """Return what views cost that are answered with so many bytes each."""
        per_request: dict[str, float] = dict.fromkeys(self.requests, views)
        if "lcu_hour" in per_request:
            per_request["lcu_hour"] = views / CONNECTIONS_OF_AN_LCU / HOUR
        return {**per_request, self.transfer: views * badge_bytes / GB}


LOAD_BALANCER = WayIn(
    "load balancer in two zones",
    ("lcu_hour",),
    hourly={"load_balancer_hour": 1, "public_ipv4_hour": 2},
)
WAYS_IN = (
    WayIn("REST API", (REST,)),
    WayIn("HTTP API", (HTTP,)),
    WayIn("function URL", ()),
    WayIn("function URL behind CloudFront", ("cloudfront_request",), "cloudfront_gb"),
    WayIn("HTTP API behind CloudFront", (HTTP, "cloudfront_request"), "cloudfront_gb"),
    LOAD_BALANCER,
)


def _ways_in(prices: Prices, badge_bytes: int) -> Report:
    return Report(
        title="$ of the ways in to the function, with the transfer of the badges",
        head=(
            "way in",
            "a month",
            "requests of a million views",
            "their transfer",
            *(f"a month of {views:,}" for views in VIEWS_A_MONTH),
        ),
        rows=[_way_in_row(way, prices, badge_bytes) for way in WAYS_IN],
        notes=(
            f"an answer has {badge_bytes:,} bytes, without those of TLS",
            "the last three columns are beyond what is free each month",
            f"from {_balanced(prices):.0f} million views a month on, a load balancer costs less",
        ),
    )


def _balanced(prices: Prices) -> float:
    """Return the million views a month at which a load balancer costs as much as an HTTP API."""
    saved = prices.cost({HTTP: MILLION}) - prices.cost(LOAD_BALANCER.usage(MILLION, 0))
    return _fixed(LOAD_BALANCER, prices) / saved


def _fixed(way: WayIn, prices: Prices) -> float:
    hours = prices.assumed["hours_a_month"]
    return prices.cost({name: count * hours for name, count in way.hourly.items()})


def _way_in_row(way: WayIn, prices: Prices, badge_bytes: int) -> Sequence[str]:
    fixed = _fixed(way, prices)
    million = way.usage(MILLION, badge_bytes)
    transfer = million.pop(way.transfer)
    return (
        way.name,
        dollar(fixed),
        dollar(prices.cost(million)),
        dollar(prices.cost({way.transfer: transfer})),
        *(dollar(fixed + _beyond(way, views, prices, badge_bytes)) for views in VIEWS_A_MONTH),
    )


def _beyond(way: WayIn, views: int, prices: Prices, badge_bytes: int) -> float:
    usage = way.usage(views, badge_bytes)
    return sum(beyond_free(name, quantity, prices) for name, quantity in usage.items())
