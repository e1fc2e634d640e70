"""The count of a badge, and the message of a new view."""

from __future__ import annotations

import pytest

from bench.metered_table import item_bytes
from chalicelib.aws.attribute_values import encode_item
from chalicelib.counting import badge_count, keys
from chalicelib.counting.badge_count import Count, page_size
from chalicelib.counting.view import View, ViewMessages
from chalicelib.settings import HOT_VIEWS as HOT
from chalicelib.storage.errors import StorageError, StorageRefusedError, UnavailableError
from chalicelib.storage.items import Item, Value
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put
from chalicelib.ulids import earliest, latest
from simulation.clocks import NOON
from simulation.storage import FakeQueue, FaultyTable, MemoryTable, raising
from simulation.views import (
    AT_NOON,
    BADGE,
    WINDOWS,
    counting,
    put_summary,
    put_views,
    shown,
    ulid,
    view,
)

PAGE = page_size(MemoryTable(), BADGE)
"""Items of the badge that one read unit reads: its summary and 64 views, say."""


def read(table: Table, badge_id: str = BADGE) -> tuple[Count, list[str]]:
    """Count the views of a badge; return the count and the reads that it took."""
    reads: list[str] = []
    return badge_count.read(FaultyTable(table, before_read=reads.append), badge_id), reads


def many(table: Table, amount: int, at: int = AT_NOON) -> None:
    """Put views, a millisecond after another."""
    put_views(table, *range(at, at + amount))


# ---- what it shows


def test_a_badge_shows_its_base_its_count_and_its_live_views(table: Table) -> None:
    put_summary(table, count=40, base=1_000, watermark=AT_NOON)
    put_views(table, AT_NOON - 1, AT_NOON, AT_NOON + 1, AT_NOON + 2)
    count, reads = read(table)
    assert (count.live, count.shown) == (2, 1_000 + 40 + 2)
    assert count.newest == [ulid(AT_NOON + 2, 3), ulid(AT_NOON + 1, 2)]
    assert (count.summary.base, count.summary.count) == (1_000, 40)
    assert reads == ["query"]


@pytest.mark.parametrize(("after", "live"), [(0, 0), (1, 1)])
def test_a_view_of_the_watermarks_own_millisecond_is_in_the_count(
    table: Table, after: int, live: int
) -> None:
    """Whatever the random parts of their ULIDs are: the highest of one, the lowest of the next."""
    put_summary(table, watermark=AT_NOON)
    place = keys.view(BADGE, earliest(AT_NOON + 1) if after else latest(AT_NOON))
    table.write(Put(place.item(ttl=1)))
    assert shown(table) == live


def test_days_and_owner_sort_before_the_views_and_these_before_the_summary() -> None:
    """So one descending query reads the summary and the newest views."""
    day, owner = keys.day(BADGE, "9999-12-31").sk, keys.owner(BADGE).sk
    first, last = keys.view(BADGE, "0" * 26).sk, keys.view(BADGE, "7" + "Z" * 25).sk
    assert day < owner < keys.VIEW < first < last < keys.summary(BADGE).sk == keys.SUMMARY


def test_an_alias_shows_its_badge_and_returns_its_id(table: Table) -> None:
    put_summary(table, count=7, base=100, frozen=1)
    put_summary(table, "mona", alias=BADGE, watermark=AT_NOON + 999)
    many(table, 2)
    put_views(table, AT_NOON + 1_000, badge_id="mona")  # moved by the fold of its window
    assert read(table, "mona") == (read(table)[0], ["query", "query"])
    assert read(table, "mona")[0].summary.badge_id == BADGE
    assert shown(table, "mona") == 7 + 100 + 2


