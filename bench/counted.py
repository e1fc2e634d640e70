"""What a view of a badge uses on AWS: counted from runs of the handlers of a design."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.bill import Bill, Prices, Usage, per_view, together
from bench.day import badge_of
from bench.deployed import Deployed
from bench.invoking import API, Design, Invocation
from bench.metering import Request, item_bytes, read_units
from bench.stubbed_aws import BADGE_ID
from chalicelib.attribute_values import encode_item
from chalicelib.ports import text
from chalicelib.views import keys
from chalicelib.views.counting import FIRST_READ

LIVE_VIEWS = (10, 1_000, 7_999)
DAY = 86_400
RUNS = {1: (1, DAY), 1_000: (250, DAY // 4)}
"""Views and seconds that are simulated, by views a day. What 1,000 a day do repeats after a quarter
of it: 250 x 86.4 s = 72 x 300 s."""
HOURS = 24


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted of a design.

    `gets` are by live views; `consumed`, the runs of the two consumers, by views a day; `sizes`
    in bytes, one of each kind of item, by `keys.USER`, `keys.DAY` and `keys.VIEW`.
    """

    bill: Bill
    gets: Mapping[int, Invocation]
    consumed: Mapping[int, Sequence[Invocation]]
    sizes: Mapping[str, int]

    def of_a_view(self, get: Invocation, views_a_day: int) -> Usage:
        """What one view uses, from its GET to its fold."""
        return together(self.bill.usage([get]), self.after_the_get(views_a_day))

    def after_the_get(self, views_a_day: int) -> Usage:
        """What one view uses in the two consumers."""
        views, _ = RUNS[views_a_day]
        return per_view(self.bill.usage(self.consumed[views_a_day]), views)

    def get_of(self, live_views: int) -> Invocation:
        """A GET of any number of live views, by the sizes of the items that it reads."""
        sample = self.gets[min(LIVE_VIEWS)]
        items = [self.sizes[keys.USER], *[self.sizes[keys.VIEW]] * live_views]
        first = FIRST_READ if self.bill.design == "vu-mi" else len(items) + 1
        pages = [items[:first], items[first:]] if len(items) >= first else [items]
        requests = [Request("Query", read_units(sum(page), consistent=True)) for page in pages]
        return Invocation(API, live_views, tuple(requests), sample.sends, sample.log_bytes)


def count(design_of: Callable[[], Design], prices: Prices, deployed: Deployed) -> Counted:
    """Run a design. Raises `RuntimeError` where a GET reads other than its items say."""
    consumed = {views_a_day: _consumed(design_of, deployed, views_a_day) for views_a_day in RUNS}
    with badge_of(design_of, deployed) as badge:
        badge.take(HOURS, DAY)
        gets = {live_views: badge.get_with(live_views) for live_views in LIVE_VIEWS}
        items = badge.runner.table.query(keys.partition(BADGE_ID), limit=3)
        bill = Bill(prices, deployed, badge.runner.design.name)
    sizes = {_kind(text(item, "SK")): item_bytes(encode_item(item)) for item in items}
    counted = Counted(bill, gets, consumed, sizes)
    for live_views, get in gets.items():
        if counted.get_of(live_views).requests != get.requests:
            raise RuntimeError(f"{get} is not {counted.get_of(live_views)}")
    return counted


def _consumed(
    design_of: Callable[[], Design], deployed: Deployed, views_a_day: int
) -> list[Invocation]:
    with badge_of(design_of, deployed) as badge:
        return [run for run in badge.take(*RUNS[views_a_day]) if run.function != API]


def _kind(sort_key: str) -> str:
    return next(kind for kind in (keys.DAY, keys.USER, keys.VIEW) if sort_key.startswith(kind))
