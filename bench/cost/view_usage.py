"""The usage of a view on AWS, counted from runs of a design's handlers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from bench import aws_events as events
from bench.aws_events import WINDOWS
from bench.cost.bill import GB, Bill, Prices, Usage, add_usages, per_view
from bench.cost.deployed import Deployed
from bench.cost.event_usage import STORED_OVERHEAD_BYTES
from bench.cost.invocations import COUNT_OF_THE_ORIGINAL, GET, Design, Invocation
from bench.cost.metered_handlers import machine_of
from bench.cost.metering import Request, item_bytes, read_units
from bench.cost.simulate_views import (
    MINUTES,
    START,
    TWO_DAYS,
    UNEVEN,
    Badge,
    Lag,
    badge_of,
    view_items,
)
from bench.stubbed_aws import BADGE_ID
from chalicelib.aws import get_views
from chalicelib.aws.attribute_values import encode_item
from chalicelib.counting import keys
from chalicelib.counting.badge_count import page_size
from chalicelib.storage.items import Item

LIVE_VIEWS = (10, 1_000, 7_999)
KINDS = (keys.DAY, keys.SUMMARY, keys.VIEW, COUNT_OF_THE_ORIGINAL)
"""The prefixes of the sort keys of a badge's items."""
FOLDED_VIEWS = (0, 100, 10_000, 100_000)
HOUR, DAY = 3_600, 86_400
HOURS = 24


@dataclass(frozen=True, slots=True)
class Run:
    """Simulated views: this many in these seconds, with TTL this late."""

    views_a_day: int
    views: int
    seconds: int
    lag: Lag = MINUTES

    @property
    def label(self) -> str:
        return f"{self.views_a_day:,}{LATE[self.lag]}"