def test_an_alias_is_followed_once_with_the_day_that_is_asked_for(table: Table) -> None:
    """Renames leave no alias of an alias; a table that has one must not hold a request for ever."""
    put_summary(table, "mona", alias=BADGE)
    put_summary(table, BADGE, count=3, today={"day": "2026-03-14", "h12": 3}, alias="mona")
    count = badge_count.read(table, "mona", with_today=True)
    assert (count.summary.badge_id, count.summary.today.views) == (BADGE, 3)
    assert badge_count.read(table, "mona").summary.today.views == 0


# ---- how it is read


def bytes_of_page(badge_id: str, items: int) -> int:
    """Return the bytes of the largest page of so many items of a badge."""
    most: dict[str, Value] = {f"h{hour:02}": 99_999_999 for hour in range(24)}
    largest: Item = {
        **keys.summary(badge_id).item(),
        **dict.fromkeys(("count", "base"), 10**15 - 1),
        **dict.fromkeys(("watermark", "reset"), 1_773_489_600_123),
        **dict.fromkeys(("created", "hot"), 1_773_489_601),
        "today": {"day": "2026-03-14", **most},
        "version": 10**9 - 1,
        "frozen": 1,
    }
    one = keys.view(badge_id, ulid()).item(ttl=1_773_489_601)
    return item_bytes(encode_item(largest)) + (items - 1) * item_bytes(encode_item(one))


@pytest.mark.parametrize("badge_id", ["a", BADGE, "owner/name", "x" * 100, "x" * 200, "日" * 200])
def test_a_page_is_as_many_items_as_one_read_unit_reads(badge_id: str) -> None:
    """By the sizes that DynamoDB charges for; a view more might be more than a read unit."""
    items, reserve = page_size(MemoryTable(), badge_id), 8
    assert bytes_of_page(badge_id, items) <= 4_096 < bytes_of_page(badge_id, items + 1) + reserve


@pytest.mark.parametrize(("with_summary", "views"), [(True, PAGE - 1), (False, PAGE)])
@pytest.mark.parametrize("more", [-1, 0, 1, 250])
def test_only_a_page_full_of_live_views_is_followed_by_a_count(
    table: Table, views: int, more: int, *, with_summary: bool
) -> None:
    if with_summary:
        put_summary(table, count=7)
    many(table, views + more)
    count, reads = read(table)
    assert (count.live, count.shown) == (views + more, 7 * with_summary + views + more)
    assert len(count.newest) == min(views, views + more)
    assert reads == ["query"] if more < 0 else ["query", "count"]


def test_a_count_counts_live_views_only(table: Table) -> None:
    put_summary(table, count=300, watermark=AT_NOON - 1)
    many(table, 300, AT_NOON - 300)
    many(table, PAGE + 20)
    count, reads = read(table)
    assert (count.live, reads) == (PAGE + 20, ["query", "count"])


@pytest.mark.parametrize(("views", "live"), [(7_999, 7_999), (8_000, 8_000), (8_100, 8_000)])
@pytest.mark.parametrize("with_summary", [False, True])
def test_a_badge_counts_8000_live_views_and_is_read_no_further(
    table: Table, views: int, live: int, *, with_summary: bool
) -> None:
    if with_summary:
        put_summary(table, count=1)
    many(table, views)
    assert read(table)[0].live == live


# ---- the view that is taken


def make_view(table: Table, now: float) -> View:
    return badge_count.read(table, BADGE).view(WINDOWS, now)


@pytest.mark.parametrize(
    ("watermark", "at"), [(-1, 0), (0, 1), (1, 2), (5_000, 5_001), (86_400_000, 86_400_001)]
)
def test_a_view_is_later_than_the_watermark_that_its_visitor_read(
    table: Table, watermark: int, at: int
) -> None:
    """Both in milliseconds after noon, where the clock is."""
    put_summary(table, watermark=AT_NOON + watermark)
    assert make_view(table, NOON).milliseconds == AT_NOON + at


