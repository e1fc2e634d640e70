"""The early fold: hot views counted at once and expired ones counted early, each exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chalicelib.ports import (
    Delete,
    Item,
    Key,
    Put,
    Refused,
    Table,
    Unavailable,
    Update,
    Write,
    number,
)
from chalicelib.views import counting, early, keys, storing
from chalicelib.views.early import TRANSACTIONS, TRIES
from chalicelib.views.storing import Lifetime
from chalicelib.views.view import View
from tests.unit.fakes import NOON, FaultyTable, raising, ulid_of
from tests.unit.timers import ENGINES, table_on

BADGE = "octocat"
LIFETIME = Lifetime(window=300, redelivery=300)
TTL = int(NOON) + 300
DAY = 86_400
UNTIL = int(NOON) + 3_600
AT_ONCE = 98
"""Views in a transaction of 100 writes, beside the badge and one day."""


@pytest.fixture(params=ENGINES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Table]:
    with table_on(request.param, tmp_path) as opened:
        yield opened


def hot(count: int, at: float = NOON, reset: int = 0) -> list[View]:
    """Views a millisecond after another."""
    return [View.taken(BADGE, 0, at + place / 1000, reset, hot=UNTIL) for place in range(count)]


def live(table: Table, count: int, ttl: int, at: float = NOON - 900) -> list[str]:
    """Store so many views, a millisecond after another; returns their ULIDs."""
    ulids = [ulid_of(at + place / 1000) for place in range(count)]
    places = [keys.view(BADGE, ulid) for ulid in ulids]
    table.put_all([{"PK": key.pk, "SK": key.sk, "ttl": ttl} for key in places])
    return ulids


def user(table: Table) -> Item:
    return table.get(keys.user(BADGE)) or {}


def counted(table: Table) -> int:
    return number(user(table), "count")


def stored(table: Table) -> list[str]:
    items = table.query(keys.partition(BADGE), first=keys.VIEW, limit=9_999)
    return [str(item["SK"]).removeprefix(keys.VIEW) for item in items]


def days(table: Table) -> dict[str, dict[str, int]]:
    items = table.query(keys.partition(BADGE), first=keys.DAY, last=keys.OWNER, limit=99)
    return {
        str(item["SK"]): {n: v for n, v in item.items() if isinstance(v, int)} for item in items
    }


# ---- hot views


def test_a_hot_view_is_counted_at_once_and_leaves_a_marker_of_its_own(table: Table) -> None:
    [view] = hot(1)
    assert early.count([view], BADGE, table, TTL, NOON) == 1
    assert counting.read(table, BADGE) == counting.Count(folded=1, live=0, floor=0)
    assert user(table)["created"] == int(NOON)
    assert counting.read(table, BADGE).hot == UNTIL
    assert days(table) == {"DAY#2026-03-14": {"views": 1, "h12": 1}}
    marker = keys.seen(view.ulid)
    assert table.get(marker) == {"PK": marker.pk, "SK": marker.sk, "badge": BADGE, "ttl": TTL}
    assert not marker.pk.startswith(keys.PARTITION)


def test_a_hot_view_that_comes_again_is_counted_once(table: Table) -> None:
    views = hot(3)
    assert early.count(views[:2], BADGE, table, TTL, NOON) == 2
    assert early.count([*views, views[0]], BADGE, table, TTL, NOON) == 1
    watched = FaultyTable(table)
    assert early.count(views, BADGE, watched, TTL, NOON) == 0
    assert len(watched.written) == 1
    assert counted(table) == 3
    assert days(table) == {"DAY#2026-03-14": {"views": 3, "h12": 3}}


def test_no_views_are_no_call(table: Table) -> None:
    watched = FaultyTable(table)
    assert early.count([], BADGE, watched, TTL, NOON) == 0
    assert watched.written == []


@pytest.mark.parametrize("count", [AT_ONCE, AT_ONCE + 1])
def test_as_many_as_a_transaction_takes_are_counted_by_one(table: Table, count: int) -> None:
    watched = FaultyTable(table)
    assert early.count(hot(count), BADGE, watched, TTL, NOON) == count
    assert [len(writes) for writes in watched.written] == [100, *([3] if count > AT_ONCE else [])]
    assert counted(table) == count


def test_views_of_two_days_are_of_both(table: Table) -> None:
    """One write more, for the second day: 97 views and one."""
    watched = FaultyTable(table)
    midnight = NOON + DAY / 2
    views = [*hot(AT_ONCE - 1, midnight - 60), *hot(1, midnight)]
    assert early.count(views, BADGE, watched, TTL, NOON) == AT_ONCE
    assert [len(writes) for writes in watched.written] == [99, 3]
    assert days(table) == {
        "DAY#2026-03-14": {"views": AT_ONCE - 1, "h23": AT_ONCE - 1},
        "DAY#2026-03-15": {"views": 1, "h00": 1},
    }


def test_of_views_of_two_days_those_that_are_counted_already_are_left_out(table: Table) -> None:
    midnight = NOON + DAY / 2
    views = [*hot(2, midnight - 60), *hot(2, midnight)]
    early.count(views[1:3], BADGE, table, TTL, NOON)
    assert early.count(views, BADGE, table, TTL, NOON) == 2
    assert days(table) == {
        "DAY#2026-03-14": {"views": 2, "h23": 2},
        "DAY#2026-03-15": {"views": 2, "h00": 2},
    }


def test_what_was_taken_before_a_reset_does_not_count(table: Table) -> None:
    """The badge began anew while the message was on its way: 2 of 5 views came after that."""
    views = hot(5)
    reset = int(NOON * 1000) + 3
    table.write(Put({"PK": "USER#octocat", "SK": "USER", "reset": reset}))
    assert early.count(views, BADGE, table, TTL, NOON) == 2
    assert counted(table) == 2
    assert days(table) == {"DAY#2026-03-14": {"views": 2, "h12": 2}}
    assert early.count(views, BADGE, table, TTL, NOON) == 0


def test_a_view_that_has_seen_the_reset_is_counted_by_one_write(table: Table) -> None:
    reset = int(NOON * 1000) - 5
    table.write(Put({"PK": "USER#octocat", "SK": "USER", "reset": reset, "count": 4}))
    watched = FaultyTable(table)
    assert early.count(hot(2, reset=reset), BADGE, watched, TTL, NOON) == 2
    assert len(watched.written) == 1
    assert counted(table) == 6


def test_views_go_where_the_name_leads(table: Table) -> None:
    table.write(Put({"PK": "USER#octocat", "SK": "USER", "alias": "new"}))
    table.write(Put({"PK": "USER#new", "SK": "USER", "count": 7, "reset": 3}))
    assert early.count(hot(2), BADGE, table, TTL, NOON) == 2
    assert counting.read(table, BADGE).folded == 9
    assert days(table) == {}


def test_an_answer_that_is_lost_counts_nothing_twice(table: Table) -> None:
    views = hot(2)
    faulty = FaultyTable(table, after_write=raising(Unavailable("the answer was lost")))
    with pytest.raises(Unavailable):
        early.count(views, BADGE, faulty, TTL, NOON)
    assert early.count(views, BADGE, faulty, TTL, NOON) == 0
    assert counted(table) == 2


def test_two_at_once_count_each_view_once(table: Table) -> None:
    """Before each of its transactions another takes some of the same views."""
    views = hot(8)
    others = iter([views[:3], views[2:5], views[5:6]])

    def meanwhile(_: Sequence[Write]) -> None:
        early.count(next(others, []), BADGE, table, TTL, NOON)

    assert early.count(views, BADGE, FaultyTable(table, before_write=meanwhile), TTL, NOON) == 2
    assert counted(table) == 8
    assert days(table) == {"DAY#2026-03-14": {"views": 8, "h12": 8}}


def test_a_reset_between_two_tries_is_heeded(table: Table) -> None:
    views = hot(5)
    resets = iter([int(NOON * 1000) + 2, int(NOON * 1000) + 4])

    def meanwhile(_: Sequence[Write]) -> None:
        if reset := next(resets, 0):
            table.write(Put({"PK": "USER#octocat", "SK": "USER", "reset": reset}))

    assert early.count(views, BADGE, FaultyTable(table, before_write=meanwhile), TTL, NOON) == 1
    assert counted(table) == 1


def test_who_is_always_overtaken_gives_up_and_has_counted_nothing(table: Table) -> None:
    resets = iter(range(1, 99))

    def meanwhile(_: Sequence[Write]) -> None:
        table.write(Update(keys.user(BADGE), values={"reset": next(resets)}))

    overtaken = FaultyTable(table, before_write=meanwhile)
    with pytest.raises(Unavailable, match=f"^{TRIES} other folds of octocat came in between"):
        early.count(hot(2), BADGE, overtaken, TTL, NOON)
    assert len(overtaken.written) == TRIES
    assert counted(table) == 0
    assert days(table) == {}


# ---- expired views


def test_expired_views_are_counted_and_gone_and_no_others(table: Table) -> None:
    over, now, later = (
        live(table, 2, int(NOON) - 1),
        live(table, 2, int(NOON), NOON - 800),
        live(table, 2, int(NOON) + 1, NOON - 700),
    )
    assert early.fold_expired(BADGE, table, NOON) == len(over)
    assert stored(table) == [*now, *later]
    assert counting.read(table, BADGE).counted == 6
    assert days(table) == {"DAY#2026-03-14": {"views": 2, "h11": 2}}
    assert early.fold_expired(BADGE, table, NOON) == 0


def test_a_badge_stays_hot_as_long_as_it_was_whoever_ends_its_old_views(table: Table) -> None:
    early.count(hot(1), BADGE, table, TTL, NOON)
    live(table, 2, int(NOON) - 1)
    assert early.fold_expired(BADGE, table, NOON) == 2
    assert counting.read(table, BADGE).hot == UNTIL


def test_the_oldest_go_first_and_no_more_than_some_at_a_call(table: Table) -> None:
    watched = FaultyTable(table)
    most = TRANSACTIONS * AT_ONCE
    ulids = live(table, most + 5, int(NOON) - 1)
    assert early.fold_expired(BADGE, watched, NOON) == most
    assert [len(writes) for writes in watched.written] == [100] * TRANSACTIONS
    assert stored(table) == ulids[most:]
    assert early.fold_expired(BADGE, watched, NOON) == 5
    assert counted(table) == most + 5
    assert stored(table) == []


def test_a_view_that_ttl_removes_meanwhile_is_left_to_the_stream(table: Table) -> None:
    ulids = live(table, 5, int(NOON) - 1)
    gone = iter(ulids[1:3])

    def ttl_removes_one(_: Sequence[Write]) -> None:
        if ulid := next(gone, ""):
            table.write(Delete(keys.view(BADGE, ulid)))

    faulty = FaultyTable(table, before_write=ttl_removes_one)
    assert early.fold_expired(BADGE, faulty, NOON) == 3
    assert counted(table) == 3
    assert stored(table) == []


def test_a_view_that_is_put_again_meanwhile_stays_and_is_not_counted(table: Table) -> None:
    """Its message came once more: it has a new time to live, and is counted at its end."""
    ulids = live(table, 3, int(NOON) - 1)
    again = iter(ulids[1:2])

    def put_again(_: Sequence[Write]) -> None:
        for ulid in again:
            key = keys.view(BADGE, ulid)
            table.write(Put({"PK": key.pk, "SK": key.sk, "ttl": TTL}))

    assert early.fold_expired(BADGE, FaultyTable(table, before_write=put_again), NOON) == 2
    assert stored(table) == ulids[1:2]


def test_two_that_fold_at_once_count_each_view_once(table: Table) -> None:
    live(table, 150, int(NOON) - 1)
    once = iter([True])

    def another(_: Sequence[Write]) -> None:
        if next(once, False):
            assert early.fold_expired(BADGE, table, NOON) == 150

    assert early.fold_expired(BADGE, FaultyTable(table, before_write=another), NOON) == 0
    assert counted(table) == 150
    assert days(table) == {"DAY#2026-03-14": {"views": 150, "h11": 150}}


def test_expired_views_of_before_a_reset_go_and_do_not_count(table: Table) -> None:
    live(table, 3, int(NOON) - 1)
    reset = int((NOON - 900) * 1000) + 2
    table.write(Put({"PK": "USER#octocat", "SK": "USER", "reset": reset}))
    assert early.fold_expired(BADGE, table, NOON) == 1
    assert counted(table) == 1
    assert stored(table) == []


def test_expired_views_of_a_badge_that_began_anew_go_by_one_write(table: Table) -> None:
    live(table, 3, int(NOON) - 1)
    table.write(Put({"PK": "USER#octocat", "SK": "USER", "reset": int((NOON - 900) * 1000)}))
    watched = FaultyTable(table)
    assert early.fold_expired(BADGE, watched, NOON) == 3
    assert len(watched.written) == 1


def test_a_long_history_hides_no_expired_view(table: Table) -> None:
    days = [keys.day(BADGE, datetime.fromtimestamp(NOON - n * DAY, UTC)) for n in range(400)]
    table.put_all([{"PK": key.pk, "SK": key.sk, "views": 1} for key in days])
    live(table, 3, int(NOON) - 1)
    assert early.fold_expired(BADGE, table, NOON) == 3
    assert stored(table) == []


def test_an_alias_leads_to_the_badge_whose_views_they_are(table: Table) -> None:
    live(table, 3, int(NOON) - 1)
    table.write(Put({"PK": "USER#old", "SK": "USER", "alias": BADGE}))
    assert early.fold_expired("old", table, NOON) == 3
    assert counted(table) == 3


@pytest.mark.parametrize(
    "item",
    [{"SK": "VIEW#no-ulid", "ttl": 1}, {"SK": f"VIEW#{ulid_of(NOON)}"}, {"SK": "VIEX", "ttl": 1}],
    ids=["no ULID", "no time to live", "no view"],
)
def test_what_nothing_here_wrote_is_left_alone(table: Table, item: Item) -> None:
    table.write(Put({"PK": "USER#octocat", **item}))
    watched = FaultyTable(table)
    assert early.fold_expired(BADGE, watched, NOON) == 0
    assert watched.written == []
    assert table.get(Key("USER#octocat", str(item["SK"]))) is not None


def test_a_badge_without_views_costs_two_reads(table: Table) -> None:
    watched = FaultyTable(table)
    assert early.fold_expired(BADGE, watched, NOON) == 0
    assert watched.written == []


# ---- where they are stored


def test_of_a_batch_hot_views_are_counted_and_the_others_stored(table: Table) -> None:
    views = [View.taken(BADGE, 7, NOON), *hot(2), View.taken("another", 0, NOON)]
    assert storing.store(views, table, LIFETIME, NOON, map) == {}
    assert counting.read(table, BADGE) == counting.Count(folded=2, live=1, floor=8)
    assert counting.read(table, "another").live == 1


def test_hot_views_that_can_not_be_counted_fail_alone(table: Table) -> None:
    """The floor is raised and the other view stored; the hot ones come again."""
    views = [View.taken(BADGE, 0, NOON), *hot(2)]

    def fail(writes: Sequence[Write]) -> None:
        if len(writes) > 1:
            raise Refused("too hot")

    failed = storing.store(views, FaultyTable(table, before_write=fail), LIFETIME, NOON, map)
    assert list(failed) == views[1:]
    assert {str(reason) for reason in failed.values()} == {"too hot"}
    assert counting.read(table, BADGE).live == 1
    assert storing.store(views, table, LIFETIME, NOON, map) == {}
    assert counting.read(table, BADGE).counted == 3


def test_a_hot_view_that_no_queue_takes_is_counted_by_the_get_and_once(table: Table) -> None:
    """Its message may be on its way all the same."""
    [view] = hot(1)
    storing.store_one(view, table, LIFETIME, NOON)
    assert counting.read(table, BADGE) == counting.Count(folded=1, live=0, floor=1)
    assert storing.store([view], table, LIFETIME, NOON, map) == {}
    assert counting.read(table, BADGE).counted == 1


def test_a_hot_view_of_a_name_that_leads_on_is_counted_there_alone(table: Table) -> None:
    table.write(Put({"PK": "USER#octocat", "SK": "USER", "alias": "new"}))
    [view] = hot(1)
    storing.store_one(view, table, LIFETIME, NOON)
    assert counting.read(table, "new") == counting.Count(folded=1, live=0, floor=1)
    assert stored(table) == []
