"""The common part of the worlds: visitors, owners, and the check of every answer.

A world simulates one engine and its faults. Its operations interleave at every storage call. One
seed makes one history.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import partial
from http import HTTPStatus
from random import Random
from typing import Any, ClassVar, TypeAlias, TypeVar

from chalicelib.api import TABLE, ProcessResources
from chalicelib.counting import keys, storing
from chalicelib.counting.summary import read
from chalicelib.counting.view import Counting, View, Windows
from chalicelib.history.history import MAX_DAYS_BY_HOUR
from chalicelib.history.periods import Show
from chalicelib.http.dispatch import dispatch
from chalicelib.http.messages import Request, Response
from chalicelib.settings import Settings
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Update, Write
from chalicelib.ulids import new_ulid
from chalicelib.units import Seconds, to_milliseconds
from simulation.faults import Crash
from simulation.ledger import ALL, SINCE, Ledger, LifeEnd, Moment, Span, Taken
from simulation.milestones import MilestoneLaw
from simulation.operations import Operation, Scheduler
from simulation.owners import OWNED, Owners

Result = TypeVar("Result")

MIDNIGHT: Seconds = 1_800_057_600.0
"""A midnight in UTC."""
GET_SECONDS = 30.0
"""The timeout of a GET at API Gateway."""
FAR_SECONDS = 100_000.0
CLOCKS_SECONDS = 150.0
"""The clocks of two processes, and the time of a view, differ by less."""
REFUSED = {
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.INSUFFICIENT_STORAGE,
    HTTPStatus.FORBIDDEN,
}
BANNED = "not counted here"
Shown: TypeAlias = Mapping[str, int]
"""The numbers that an answer shows: all views, or the views of hours, days or periods."""
SUM = "the sum of the days"
PERIODS = tuple(show for show in Show if show is not Show.TOTAL and not show.is_githubs)
DAYS = 90
"""The days of a history, more than the clock of any world moves."""


@dataclass
class Looking:
    """A request for badges under way: the bounds of its answers, and the views that it took.

    `own` has the ULID of its view by the id that was asked for.
    """

    asked: Sequence[str]
    span: Span
    highest: Mapping[str, Mapping[str, int]]
    removals: Mapping[str, int]
    last_read: Moment
    own: dict[str, str] = field(default_factory=dict)
    is_unread: bool = False
    """Whether the table could not be read, so that the view's time is that of a clock alone."""


