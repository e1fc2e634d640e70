"""The counted units of the model of `scale`, for each item that the handlers write and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench import aws_events as events
from bench.aws_events import WINDOWS
from bench.cost.deployed import Deployed
from bench.cost.invocations import FOLD, PUT, Design, Invocation, Runner, running
from bench.cost.metering import item_bytes, read_units
from bench.cost.simulate_views import START, Agenda, view_item
from bench.stubbed_aws import BADGE_ID
from chalicelib.aws.attribute_values import encode_item
from chalicelib.counting import keys
from chalicelib.counting.badge_count import page_size
from chalicelib.counting.count_at_once import AT_ONCE
from chalicelib.settings import HOT_VIEWS

BADGES, VIEWS_OF_EACH = 10, 10
"""The badges of the counted batch, and the views of each."""
DAY = 86_400


@dataclass(frozen=True)
class Units:
    """The write units of one item each, by purpose, and the bytes of items and logs.

    `view` and `marker` are for putting views, `count` for the fold of a badge, `day` for the end
    of a day. `seen` and `hot_count` are for a transaction that counts views at once. `look` is the
    read of a summary before such a transaction and before a fold. `overdue` is the read by which
    `put_views` finds that no view can be folded yet.
    """

    view: int
    marker: int
    count: int
    day: int
    seen: int
    hot_count: int
    look: float
    overdue: float
    summary_bytes: int
    view_bytes: int
    put_log: int
    fold_log: int

    def read_of_get(self, live: float) -> float:
        """Return the read units of a GET: its page, and the live views after it."""
        page = page_size(BADGE_ID) - 1
        units = read_units(self.summary_bytes + page * self.view_bytes, consistent=True)
        if live < page:
            return units
        rest = round((live - page + 1) * self.view_bytes)
        return units + read_units(rest, consistent=True)

    @cached_property
    def read_while_warming(self) -> float:
        """The average read units of the GETs by which a badge becomes hot."""
        return sum(map(self.read_of_get, range(HOT_VIEWS))) / HOT_VIEWS

    def read_of_fold(self, views: float) -> float:
        """Return the read units of the fold of a badge: its summary and its views."""
        return self.look + read_units(round(views * self.view_bytes), consistent=True)

    def put_batch(self, views: int, first: int) -> int:
        """Return the write units of a batch without hot badges; `first` views begin a window."""
        return views * self.view + first * self.marker

    def own_of_hot_batch(self, views: float) -> float:
        """Return the write units in a hot badge's partition for its views in one batch."""
        return transactions(views) * self.hot_count

    def hot_batch(self, views: float) -> float:
        """Return the write units in all partitions for a hot badge's views in one batch."""
        return self.own_of_hot_batch(views) + views * self.seen


def transactions(views: float) -> int:
    """Return the number of transactions that count this many views of one badge."""
    return -(-int(-(-views // 1)) // AT_ONCE)


def count_units(deployed: Deployed) -> Units:
    """Run each handler once, and count the units of its writes. Raises `RuntimeError`."""
    agenda = Agenda()
    with running(Design.vu_mi, deployed.function_names, lambda: agenda.now) as runner:
        put = put_of(runner, _ids(), agenda.now)
        agenda.now += WINDOWS.window + WINDOWS.grace
        fold = fold_of(runner, badge_ids(BADGES), agenda.now)
        agenda.now += DAY
        put_of(runner, badge_ids(BADGES), agenda.now)
        agenda.now += WINDOWS.window + WINDOWS.grace
        next_day = fold_of(runner, badge_ids(BADGES), agenda.now)
        hot = put_of(runner, [BADGE_ID] * AT_ONCE, agenda.now, hot=True)
        overdue = put_of(runner, [BADGE_ID], agenda.now, hot=True, fold=True)
        sizes = _sizes(runner)
    look = sum(request.read_units for request in hot.requests)
    return Units(
        view=_of_each(put, keys.VIEW),
        marker=_of_each(put, keys.WINDOW),
        count=_of_each(fold, keys.SUMMARY),
        day=_of_each(next_day, keys.DAY),
        seen=_of_each(hot, keys.SEEN),
        hot_count=_of_each(hot, keys.SUMMARY),
        look=look,
        overdue=sum(request.read_units for request in overdue.requests) - look,
        summary_bytes=sizes[keys.SUMMARY],
        view_bytes=sizes[keys.VIEW],
        put_log=put.log_bytes,
        fold_log=fold.log_bytes,
    )


def badge_ids(count: int) -> list[str]:
    """Return the ids of this many badges."""
    return [f"{BADGE_ID}/{place}" for place in range(count)]


def _ids() -> list[str]:
    return [badge_id for badge_id in badge_ids(BADGES) for _ in range(VIEWS_OF_EACH)]


def put_of(
    runner: Runner, ids: Sequence[str], now: float, *, hot: bool = False, fold: bool = False
) -> Invocation:
    """Run `put_views` on a batch of messages, one view for each id."""
    batch = events.views(ids, now, hot=hot, fold=fold)
    return runner.invoke(PUT, len(ids), batch)[0]


def fold_of(runner: Runner, ids: Sequence[str], now: float) -> Invocation:
    """Run `fold_views` on the removal of the last marker of each badge."""
    return runner.invoke(FOLD, len(ids), events.removals(ids, now))[0]


def _of_each(run: Invocation, prefix: str) -> int:
    """Return the units of an item with this sort key's prefix; all items must cost the same."""
    units = {
        write.units
        for request in run.requests
        for write in request.written
        if write.key.sk.startswith(prefix)
    }
    if len(units) != 1:
        raise RuntimeError(f"{prefix} was written for {units} units by {run}")
    return units.pop()


def _sizes(runner: Runner) -> Mapping[str, int]:
    """Return the bytes of a summary and of a view, for the badge with the shortest id."""
    summary = runner.table.get(keys.summary(BADGE_ID)) or {}
    view = view_item(int(START + 1) * 1000)
    return {
        keys.SUMMARY: item_bytes(encode_item(summary)),
        keys.VIEW: item_bytes(encode_item(view)),
    }
