"""What the model of `scale` reckons with, counted: units of what the handlers write and read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count as numbered
from typing import Any

from bench import events
from bench.day import START, Agenda
from bench.deployed import Deployed
from bench.invoking import API, FOLD, PUT, Design, Invocation, Runner, running
from bench.metering import item_bytes, read_units
from bench.stubbed_aws import BADGE_ID
from chalicelib.attribute_values import encode_item
from chalicelib.ports import MAX_TRANSACTION_WRITES
from chalicelib.views import keys
from chalicelib.views.counting import FIRST_READ, HOT_SECONDS
from chalicelib.views.view import View
from local.events import stream_event
from local.table import Change

BADGES, VIEWS_OF_EACH = 10, 10
"""Of the batch that is counted."""
EXPIRED = 20
FAR = 900
"""Seconds, until every view that was put before is over."""
ONE_TRANSACTION = MAX_TRANSACTION_WRITES - 2
"""Views of one day that are counted in one, beside their badge and its day."""


@dataclass(frozen=True, slots=True)
class Units:
    """Write units of one item each, by what it is written for; bytes of items and of logs.

    `view` and `floor` are of views that are put; `count` and `day` of a fold of a badge; `marker`,
    `hot_count` and `hot_day` of a transaction that counts views at once; `expired` of a view that
    another removes. `look` is what `put_views` reads for each hot badge of a batch.
    """

    view: int
    floor: int
    count: int
    day: int
    marker: int
    hot_count: int
    hot_day: int
    expired: int
    look: float
    user_bytes: int
    view_bytes: int
    get_log: int
    put_log: int
    fold_log: int

    def read_of_get(self, live: float) -> float:
        """Read units: of the first read, and of what lies behind it."""
        first = min(live, FIRST_READ - 1)
        units = read_units(round(self.user_bytes + first * self.view_bytes), consistent=True)
        if live < FIRST_READ - 1:
            return units
        behind = round((live - first) * self.view_bytes)
        return units + read_units(behind, consistent=True)

    def put_batch(self, views: int, badges: int) -> int:
        """Write units of a batch in which no badge is hot."""
        return views * self.view + badges * self.floor

    def fold_batch(self, badges: int) -> int:
        """Write units of removals of so many badges, those of each of one day."""
        return badges * (self.count + self.day)

    def own_of_hot_batch(self, views: float) -> float:
        """Write units in the partition of a hot badge, of its views in one batch."""
        return self.floor + transactions(views) * (self.hot_count + self.hot_day)

    def hot_batch(self, views: float) -> float:
        """Write units of a hot badge's views in one batch, in every partition."""
        return self.own_of_hot_batch(views) + views * self.marker

    def expired_batch(self, views: int) -> float:
        """Write units, all of them in its partition, to count and remove expired views early."""
        return views * self.expired + transactions(views) * (self.hot_count + self.hot_day)


def transactions(views: float) -> int:
    """How many count so many views of one badge and day."""
    return -(-int(-(-views // 1)) // ONE_TRANSACTION)


def count_units(deployed: Deployed) -> Units:
    """Run each handler once, and look at what was written. Raises `RuntimeError`."""
    agenda = Agenda()
    with running(Design.vu_mi, deployed.function_names, lambda: agenda.now) as runner:
        get = runner.invoke(API, 0, events.get_views(BADGE_ID))[0]
        ids = [f"{BADGE_ID}/{place}" for place in range(BADGES) for _ in range(VIEWS_OF_EACH)]
        put = put_of(runner, ids, START)
        fold = runner.invoke(FOLD, len(ids), removed(put))[0]
        old = put_of(runner, [BADGE_ID] * EXPIRED, START, shown=1)
        sizes = _sizes(runner, keys.partition(BADGE_ID))
        hot = put_of(runner, [BADGE_ID] * ONE_TRANSACTION, START, hot=True, shown=2)
        agenda.now += FAR
        early = put_of(runner, [BADGE_ID], agenda.now, hot=True, shown=3)
    if len(views_of(old)) != EXPIRED:
        raise RuntimeError(f"{EXPIRED} views were put as {old}")
    return Units(
        view=_of_each(put, keys.VIEW),
        floor=_of_each(put, keys.USER),
        count=_of_each(fold, keys.USER),
        day=_of_each(fold, keys.DAY),
        marker=_of_each(hot, keys.SEEN),
        hot_count=_of_each(hot, keys.USER, transactional=True),
        hot_day=_of_each(hot, keys.DAY),
        expired=_of_each(early, keys.VIEW),
        look=sum(request.read_units for request in hot.requests),
        user_bytes=sizes[keys.USER],
        view_bytes=sizes[keys.VIEW],
        get_log=get.log_bytes,
        put_log=put.log_bytes,
        fold_log=fold.log_bytes,
    )


def put_of(
    runner: Runner, ids: Sequence[str], now: float, *, hot: bool = False, shown: int = 0
) -> Invocation:
    """A batch of messages, a view of each badge that is named."""
    until = int(now) + HOT_SECONDS if hot else 0
    bodies = [View.taken(badge_id, shown, now, hot=until).to_message() for badge_id in ids]
    return runner.invoke(PUT, len(ids), events.messages("vu-mi-views", bodies, now))[0]


def views_of(put: Invocation) -> list[dict[str, Any]]:
    """The keys of the views that a run put."""
    return [
        {"PK": write.key.pk, "SK": write.key.sk}
        for request in put.requests
        for write in request.written
        if write.key.sk.startswith(keys.VIEW)
    ]


def removed(put: Invocation) -> dict[str, Any]:
    """The stream records of TTL's removal of all views that a run put."""
    now = int(START) + FAR
    changes: Iterable[Change] = (
        Change(sequence, now, {**key, "ttl": now})
        for key, sequence in zip(views_of(put), numbered(1), strict=False)
    )
    return stream_event(events.STREAM_LABEL, list(changes))


def _of_each(run: Invocation, prefix: str, *, transactional: bool = False) -> int:
    """Units of each item whose sort key begins so; of them all there is but one figure."""
    units = {
        write.units
        for request in run.requests
        if not transactional or request.operation == "TransactWriteItems"
        for write in request.written
        if write.key.sk.startswith(prefix)
    }
    if len(units) != 1:
        raise RuntimeError(f"{prefix} was written for {units} units by {run}")
    return units.pop()


def _sizes(runner: Runner, partition: str) -> Mapping[str, int]:
    items = runner.table.query(partition, limit=EXPIRED + 1, first=keys.USER)
    return {
        prefix: item_bytes(encode_item(next(i for i in items if str(i["SK"]).startswith(prefix))))
        for prefix in (keys.USER, keys.VIEW)
    }