@pytest.mark.parametrize(
    ("newest", "first"),
    [
        ([], True),
        ([-1], True),
        ([0], False),
        ([299_999], False),
        ([300_000], True),
        ([-1, 0], False),
        ([299_999, 300_000], False),
        ([-300_000, -1, 300_000], True),
    ],
)
def test_a_view_is_the_first_if_no_live_one_is_of_its_window(
    table: Table, newest: list[int], *, first: bool
) -> None:
    """The window begins at noon and ends 300,000 ms later."""
    put_views(table, *(AT_NOON + after for after in newest))
    for now in (NOON, NOON + 299.999):
        assert make_view(table, now).first is first


@pytest.mark.parametrize(("after", "first"), [(0, False), (300_000, True)])
def test_the_lowest_ulid_of_a_window_is_in_it_and_that_of_the_next_is_not(
    table: Table, after: int, *, first: bool
) -> None:
    place = keys.view(BADGE, earliest(AT_NOON + after))
    table.write(Put(place.item(ttl=1)))
    assert make_view(table, NOON).first is first


def test_the_window_of_a_view_is_that_of_its_own_time_not_of_the_clock(table: Table) -> None:
    put_summary(table, watermark=AT_NOON + 299_999)
    put_views(table, AT_NOON + 300_000)
    one = make_view(table, NOON)
    assert (one.milliseconds, one.first) == (AT_NOON + 300_000, False)


@pytest.mark.parametrize(("live", "hot"), [(HOT - 1, False), (HOT, True), (HOT + 1, True)])
def test_a_badge_with_1000_live_views_is_hot(table: Table, live: int, *, hot: bool) -> None:
    many(table, live)
    assert HOT == 1_000
    assert make_view(table, NOON).hot is hot


@pytest.mark.parametrize(("until", "hot"), [(1, True), (0, False), (-1, False)])
def test_a_badge_stays_hot_until_its_hour_is_over(table: Table, until: int, *, hot: bool) -> None:
    put_summary(table, hot=int(NOON) + until)
    assert make_view(table, NOON).hot is hot


@pytest.mark.parametrize("after", [899.999, 900.0])
@pytest.mark.parametrize("more", [0, 1])
def test_a_fold_is_requested_if_more_than_a_page_of_views_is_older_than_its_grace(
    table: Table, after: float, more: int
) -> None:
    """All are of the window that ends 300 s after noon, and its grace 900 s after noon."""
    put_summary(table, count=1)
    many(table, PAGE - 1 + more)
    assert make_view(table, NOON + after).fold is (after == 900.0 and more == 1)


@pytest.mark.parametrize(("oldest", "fold"), [(300_000, True), (300_001, False)])
def test_the_oldest_view_of_the_page_tells_whether_a_fold_is_overdue(
    table: Table, oldest: int, *, fold: bool
) -> None:
    """A fold 900 s after noon counts the views up to 300,000 ms after noon."""
    put_summary(table, count=1)
    many(table, PAGE, AT_NOON + oldest - 1)
    assert make_view(table, NOON + 900).fold is fold


# ---- taking it


def take(table: Table | FaultyTable, one: View, queue: FakeQueue) -> None:
    badge_count.take([one], ViewMessages(queue), lambda: counting(table, NOON))


@pytest.mark.parametrize(
    "failure", [UnavailableError("throttled"), StorageRefusedError("no such queue")]
)
def test_a_view_that_the_queue_fails_is_stored_directly_with_its_marker(
    table: Table, failure: StorageError
) -> None:
    take(table, view(), FakeQueue(failure))
    assert shown(table) == 1
    assert table.get(keys.marker(BADGE, int(NOON) + 300)) is not None


def test_a_view_that_queue_and_table_fail_is_an_error_for_its_visitor_and_never_shown(
    table: Table,
) -> None:
    broken = FaultyTable(table, before_put=raising(UnavailableError("the table")))
    with pytest.raises(UnavailableError, match="the table"):
        take(broken, view(), FakeQueue(UnavailableError("the queue")))
    assert shown(table) == 0
