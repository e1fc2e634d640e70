"""What a badge shows, and how a view is taken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chalicelib.ports import (
    Delete,
    Item,
    Key,
    Put,
    Refused,
    StorageError,
    Unavailable,
    key_of,
)
from chalicelib.views import counting, folding, keys, storing
from chalicelib.views.counting import Count
from chalicelib.views.storing import Lifetime
from chalicelib.views.view import View
from local.table import SqliteTable
from tests.unit.fakes import NOON, FakeQueue, FaultyTable, raising, removal, sqlite_table, ulid_of

LIFETIME = Lifetime(window=300, redelivery=300)
PARTITION = "USER#octocat"


@pytest.fixture
def table(tmp_path: Path) -> Iterator[SqliteTable]:
    with sqlite_table(tmp_path) as opened:
        yield opened


def view_items(views: int, badge_id: str = "octocat") -> list[Item]:
    return [
        {"PK": f"USER#{badge_id}", "SK": f"VIEW#{ulid_of(NOON, f'{place:016}')}", "ttl": 1}
        for place in range(views)
    ]


def user(**attributes: int) -> Put:
    return Put({"PK": PARTITION, "SK": "USER", **attributes})


def test_a_new_badge_shows_0(table: SqliteTable) -> None:
    assert counting.read(table, "octocat") == Count(folded=0, live=0, floor=0)


def test_a_badge_shows_its_count_and_its_live_views(table: SqliteTable) -> None:
    table.write(user(count=40, floor=3))
    table.put_all(view_items(2))
    count = counting.read(table, "octocat")
    assert count == Count(folded=40, live=2, floor=3)
    assert count.shown == 40 + 2


def test_views_count_before_the_badge_has_an_item_of_its_own(table: SqliteTable) -> None:
    table.put_all(view_items(5))
    assert counting.read(table, "octocat") == Count(folded=0, live=5, floor=0)


def test_a_badge_never_shows_less_than_its_floor() -> None:
    assert Count(folded=10, live=2, floor=13).shown == 13
    assert Count(folded=10, live=3, floor=13).shown == 13
    assert Count(folded=10, live=4, floor=13).shown == 14


@pytest.mark.parametrize("views", [98, 99, 100, 101, 250])
@pytest.mark.parametrize("known", [False, True])
def test_every_view_counts_once_whether_read_or_counted_behind_the_first_read(
    table: SqliteTable, views: int, *, known: bool
) -> None:
    if known:
        table.write(user(count=7))
    table.put_all(view_items(views))
    assert counting.read(table, "octocat") == Count(7 * known, views, 0)


@pytest.mark.parametrize(("views", "live"), [(7_998, 7_998), (7_999, 7_999), (8_100, 7_999)])
def test_a_badge_counts_7999_live_views_and_is_read_no_further(
    table: SqliteTable, views: int, live: int
) -> None:
    table.write(user(count=1))
    table.put_all(view_items(views))
    assert counting.read(table, "octocat").live == live


def test_views_that_have_expired_and_are_not_yet_removed_still_count(table: SqliteTable) -> None:
    table.put_all([{"PK": PARTITION, "SK": f"VIEW#{ulid_of(NOON)}", "ttl": 1}])
    assert counting.read(table, "octocat").live == 1


def test_only_views_of_the_badge_itself_count(table: SqliteTable) -> None:
    table.put_all(view_items(3))
    table.put_all(view_items(1, "octocat2"))
    table.put_all(view_items(1, "octo"))
    table.put_all(
        [
            {"PK": PARTITION, "SK": "DAY#2026-03-14", "views": 9},
            {"PK": PARTITION, "SK": "OWNER", "count": 9},
        ]
    )
    assert counting.read(table, "octocat") == Count(folded=0, live=3, floor=0)


def test_a_history_of_a_thousand_days_hides_neither_count_nor_views(table: SqliteTable) -> None:
    table.put_all([{"PK": PARTITION, "SK": f"DAY#{day:04}", "views": 1} for day in range(1_000)])
    table.write(user(count=1_000))
    table.put_all(view_items(2))
    assert counting.read(table, "octocat").shown == 1_000 + 2


def test_an_id_like_a_sort_key_is_an_id_like_any_other(table: SqliteTable) -> None:
    table.put_all(view_items(2, "VIEW#x"))
    table.put_all(view_items(1, "USER#VIEW#x"))
    assert counting.read(table, "VIEW#x").live == 2


def test_a_fold_between_the_two_reads_shows_neither_more_nor_less(table: SqliteTable) -> None:
    """150 views, all shown before: one is removed and folded while the badge is being read."""
    table.write(user(floor=150))
    table.put_all(view_items(150))
    last = view_items(150)[-1]

    def remove_and_fold(_: str) -> None:
        table.write(Delete(key_of(last)))
        folding.fold([removal(1)], table, NOON)

    between = FaultyTable(table, before_count=remove_and_fold)
    count = counting.read(between, "octocat")
    assert (count.folded, count.live) == (0, 149)
    assert count.shown == 150
    # Afterwards the fold is in the sum: 1 + 149.
    assert counting.read(table, "octocat") == Count(folded=1, live=149, floor=150)


def test_a_count_that_is_no_number_is_an_error_and_no_number(table: SqliteTable) -> None:
    table.write(Put({"PK": PARTITION, "SK": "USER", "count": "many"}))
    with pytest.raises(TypeError, match="count is 'many'"):
        counting.read(table, "octocat")


def test_a_view_is_taken_by_the_queue(table: SqliteTable) -> None:
    view, queue = View.taken("octocat", 4, NOON), FakeQueue()
    assert counting.take(view, queue, table, LIFETIME, NOON)
    assert [View.from_message(body) for body in queue.bodies] == [view]
    assert table.query(PARTITION, limit=10) == []


@pytest.mark.parametrize("failure", [Unavailable("throttled"), Refused("no such queue")])
def test_a_view_that_the_queue_fails_is_stored_at_once_with_its_floor(
    table: SqliteTable, failure: StorageError
) -> None:
    view = View.taken("octocat", 4, NOON)
    assert not counting.take(view, FakeQueue(failure), table, LIFETIME, NOON)
    assert counting.read(table, "octocat") == Count(folded=0, live=1, floor=4 + 1)
    stored = table.get(Key(PARTITION, f"VIEW#{view.ulid}"))
    assert stored is not None
    assert stored["ttl"] == LIFETIME.ttl(NOON)


def test_a_message_taken_by_a_queue_that_failed_is_the_view_stored_at_once(
    table: SqliteTable,
) -> None:
    view = View.taken("octocat", 0, NOON)
    queue = FakeQueue(Unavailable("no answer"), after=True)
    assert not counting.take(view, queue, table, LIFETIME, NOON)
    delivered = [View.from_message(body) for body in queue.bodies]
    assert storing.store(delivered, table, LIFETIME, NOON, map) == {}
    assert counting.read(table, "octocat").shown == 1


def test_a_view_that_queue_and_table_fail_is_an_error_for_its_visitor_and_never_shown(
    table: SqliteTable,
) -> None:
    broken = FaultyTable(table, before_put=raising(Unavailable("throttled")))
    with pytest.raises(Unavailable):
        counting.take(
            View.taken("octocat", 0, NOON), FakeQueue(Unavailable("too")), broken, LIFETIME, NOON
        )
    assert counting.read(table, "octocat").shown == 0


def test_days_and_owner_sort_before_the_badge_and_views_behind_it() -> None:
    day = keys.day("octocat", removal(1).taken_at).sk
    view = keys.view("octocat", ulid_of(NOON)).sk
    assert max(day, "OWNER") < keys.user("octocat").sk < view


AT_NOON = int(NOON * 1000)


def alias(badge_id: str, of: str) -> Put:
    return Put({"PK": f"USER#{badge_id}", "SK": "USER", "alias": of})


def test_a_base_is_shown_and_not_counted(table: SqliteTable) -> None:
    """1000 + max(40 + 2, 45) = 1045, of which 45 are views."""
    table.write(user(count=40, floor=45, base=1_000))
    table.put_all(view_items(2))
    count = counting.read(table, "octocat")
    assert count == Count(folded=40, live=2, floor=45, base=1_000)
    assert (count.counted, count.shown) == (45, 1_045)


@pytest.mark.parametrize(
    ("stored", "frozen"), [({}, False), ({"frozen": 0}, False), ({"frozen": 1}, True)]
)
def test_a_badge_is_frozen_where_its_owner_says_so(
    table: SqliteTable, stored: dict[str, int], *, frozen: bool
) -> None:
    table.write(user(count=3, **stored))
    assert counting.read(table, "octocat") == Count(3, 0, 0, frozen=frozen)


@pytest.mark.parametrize(("reset", "live"), [(AT_NOON, 3), (AT_NOON + 1, 0)])
def test_live_views_count_from_the_millisecond_of_a_reset_on(
    table: SqliteTable, reset: int, live: int
) -> None:
    table.write(user(reset=reset))
    table.put_all(view_items(3))
    assert counting.read(table, "octocat") == Count(0, live, 0, reset=reset)


@pytest.mark.parametrize("before", [0, 1, 98, 99, 100, 150])
@pytest.mark.parametrize("since", [0, 1, 98, 99, 100, 150])
def test_views_of_before_a_reset_do_not_count_wherever_the_first_read_ends(
    table: SqliteTable, before: int, since: int
) -> None:
    table.write(user(reset=AT_NOON))
    items: list[Item] = [
        {"PK": PARTITION, "SK": f"VIEW#{ulid_of(at, f'{place:016}')}"}
        for at, views in ((NOON - 0.001, before), (NOON, since))
        for place in range(1, 1 + views)
    ]
    table.put_all(items)
    assert counting.read(table, "octocat") == Count(0, since, 0, reset=AT_NOON)


def test_a_name_shows_the_badge_it_leads_to_and_says_which(table: SqliteTable) -> None:
    table.write(user(count=7, base=100, frozen=1))
    table.write(alias("mona", "octocat"))
    table.put_all(view_items(2))
    table.put_all(view_items(1, "mona"))  # stored directly: there is one in the badge too
    count = counting.read(table, "mona")
    assert count == counting.read(table, "octocat") == Count(7, 2, 0, base=100, frozen=True)
    assert count.badge_id == counting.read(table, "octocat").badge_id == "octocat"


def test_a_badge_without_an_item_is_where_it_is_asked_for(table: SqliteTable) -> None:
    assert counting.read(table, "octocat").badge_id == "octocat"