LATE = {MINUTES: "", UNEVEN: ", TTL 10 to 30 min late", TWO_DAYS: ", TTL two days late"}
QUIET = Run(1, 3, 3 * DAY)
BUSY = Run(1_000, 125, DAY // 8)
"""An eighth of a day is enough for 1,000 views a day: 125 x 86.4 s = 36 x 300 s."""
RUNS = (QUIET, BUSY)
OURS = (
    *RUNS,
    replace(BUSY, lag=UNEVEN),
    replace(QUIET, lag=TWO_DAYS),
    replace(BUSY, lag=TWO_DAYS),
)
"""The runs of vu-mi. The delay of TTL does not change the folds of the original."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The counted usage of a design.

    `gets` are by live views, `folded_gets` by folded views that are still in the table. `taken` has
    every run of the functions. `sizes` are in bytes, by kind of item.
    """

    bill: Bill
    gets: Mapping[int, Invocation]
    taken: Mapping[Run, Sequence[Invocation]]
    sizes: Mapping[str, int]

    def of_a_view(self, get: Invocation, run: Run) -> Usage:
        """Return the usage of one view, from its GET until it is no longer kept."""
        warm = add_usages(self.bill.usage([get]), self.after_the_get(run), self.kept())
        return add_usages(warm, self.cold_starts(run))

    def cold_starts(
        self, run: Run, idle_seconds: float | None = None, *, has_burst: bool = True
    ) -> Usage:
        """Return the usage of the cold starts of one view in a stack that has no other badge."""
        cold_ms = sum(
            runs
            * self.cold_share(run, function, idle_seconds)
            * self.bill.start_ms(function, has_burst=has_burst)
            for function, runs in self.runs_of_a_view(run).items()
        )
        price = f"cold_start_{self.bill.deployed.architecture}_gb_second"
        return {price: self.bill.in_gb_seconds(cold_ms)}

    def cold_share(self, run: Run, function: str, idle_seconds: float | None = None) -> float:
        """Return the share of a function's runs that find no environment: e^-(rate x idle time).

        That is the chance of a pause of this length between runs that come by chance.
        """
        idle = self.bill.prices.assumed["idle_seconds"] if idle_seconds is None else idle_seconds
        rate = self.runs_of_a_view(run)[function] * run.views_a_day / DAY
        return math.exp(-rate * idle)

    def runs_of_a_view(self, run: Run) -> Mapping[str, float]:
        """Return the runs of each function for one view."""
        runs = Counter(one.function for one in self.taken[run])
        return per_view(runs, run.views)

    def after_the_get(self, run: Run) -> Usage:
        """Return the usage of one view in the two consumers."""
        return per_view(self.bill.usage(self.consumed(run)), run.views)

    def consumed(self, run: Run) -> list[Invocation]:
        """Return the runs of the two consumers."""
        return [one for one in self.taken[run] if one.function != GET]

    def reads_of_get(self, run: Run) -> float:
        """Return the average read units of a GET."""
        gets = [one for one in self.taken[run] if one.function == GET]
        return mean(sum(request.read_units for request in get.requests) for get in gets)

    def kept(self) -> Usage:
        """Return the usage of keeping a view; the original removes it within the hour."""
        if self.bill.design != "vu-mi":
            return {}
        hours = WINDOWS.retention / HOUR
        size = self.sizes[keys.VIEW] + STORED_OVERHEAD_BYTES
        month = size / GB * hours / float(self.bill.prices.assumed["hours_a_month"])
        return {"stored_gb_month": month, "pitr_gb_month": month}

    def get_of(self, live_views: int) -> Invocation:
        """Return a GET with this many live views, by the sizes of the items that it reads."""
        view, sample = self.sizes[keys.VIEW], self.gets[min(LIVE_VIEWS)]
        if self.bill.design == "vu-mi":
            page = page_size(BADGE_ID) - 1
            pages = [self.sizes[keys.SUMMARY] + page * view]
            pages += [(live_views - page + 1) * view] if live_views >= page else []
        else:
            pages = [self.sizes[COUNT_OF_THE_ORIGINAL] + live_views * view]
        requests = [Request("Query", read_units(page, consistent=True)) for page in pages]
        return Invocation(GET, live_views, tuple(requests), sample.sends, sample.log_bytes)


def count(
    design_of: Callable[[], Design],
    taken: Mapping[Run, Sequence[Invocation]],
    prices: Prices,
    deployed: Deployed,
) -> Counted:
    """Count a design's usage. Raises `RuntimeError` if a GET's reads don't match its items."""
    with badge_of(design_of, deployed) as badge:
        badge.take(2 * HOURS, 2 * DAY)
        gets = {live_views: badge.get_with(live_views) for live_views in LIVE_VIEWS}
        bill = Bill(prices, deployed, badge.runner.design.name)
        sizes = {
            kind: item_bytes(encode_item(last)) for kind in KINDS for last in _last(badge, kind)
        }
    counted = Counted(bill, gets, taken, sizes)
    for live_views, get in gets.items():
        if counted.get_of(live_views).requests != get.requests:
            raise RuntimeError(f"{get} is not {counted.get_of(live_views)}")
    return counted


def take(design_of: Callable[[], Design], run: Run, deployed: Deployed) -> list[Invocation]:
    """Simulate a run on the day after a first view, so that a day ends."""
    with badge_of(design_of, deployed, run.lag) as badge:
        badge.take(1, DAY)
        badge.agenda.now += DAY - badge.agenda.now % DAY
        return badge.take(run.views, run.seconds)


def _last(badge: Badge, kind: str) -> list[Item]:
    """Return the last item of a kind, if there is one."""
    return badge.runner.table.query(
        keys.partition(BADGE_ID), limit=1, first=kind, last=f"{kind}~", descending=True
    )


def badge_bytes() -> int:
    """Return the bytes of an answer with a badge as SVG: its status line, headers and body."""
    with machine_of(lambda: START):
        answer = get_views.handler(events.get_badge(BADGE_ID), None)
    lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in answer["headers"].items())]
    return sum(len(f"{line}\r\n") for line in [*lines, ""]) + len(answer["body"].encode())


def get_with_folded(folded_views: int) -> Sequence[Request]:
    """Return the requests of a GET with this many folded views in the table, and no live one."""
    with machine_of(lambda: START) as machine:
        watermark = int(START * 1000) - WINDOWS.grace * 1000
        pk, sk = keys.summary(BADGE_ID)
        summary: Item = {"PK": pk, "SK": sk, "count": folded_views, "watermark": watermark}
        machine.table.put_all([summary, *view_items(folded_views, watermark)])
        shown, requests = machine.get()
    if shown != folded_views:
        raise RuntimeError(f"{folded_views:,} were shown as {shown:,}")
    return requests