class World:
    """Visitors and owners, and the record of their answers.

    `engine` is the table itself; operations use `table`.
    """

    engine: Table
    table: Table
    settings: Settings
    resources: ProcessResources
    faults: float
    goes_on: ClassVar[float]
    """The share of the steps that go on with an operation under way, if there is one."""
    happenings: ClassVar[Mapping[Callable[[Any], None], float]]
    """The other steps by their weights."""

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
            raise UnavailableError("refused")
        if chance < 0.5:
            raise Crash
        result = operation()
        if chance < 0.8:
            raise UnavailableError("the answer was lost")
        if chance < 1.0:
            raise Crash
        return result

    @property
    def windows(self) -> Windows:
        return Windows.of(self.settings)

    def start(self, run: Callable[[Operation], None], timeout: Seconds = FAR_SECONDS) -> None:
        """Start an operation in a process with its own clock."""
        skew = self.random.uniform(-0.5, 0.5) * self.skew
        self.scheduler.under_way.append(Operation(run, self.now, skew, timeout))

    def looking(self) -> Looking | None:
        """Return the request for a badge that is running now."""
        state = self.scheduler.current.state if self.scheduler.current else None
        return state if isinstance(state, Looking) else None

    def note_life(self, write: Write) -> None:
        """Record the end of a life if a write has ended it."""
        if not (isinstance(write, Update) and write.key.sk == keys.SUMMARY):
            return
        is_reset = "reset" in write.values
        if is_reset or "alias" in write.remove:
            badge_id = write.key.pk.removeprefix(keys.PARTITION)
            alias = text(dict(write.values), "alias")
            self.ledger.end_life(badge_id, LifeEnd(self.owners.request, alias, not is_reset))

    def find_removal(self, writes: Sequence[Write]) -> tuple[str, Counter[str]] | None:
        """Return the badge and the views by hour that writes have to remove, if they remove any."""
        for write in writes:
            if isinstance(write, Update) and {"count", "today"} <= {*write.values}:
                badge_id = write.key.pk.removeprefix(keys.PARTITION)
                if number(dict(write.values), "count") < read(self.engine, badge_id).count:
                    return badge_id, self.owners.views_to_remove(badge_id)
        return None

    # requests

    def look(self, asked: Sequence[str]) -> Looking:
        """Begin to record a request for badges."""
        highest = {badge_id: dict(own) for badge_id, own in self.ledger.highest.items()}
        removals = {badge_id: len(own) for badge_id, own in self.ledger.removals.items()}
        return Looking(asked, Span(self.moment), highest, removals, self.moment)

    def ask(self, method: str, path: str, *asked: str, **options: str) -> Response:
        """Send a request for badges with options."""
        query = {"id": asked, **{name: [value] for name, value in options.items()}}
        return dispatch(TABLE, Request(method, path, query=query), self.resources)

    def badge(self, asked: str, method: str = "GET", **options: str) -> Shown | str:
        """Ask for a badge, or with POST for its number."""
        answer = self.ask(method, "/api/v1/views", asked, **options)
        body = json.loads(answer.body)
        if answer.status == HTTPStatus.FORBIDDEN:
            return str(body["error"]["message"])
        if body.get("isError") or (method == "POST" and body.get("count") is None):
            return str(body.get("message"))
        assert answer.status == HTTPStatus.OK
        return {ALL: int(body["message"])}

    def badges_together(self, asked: Sequence[str], method: str) -> list[Shown | str]:
        """Count a view of each of several badges, or with GET read their counts."""
        path, name = ("", "views") if method == "POST" else ("/counts", "counts")
        answer = self.ask(method, f"/api/v1/views{path}", *asked)
        body = json.loads(answer.body)
        if answer.status in REFUSED:
            return [str(body["error"]["message"])] * len(asked)
        assert [one["id"] for one in body[name]] == list(asked)
        return [
            one["message"] if one["count"] is None else {ALL: one["count"]} for one in body[name]
        ]

    def history(self, asked: str, by: str = "day") -> Shown | str:
        """Ask for the history of a badge by day or by hour."""
        days = DAYS if by == "day" else MAX_DAYS_BY_HOUR
        answer = self.ask("GET", "/api/v1/views/history", asked, by=by, days=str(days))
        body = json.loads(answer.body)
        if answer.status in REFUSED:
            return str(body["error"]["message"])
        buckets = {bucket[by]: bucket["views"] for bucket in body["views"]}
        assert body["total"] == sum(buckets.values())
        return {SUM: body["total"], **buckets} if by == "day" else buckets

    def period(self, asked: str) -> Shown | str:
        """Ask for the views of a badge in a period of the calendar, in any time zone."""
        show = self.random.choice(PERIODS)
        hours = self.random.randint(-12, 14)
        name = partial(self._name_period, show, timezone(timedelta(hours=hours)))
        earliest = name(-CLOCKS_SECONDS)
        answer = self.ask("GET", "/api/v1/views", asked, show=show, tz=str(hours), peek="1")
        body = json.loads(answer.body)
        if body.get("isError"):
            return str(body["message"])
        of_period, _, total = str(body["message"]).partition(" today · ")
        # Near its border, the client does not know which period the answer is of.
        known = {earliest: int(of_period)} if earliest == name(CLOCKS_SECONDS) else {}
        assert not total or int(of_period) <= int(total)
        return {ALL: int(total), **known} if total else known

    def _name_period(self, show: Show, zone: timezone, ahead: Seconds) -> str:
        moment = datetime.fromtimestamp(self.clock() + ahead, zone)
        return f"{SINCE}{show.start(moment)}"

    def any_ids(self) -> list[str]:
        """Return the ids that a visitor asks for: mostly one, or those of a page."""
        number = self.random.choice([1, 1, 1, 1, 1, 2, 3])
        return self.random.sample(self.owners.ids, min(number, len(self.owners.ids)))

    def any_request(self, asked: Sequence[str]) -> Callable[[], list[Shown | str]]:
        """Return a request for badges: mostly one that counts, sometimes one that does not."""
        if len(asked) > 1:
            method = "POST" if self.random.random() < 0.7 else "GET"
            return partial(self.badges_together, asked, method)
        request = self._any_request(asked[0])
        return lambda: [request()]

    def _any_request(self, asked: str) -> Callable[[], Shown | str]:
        chance = self.random.random()
        if chance < 0.3:
            return partial(self.history, asked, "hour" if chance < 0.1 else "day")
        if chance < 0.4:
            return partial(self.period, asked)
        if chance < 0.45:
            return partial(self.badge, asked, "HEAD")
        if chance < 0.5:
            return partial(self.badge, asked, peek="1")
        return partial(self.badge, asked, "POST" if chance < 0.65 else "GET")

    def check_answers(self, looking: Looking, answers: Sequence[Shown | str]) -> None:
        """Check laws 2 and 3, and that a frozen badge takes no view unless an owner changed it."""
        if any(looking.span.overlaps(request) for request in self.owners.requests):
            return
        for asked, answer in zip(looking.asked, answers, strict=True):
            if not isinstance(answer, str):
                self._check_answer(looking, asked, answer)
            assert answer != BANNED or asked not in looking.own, "a banned badge has taken a view"

    def _check_answer(self, looking: Looking, asked: str, answer: Shown) -> None:
        badge_id = self.ledger.place(asked)
        summary = read(self.engine, badge_id)
        assert not (summary.frozen and asked in looking.own), "a frozen badge has taken a view"
        _, most = self.ledger.bounds(badge_id, looking.last_read)
        shown_before = looking.highest.get(badge_id, {})
        # A badge, but no history, shows the base; both show all views.
        shown = {ALL if name == SUM else name: views for name, views in answer.items()}
        shown |= {ALL: answer[ALL] - summary.base} if ALL in answer else {}
        removals = len(self.ledger.removals[badge_id])
        wrong = ""
        for before in range(looking.removals.get(badge_id, 0), removals + 1):
            # All numbers of an answer are those after the same removal.
            taken = {
                name: views + self.ledger.removed(badge_id, name, before)
                for name, views in shown.items()
            }
            wrong = _find_wrong(taken, shown_before, most)
            if not wrong:
                self.ledger.highest[badge_id] |= Counter(taken)
                return
        raise AssertionError(f"{badge_id[:9]} {wrong}")

    def take(self, looking: Looking, ulid: str, under: str) -> None:
        """Record that a request has taken a view, which is stored under an id."""
        asked = self.asked_for(looking, ulid, under)
        clocks = self.skew if looking.is_unread else 0.0
        self.ledger.take(ulid, Taken(asked, looking.span, self.moment, under, clocks))

    def asked_for(self, looking: Looking, ulid: str, under: str) -> str:
        """Return the id for which a request has taken a view, and note the view as its own.

        A request sends its views in the order of its ids.
        """
        if known := [asked for asked, own in looking.own.items() if own == ulid]:
            return known[0]
        left = [asked for asked in looking.asked if asked not in looking.own]
        named = [asked for asked in left if under in (asked, self.ledger.place(asked))]
        asked = under if under in left else [*named, *left][0]
        looking.own[asked] = ulid
        return asked

    def an_owner_asks(self) -> None:
        """Start an owner's request, if this world has owners."""
        if self.has_owners:
            self.owners.ask()

    # a history

    def step(self) -> None:
        """Do one step: the next storage call of an operation under way, or something new."""
        chance, under_way = self.random, self.scheduler.under_way
        if under_way and chance.random() < self.goes_on:
            self.scheduler.step(self.now)
        else:
            chance.choices(list(self.happenings), list(self.happenings.values()))[0](self)

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
        self.owners.lift_bans(self.engine)
        for badge_id in self.badges():
            count = read(self.engine, badge_id).count
            least, most = self.ledger.bounds(badge_id)
            counted = count + self.ledger.removed(badge_id)
            assert least <= counted <= most, f"{badge_id[:9]}: {counted} of {least} to {most}"
            self._check_days(badge_id, count)
        self.check_milestones()

    def _check_days(self, badge_id: str, count: int) -> None:
        """Check that the history has every counted view, and the stored ones in their own days."""
        days = self.history(badge_id)
        assert not isinstance(days, str), days
        viewed = {day: views for day, views in days.items() if views}
        assert days[SUM] == count, f"{badge_id[:9]}: {count} counted, the history has {viewed}"
        hours = self.history(badge_id, "hour")
        assert not isinstance(hours, str), hours
        again = {*sum(self.ledger.removals[badge_id], Counter())} & {*+Counter(hours)}
        assert not again, f"{badge_id[:9]}: {again} were removed and have views again"
        for day, ulids in self.ledger.stored_by_day().items():
            least = self.ledger.bounds(badge_id, among=ulids)[0]
            least -= self.ledger.removed(badge_id, day)
            assert days.get(day, 0) >= least, f"{badge_id[:9]}: {least} of {day}, shown {viewed}"

    def check_milestones(self) -> None:
        """Count a further view of each badge, and check that it left no milestone to be reached."""
        now = self.clock()
        for badge_id in self.badges():
            ahead = max(to_milliseconds(now), read(self.engine, badge_id).watermark + 1)
            view = View(badge_id, new_ulid(ahead), hot=True)
            webhooks = self.resources.webhooks
            counting = Counting(self.engine, self.windows, self.clock, webhooks=webhooks)
            storing.count_at_once(counting, badge_id, [view])
            self.milestones.check(self.engine, badge_id)

    def names(self) -> list[str]:
        """Return all ids that had a view or a request."""
        return sorted(set(self.ledger.views) | set(self.ledger.ends))

    def badges(self) -> list[str]:
        """Return the ids that are not aliases."""
        return [name for name in self.names() if self.ledger.place(name) == name]


def _find_wrong(shown: Mapping[str, int], before: Mapping[str, int], most: int) -> str:
    """Return which number breaks law 2 or 3, or nothing."""
    for name, views in shown.items():
        if views > most:
            return f"over: it shows {views} {name}, {most} were taken"
        if views < before.get(name, 0):
            return f"down: it shows {views} {name} after {before[name]}"
    return ""
