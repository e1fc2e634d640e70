"""The overview has the numbers that the badges and their histories show, on both engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.counting import badge_count, keys
from chalicelib.counting.badge_count import MAX_LIVE
from chalicelib.history import history
from chalicelib.history.history import Interval, Span
from chalicelib.history.routes import TopBadge, TopQuery
from chalicelib.http import tokens
from chalicelib.owners import changing, claiming, finding
from chalicelib.owners.changing import BadgeChange
from chalicelib.owners.finding import OwnerError
from chalicelib.storage.ports import Table
from simulation.clocks import NOON
from simulation.views import (
    AT_NOON,
    BADGE,
    DAY,
    WINDOWS,
    fold,
    put_summary,
    put_views,
    shown,
    store,
    view,
)
from tests.profile import cases
from vumi.operate.admin import overview
from vumi.operate.admin.most_viewed import MostViewed
from vumi.operate.admin.overview import BadgeOverview
from vumi.storage.badges import count_badges, count_seen, read_badges
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable, all_items

MINUTE = 60_000
HOUR = 3_600
FIRST_OF_MONTH = NOON - 13 * DAY
SECRET = "a" * 40


@pytest.fixture(params=["a file", "items"])
def read(request: pytest.FixtureRequest, database: Database) -> Callable[..., list[BadgeOverview]]:
    """Return the overview of the file by queries, or of its items as a scan returns them."""

    def read(now: float = NOON) -> list[BadgeOverview]:
        if request.param == "items":
            return list(overview.of_items(all_items(database), now))
        return list(overview.of_file(database.read, now))

    return read


def claim(table: Table, badge_id: str = BADGE) -> finding.OwnedBadge:
    secret = claiming.claim(table, badge_id, 0, NOON)
    return finding.authenticate(table, badge_id, secret)


def count_at_once(table: Table, *times: int, now: float = NOON) -> None:
    hot = [view(at, place, hot=True) for place, at in enumerate(times)]
    assert store(table, *hot, now=now) == {}


def test_a_badge_has_its_views_in_total_this_month_today_and_now(
    table: SqliteTable, read: Callable[..., list[BadgeOverview]]
) -> None:
    put_summary(table, base=1_000, created=5)
    put_views(
        table,
        AT_NOON - 30 * DAY * 1000,
        AT_NOON - 20 * DAY * 1000,
        AT_NOON - 2 * DAY * 1000,
        AT_NOON - 60 * MINUTE,
        AT_NOON - 6 * MINUTE,
        AT_NOON - 5 * MINUTE,
        AT_NOON - MINUTE,
    )
    days = (*[0] * 9, 1, *[0] * 17, 1, 0, 4)
    expected = BadgeOverview(BADGE, (BADGE,), 1_007, 5, 4, 2, created=5, days=days, hour=4)
    assert read() == [expected]
    for folded_at in (NOON - 19 * DAY, NOON - DAY, NOON):
        fold(table, folded_at)
    assert read() == [expected]


def test_views_counted_at_once_under_any_name_are_of_now(
    table: SqliteTable, read: Callable[..., list[BadgeOverview]]
) -> None:
    changing.change(table, claim(table), BadgeChange(name="hubot", frozen=True), NOON)
    late = NOON + 600
    store(table, view(AT_NOON + 10 * MINUTE))
    count_at_once(table, AT_NOON + 4 * MINUTE, AT_NOON + 9 * MINUTE, now=late)
    other = view(AT_NOON + 10 * MINUTE, 9, badge_id="hubot", hot=True)
    assert store(table, other, now=late) == {}
    [badge] = read(late)
    assert (badge.badge_id, badge.names, badge.name) == (BADGE, (BADGE, "hubot"), "hubot")
    assert (badge.owned, badge.frozen, badge.total, badge.now) == (True, True, 4, 3)


def test_a_reset_or_deleted_badge_begins_at_0(
    table: SqliteTable, read: Callable[..., list[BadgeOverview]]
) -> None:
    owned = claim(table)
    put_views(table, AT_NOON - DAY * 1000, AT_NOON - 10 * MINUTE, AT_NOON)
    fold(table, NOON)
    changing.change(table, owned, BadgeChange(reset=True), NOON)
    assert [(one.total, one.month, one.today, one.now) for one in read(NOON + 1)] == [(0, 0, 0, 0)]
    changing.delete(table, finding.look_up(table, BADGE), NOON, WINDOWS.retention)
    assert read() == []
    put_views(table, AT_NOON + MINUTE)
    assert [(badge.total, badge.owned) for badge in read()] == [(1, False)]


def test_a_badge_shows_no_more_live_views_than_its_visitors_see_and_other_items_are_none(
    table: SqliteTable, read: Callable[..., list[BadgeOverview]]
) -> None:
    for pk, sk in (("TIMER#a", "TIMER"), ("WALLET#a", "WALLET"), ("USER$", "VIEWS")):
        table.put_all([{"PK": pk, "SK": sk}])
    put_views(table, *range(AT_NOON, AT_NOON + MAX_LIVE + 1))
    assert [badge.total for badge in read()] == [shown(table)] == [MAX_LIVE]


def test_the_file_is_read_in_queries_of_some_badges(database: Database, table: SqliteTable) -> None:
    for place in range(7):
        put_summary(table, f"badge-{place}", count=place)
    limits = []

    def read(sql: str, arguments: Sequence[object]) -> list[tuple[object, ...]]:
        limits.append(arguments[-1])
        return database.read(sql, arguments)

    found = read_badges(read, "2026-03-01", "h11", badges_in_a_query=3)
    assert [badge.badge_id for badge in found] == [f"badge-{place}" for place in range(7)]
    assert limits == [3, 3, 3, 3]


def test_earlier_days_and_counted_views_are_not_read(
    database: Database, table: SqliteTable
) -> None:
    for day in ("2026-02-28", "2026-03-01"):
        place = keys.day(BADGE, day)
        hours = {"h00": 1, "h07": 2}
        table.put_all([{"PK": place.pk, "SK": place.sk, "views": 3, **hours, "version": 2}])
    [badge] = read_badges(database.read, "2026-03-01", "h07")
    assert badge.days == [{"SK": "DAY#2026-03-01", "views": 3, "reset": 0, "h07": 2}]
    count_at_once(table, AT_NOON - 1, AT_NOON, AT_NOON + 1)
    assert count_seen(database.read, AT_NOON) == {BADGE: 2}


def test_badges_are_counted_up_to_a_limit_without_aliases_and_deleted_ones(
    database: Database, table: SqliteTable
) -> None:
    assert count_badges(database.read, 9) == 0
    for badge_id in ("deleted", "renamed", "visited"):
        put_summary(table, badge_id)
    store(table, view(AT_NOON, badge_id="viewed"))
    changing.change(table, claim(table, "renamed"), BadgeChange(name="new"), NOON)
    changing.delete(table, claim(table, "deleted"), NOON, 3_600)
    claim(table, "claimed")
    assert [count_badges(database.read, most) for most in (9, 3)] == [4, 3]
    assert len(list(overview.of_file(database.read, NOON))) == 4


@pytest.mark.parametrize(
    ("hour", "others", "is_burst"),
    [(1_000, 0, False), (1_001, 0, True), (2_000, 70_000, False), (2_001, 70_000, True)],
)
def test_an_hour_far_above_the_own_month_is_a_burst(
    hour: int, others: int, *, is_burst: bool
) -> None:
    """The mean of 72,000 views in 720 hours is 100."""
    days = (*[0] * 28, others, 2_000)
    badge = BadgeOverview("a", ("a",), 0, 0, 0, 0, days=days, hour=hour)
    assert badge.is_burst is is_burst


def test_the_last_hour_of_yesterday_is_read_from_its_finished_day(
    table: SqliteTable, read: Callable[..., list[BadgeOverview]]
) -> None:
    midnight = AT_NOON + 12 * 60 * MINUTE
    put_views(table, midnight - 61 * MINUTE, midnight - 60 * MINUTE, midnight - 1, midnight)
    fold(table, NOON + 12.5 * HOUR)
    [badge] = read(NOON + 12.5 * HOUR)
    assert (badge.hour, badge.days[-2:]) == (2, (3, 1))


@pytest.mark.parametrize(
    ("searched", "found"), [("HUB", True), ("octo", True), ("b\n", False), ("", True)]
)
def test_a_search_finds_any_name_in_any_case(searched: str, *, found: bool) -> None:
    assert BadgeOverview("octocat", ("octocat", "Hubot"), 0, 0, 0, 0).has(searched) is found


# ---- the same numbers as a badge and its history, whatever happened before

ACTIONS = ("view", "view", "view", "hot", "fold", "reset", "rename", "delete", "claim")
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.sampled_from(("a", "b", "c")), st.integers(0, 3 * DAY)),
    max_size=30,
)


def act(table: Table, action: str, badge_id: str, now: float, place: int) -> None:
    """Do one step of a history as the routes and the consumers do it."""
    match action:
        case "view" | "hot":
            # A visitor's view is later than the watermark that they read.
            watermark = badge_count.read(table, badge_id).summary.watermark
            taken = view(max(int(now * 1000), watermark + 1), place, badge_id)
            store(table, taken._replace(hot=action != "view"), now=now)
        case "fold":
            fold(table, now, badge_id)
        case "claim":
            claiming.claim(table, badge_id, 10, now, tokens.digest(SECRET))
        case _:
            owned = finding.authenticate(table, badge_id, SECRET)
            if action == "delete":
                changing.delete(table, owned, now, WINDOWS.retention)
            else:
                change = {"reset": {"reset": True}, "rename": {"name": badge_id * 2}}[action]
                changing.change(table, owned, BadgeChange(**change), now)  # type: ignore[arg-type]


def expected(table: Table, badge: BadgeOverview, now: float) -> BadgeOverview:
    """Return the badge with the number that it shows, and the numbers of its history."""
    by_day = history.read(table, badge.badge_id, Span(31), now).buckets
    by_hour = history.read(table, badge.badge_id, Span(2, by=Interval.HOUR), now).buckets
    month = [one.views for one in by_day if one.start.month == by_day[-1].start.month]
    return replace(
        badge,
        total=shown(table, badge.badge_id),
        month=sum(month),
        today=month[-1],
        days=tuple(one.views for one in by_day[-overview.DAYS :]),
        hour=by_hour[-2].views,
    )


@settings(max_examples=cases(60), deadline=None)
@given(STEPS)
def test_after_any_history_the_numbers_are_those_of_the_badges(
    steps: list[tuple[str, str, int]],
) -> None:
    with TemporaryDirectory() as folder:
        database = Database(Path(folder) / FILE)
        table, now = SqliteTable(database), FIRST_OF_MONTH - 3 * DAY
        for place, (action, badge_id, wait) in enumerate(steps):
            now += wait
            try:
                act(table, action, badge_id, now, place)
            except OwnerError:  # a claim of a viewed badge, a change of an unclaimed one
                continue
        now += HOUR  # so that the latest views are of the last full hour
        by_queries = list(overview.of_file(database.read, now))
        by_scan = list(overview.of_items(all_items(database), now))
        assert sorted(by_scan, key=lambda one: one.badge_id) == by_queries
        for badge in by_queries:
            assert badge == expected(table, badge, now)
            shown_there = TopBadge(badge.name, badge.total, sum(badge.days[-3:]))
            query = TopQuery(badge.name[:1], 3, 100)
            in_top = MostViewed(database.read, (), lambda _: True).read(query, now)
            assert [one for one in in_top if one.badge_id == badge.name] == (
                [shown_there] if shown_there.views else []
            )
        database.close()
