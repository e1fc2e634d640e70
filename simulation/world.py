"""The common part of the worlds: visitors, owners, and the check of every answer.

A world simulates one engine and its faults. Its operations interleave at every storage call. One
seed makes one history.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from http import HTTPStatus
from random import Random
from typing import Any, TypeVar

from chalicelib.api import TABLE
from chalicelib.http.dispatch import dispatch
from chalicelib.http.messages import Request
from chalicelib.resources import Resources
from chalicelib.settings import Settings
from chalicelib.storage.errors import StorageError, Unavailable
from chalicelib.storage.items import text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Update, Write
from chalicelib.units import Seconds, to_milliseconds
from chalicelib.views import history, keys, periods
from chalicelib.views.count_at_once import AtOnceCounter
from chalicelib.views.periods import Show, Views, Wanted
from chalicelib.views.summary import read
from chalicelib.views.view import View, new_ulid
from chalicelib.views.windows import Windows
from simulation.faults import Crash
from simulation.ledger import Ledger, LifeEnd, Moment, Span, Taken
from simulation.milestones import MilestoneLaw
from simulation.operations import Operation, Scheduler
from simulation.owners import OWNED, Owners

Result = TypeVar("Result")

NOON: Seconds = 1_800_014_400.0
"""A noon in UTC."""
GET_SECONDS = 30.0
"""The timeout of a GET at API Gateway."""
FAR_SECONDS = 100_000.0


@dataclass
class Looking:
    """A request for a badge under way: the bounds of its answer, and the view that it took."""

    asked: str
    span: Span
    highest: dict[str, int]
    highest_since: dict[str, dict[datetime, int]]
    last_read: Moment
    own: str = ""


class World:
    """Visitors and owners, and the record of their answers.

    `engine` is the table itself; operations use `table`.
    """

    engine: Table
    table: Table
    settings: Settings
    resources: Resources
    faults: float

    def __init__(
        self, seed: int, start: Seconds, skew: Seconds, ids: tuple[str, ...], *, has_owners: bool
    ) -> None:
        self.has_owners = has_owners
        self.random = Random(seed)  # noqa: S311  seeded, not for security
        self.now, self.calls, self.skew = start, 0, skew
        self.ledger = Ledger()
        self.milestones = MilestoneLaw()
        self.scheduler = Scheduler(self.random)
        self.owners = Owners(self, (*ids, *(OWNED if has_owners else ())))

    @property
    def moment(self) -> Moment:
        """Return the time of the world, which never goes back, and the number of storage calls."""
        return Moment(self.now, self.calls)

    def clock(self) -> Seconds:
        """Return the time by the clock of the process that asks."""
        raise NotImplementedError

    def call(self, operation: Callable[[], Result]) -> Result:
        """Run a storage call, which may fail, lose its answer, or end the process.

        `faults` is the share of calls with one of these faults.
        """
        self.calls += 1
        chance = self.random.random() / self.faults if self.faults else 1.0
        if chance < 0.3:
            raise Unavailable("refused")
        if chance < 0.5:
            raise Crash
        result = operation()
        if chance < 0.8:
            raise Unavailable("the answer was lost")
        if chance < 1.0:
            raise Crash
        return result

    @property
    def windows(self) -> Windows:
        return Windows.of(self.settings)

    def start(self, run: Callable[[Operation], None], timeout: Seconds = FAR_SECONDS) -> None:
        """Start an operation in a process with its own clock."""
        skew = self.random.uniform(-0.5, 0.5) * self.skew
        self.scheduler.start(Operation(run, self.now, skew, timeout))

    def looking(self) -> Looking | None:
        """Return the request for a badge that is running now."""
        state = self.scheduler.current.state if self.scheduler.current else None
        return state if isinstance(state, Looking) else None

    def note_life(self, write: Write) -> None:
        """Record the end of a life if a write has ended it."""
        if not (isinstance(write, Update) and write.key.sk == keys.SUMMARY):
            return
        if "reset" in write.values:
            badge_id = write.key.pk.removeprefix(keys.PARTITION)
            alias = text(dict(write.values), "alias")
            self.ledger.end_life(badge_id, LifeEnd(self.owners.request, alias))

    # requests

    def look(self, asked: str) -> Looking:
        """Begin to record a request for a badge."""
        since = {badge_id: dict(own) for badge_id, own in self.ledger.highest_since.items()}
        highest = dict(self.ledger.highest)
        return Looking(asked, Span(self.moment), highest, since, self.moment)

    def badge(self, asked: str, method: str = "GET", *, peek: bool = False) -> dict[str, Any]:
        """Ask for a badge over HTTP, or with POST for its number, which may fail."""
        query = {"id": [asked], **({"peek": ["1"]} if peek else {})}
        request = Request(method, "/api/v1/views", query=query)
        answer = dispatch(TABLE, request, self.resources)
        body: dict[str, Any] = json.loads(answer.body)
        if method == "POST" and body.get("count") is None:
            return {"isError": True, "message": body.get("message", "")}
        assert answer.status == HTTPStatus.OK
        return body

    def history(self, asked: str) -> dict[str, Any]:
        """Ask for the history of a badge, which shows a count as well."""
        try:
            found = history.read(self.table, asked, 400, self.clock())
        except StorageError:
            return {"isError": True, "message": "unavailable"}
        return {"message": str(found.total), "history": True}

    def period(self, asked: str) -> dict[str, Any]:
        """Ask for the views of a badge in a period and on its last days, beside all views."""
        chance = self.random
        zone = timezone(timedelta(hours=chance.randint(-12, 14)))
        wanted = Wanted(chance.choice(list(Show)), zone, chance.choice([0, 7, 90]))
        try:
            found = periods.read(self.table, asked, wanted, self.clock())
        except StorageError:
            return {"isError": True, "message": "unavailable"}
        return {"message": str(found.total.shown), "period": found}

    def any_request(self, asked: str) -> Callable[[], dict[str, Any]]:
        """Return a request for a badge: mostly one that counts, sometimes one that does not."""
        chance = self.random.random()
        if chance < 0.1:
            return partial(self.history, asked)
        if chance > 0.85:
            return partial(self.period, asked)
        method = "HEAD" if chance < 0.2 else "POST" if chance > 0.6 else "GET"
        return partial(self.badge, asked, method, peek=0.2 <= chance < 0.3)

    def check_answer(self, looking: Looking, body: Mapping[str, Any]) -> None:
        """Check laws 2 and 3, and that a frozen badge takes no view unless an owner changed it."""
        if body.get("isError"):
            view = self.ledger.views[looking.asked].get(looking.own)
            if view and "view taken" in body["message"]:
                view.is_unreadable = True
            return
        if any(looking.span.overlaps(request) for request in self.owners.requests):
            return
        badge_id = self.ledger.place(looking.asked)
        summary = read(self.engine, badge_id)
        shown = int(body["message"]) - (0 if "history" in body else summary.base)
        _, most = self.ledger.bounds(badge_id, looking.last_read)
        assert shown <= most, f"over: {badge_id[:9]} shows {shown}, {most} were taken"
        least = looking.highest.get(badge_id, 0)
        assert shown >= least, f"down: {badge_id[:9]} shows {shown} after {least}: {body}"
        assert not (summary.frozen and looking.own), "a frozen badge has taken a view"
        self.ledger.highest[badge_id] = max(self.ledger.highest[badge_id], shown)
        if "period" in body:
            self._check_period(looking, badge_id, body["period"])

    def _check_period(self, looking: Looking, badge_id: str, found: Views) -> None:
        """Check that the views since a time are never down, and never more than all views."""
        _, most = self.ledger.bounds(badge_id, looking.last_read)
        assert sum(found.days) <= most, f"over: {badge_id[:9]}, {most} were taken: {found.days}"
        if found.start is None:
            return
        least = looking.highest_since.get(badge_id, {}).get(found.start, 0)
        assert least <= found.of_period, f"down: {badge_id[:9]} had {least} in a period: {found}"
        assert found.of_period <= found.total.views, f"{badge_id[:9]}: more in a period: {found}"
        since = self.ledger.highest_since[badge_id]
        since[found.start] = max(since.get(found.start, 0), found.of_period)

    def take(self, looking: Looking, ulid: str) -> None:
        """Record that a request has taken a view."""
        looking.own = ulid
        self.ledger.take(ulid, Taken(looking.asked, looking.span, self.moment))

    def an_owner_asks(self) -> None:
        """Start an owner's request, if this world has owners."""
        if self.has_owners:
            self.owners.ask()

    # a history

    def step(self) -> None:
        """Do one step."""
        raise NotImplementedError

    def rest(self) -> None:
        """End all operations, and do everything that waits."""
        raise NotImplementedError

    def run(self, steps: int) -> None:
        """Do this many steps, come to rest, and check law 1."""
        for _ in range(steps):
            self.step()
        self.rest()
        self.check()

    def check(self) -> None:
        """Check law 1: every view is counted, and the history has every counted view."""
        for badge_id in self.badges():
            count = read(self.engine, badge_id).count
            least, most = self.ledger.bounds(badge_id)
            assert least <= count <= most, f"{badge_id[:9]}: {count} of {least} to {most}"
            total = history.read(self.engine, badge_id, 400, self.now).total
            assert total == count, f"{badge_id[:9]}: {count} counted, the history has {total}"
            year = periods.read(self.engine, badge_id, Wanted(Show.YEAR), self.now).of_period
            assert year == count, f"{badge_id[:9]}: {count} counted, the year has {year}"
        self.check_milestones()

    def check_milestones(self) -> None:
        """Count a further view of each badge, and check that it left no milestone to be reached."""
        now = self.clock()
        for badge_id in self.badges():
            ahead = max(to_milliseconds(now), read(self.engine, badge_id).watermark + 1)
            view = View(badge_id, new_ulid(ahead), hot=True)
            counter = AtOnceCounter(self.engine, self.windows, self.clock, self.resources.webhooks)
            counter.count(badge_id, [view])
            self.milestones.check(self.engine, badge_id)

    def names(self) -> list[str]:
        """Return all ids that had a view or a request."""
        return sorted(set(self.ledger.views) | set(self.ledger.ends))

    def badges(self) -> list[str]:
        """Return the ids that are not aliases."""
        return [name for name in self.names() if self.ledger.place(name) == name]
