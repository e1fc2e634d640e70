"""The fold: each removed view into the count and the history once, whatever is delivered how."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count, pairwise, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.ports import (
    ConditionFailed,
    Item,
    Key,
    Put,
    Refused,
    Unavailable,
    Update,
    Write,
    number,
    text,
)
from chalicelib.views import keys
from chalicelib.views.folding import TRIES, Folded, fold
from chalicelib.views.removals import Removal
from local.table import SqliteTable
from tests.unit.fakes import NOON, FaultyTable, raising, removal, sqlite_table

HOUR = 3_600
DAY = 24 * HOUR
PATIENCE = 30.0
"""Seconds until a test gives up on a thread that never comes."""
LATER = "2026-03-02T00:00:00.000"
"""The label of a stream that came after the one of `removal`."""


@pytest.fixture
def table(tmp_path: Path) -> Iterator[SqliteTable]:
    with sqlite_table(tmp_path) as opened:
        yield opened


def run(*sequences: int) -> list[Removal]:
    return [removal(sequence) for sequence in sequences]


def counted(table: SqliteTable, badge_id: str = "octocat") -> int:
    return number(table.get(keys.user(badge_id)) or {}, "count")


def history(table: SqliteTable, badge_id: str = "octocat") -> list[Item]:
    """The days of a badge, oldest first, without their partition key and position."""
    days = table.query(f"USER#{badge_id}", first="DAY#", last="DAY#~", limit=1_000)
    hidden = ("PK", "folded")
    return [{name: value for name, value in day.items() if name not in hidden} for day in days]


def history_of(stream: Sequence[Removal]) -> list[Item]:
    """What `history` has to be once these are folded."""
    days: dict[str, Counter[str]] = {}
    for removed in stream:
        hours = days.setdefault(f"DAY#{removed.taken_at:%Y-%m-%d}", Counter())
        hours[f"h{removed.taken_at:%H}"] += 1
    return [{"SK": day, "views": days[day].total(), **days[day]} for day in sorted(days)]


def check_each_item(table: SqliteTable, stream: Sequence[Removal]) -> None:
    """Every item has exactly its removals up to its own position, wherever the others stand."""
    badge_id = stream[0].badge_id
    for item in table.query(f"USER#{badge_id}", last="USER", limit=1_000):
        come = [removed for removed in stream if removed.position <= text(item, "folded")]
        if item["SK"] == "USER":
            assert number(item, "count") == len(come)
        else:
            [day] = [day for day in history_of(come) if day["SK"] == item["SK"]]
            assert day in history(table, badge_id)


def check_complete(table: SqliteTable, stream: Sequence[Removal]) -> None:
    """The badge and its days have the whole stream, once."""
    badge_id = stream[0].badge_id
    assert counted(table, badge_id) == len(stream)
    assert history(table, badge_id) == history_of(stream)


def test_removed_views_become_the_count_the_position_and_the_history(table: SqliteTable) -> None:
    removed = [
        removal(1, NOON),
        removal(2, NOON + 59),
        removal(3, NOON + HOUR),
        removal(4, NOON + DAY),
    ]
    assert fold(removed, table, NOON + 2 * DAY) == Folded(folded=4)
    assert table.get(keys.user("octocat")) == {
        "PK": "USER#octocat",
        "SK": "USER",
        "count": 4,
        "folded": removal(4).position,
        "created": int(NOON) + 2 * DAY,
    }
    days = table.query("USER#octocat", first="DAY#", last="DAY#~", limit=9)
    for day in days:
        assert day.pop("PK") == "USER#octocat"
    assert days == [
        {
            "SK": "DAY#2026-03-14",
            "views": 3,
            "h12": 2,
            "h13": 1,
            "folded": removal(3).position,
        },
        {"SK": "DAY#2026-03-15", "views": 1, "h12": 1, "folded": removal(4).position},
    ]


def test_a_fold_adds_to_what_is_there_and_leaves_the_rest(table: SqliteTable) -> None:
    before: Item = {"PK": "USER#octocat", "SK": "USER", "count": 40, "floor": 43, "created": 7}
    table.write(Put(before))
    assert fold(run(1, 2), table, NOON) == Folded(folded=2)
    assert fold(run(3), table, NOON) == Folded(folded=1)
    assert table.get(keys.user("octocat")) == before | {
        "count": 40 + 2 + 1,
        "folded": removal(3).position,
    }
    assert history(table) == [{"SK": "DAY#2026-03-14", "views": 3, "h12": 3}]


def test_hours_and_days_are_in_utc_from_the_first_to_the_last_second(table: SqliteTable) -> None:
    midnight = NOON + 12 * HOUR
    removed = [removal(1, midnight - 1), removal(2, midnight)]
    fold(removed, table, NOON)
    assert history(table) == [
        {"SK": "DAY#2026-03-14", "views": 1, "h23": 1},
        {"SK": "DAY#2026-03-15", "views": 1, "h00": 1},
    ]


def test_a_batch_delivered_again_folds_nothing_twice(table: SqliteTable) -> None:
    assert fold(run(1, 2, 3), table, NOON) == Folded(folded=3)
    assert fold(run(1, 2, 3), table, NOON) == Folded(dropped=3)
    assert counted(table) == 3


def test_a_batch_cut_differently_folds_only_what_is_new(table: SqliteTable) -> None:
    assert fold(run(5, 7), table, NOON) == Folded(folded=2)
    assert fold(run(5, 7, 9), table, NOON) == Folded(folded=1, dropped=2)
    assert fold(run(7, 9), table, NOON) == Folded(dropped=2)
    assert fold(run(9, 11, 13), table, NOON) == Folded(folded=2, dropped=1)
    assert counted(table) == 5
    assert history(table) == [{"SK": "DAY#2026-03-14", "views": 5, "h12": 5}]


def test_a_record_twice_in_one_batch_counts_once(table: SqliteTable) -> None:
    assert fold(run(1, 2, 2, 1), table, NOON) == Folded(folded=2, dropped=2)
    assert counted(table) == 2


def test_a_batch_in_any_order_is_folded_in_the_order_of_the_stream(table: SqliteTable) -> None:
    """Were 100 taken for less than 99, the position would end at 99 and 100 count again."""
    assert fold(run(100, 9, 99, 10), table, NOON) == Folded(folded=4)
    item = table.get(keys.user("octocat"))
    assert item is not None
    assert item["folded"] == removal(100).position
    assert fold(run(9, 10), table, NOON) == Folded(dropped=2)
    assert fold(run(100, 101), table, NOON) == Folded(folded=1, dropped=1)


def test_a_sequence_number_that_grows_a_digit_is_new(table: SqliteTable) -> None:
    assert fold(run(9), table, NOON) == Folded(folded=1)
    assert fold(run(10), table, NOON) == Folded(folded=1)
    assert fold(run(9), table, NOON) == Folded(dropped=1)


def test_a_new_stream_goes_on_from_1_and_the_old_one_stays_folded(table: SqliteTable) -> None:
    fold(run(500), table, NOON)
    assert fold([removal(1, label=LATER)], table, NOON) == Folded(folded=1)
    assert fold(run(500), table, NOON) == Folded(dropped=1)
    assert counted(table) == 2


def test_badges_are_folded_each_for_itself(table: SqliteTable) -> None:
    fold([removal(9, badge_id="octocat")], table, NOON)
    assert fold([removal(5, badge_id="hubot")], table, NOON) == Folded(folded=1)
    assert (counted(table), counted(table, "hubot")) == (1, 1)


def test_no_removals_are_no_write(table: SqliteTable) -> None:
    watched = FaultyTable(table)
    assert fold([], watched, NOON) == Folded()
    assert watched.written == []


@pytest.mark.parametrize("other", [[1], [1, 2], [1, 2, 3]])
def test_another_fold_just_before_the_write_is_seen_and_not_repeated(
    table: SqliteTable, other: list[int]
) -> None:
    """Both are given records of one badge; the other one's write comes first."""
    come_between = once(lambda: fold(run(*other), table, NOON))
    raced = FaultyTable(table, before_write=lambda _: come_between())
    outcome = fold(run(1, 2, 3), raced, NOON)
    assert outcome == Folded(folded=3 - len(other), dropped=len(other))
    assert counted(table) == 3
    assert history(table) == [{"SK": "DAY#2026-03-14", "views": 3, "h12": 3}]


def test_another_fold_between_the_first_and_the_second_try_is_seen_too(table: SqliteTable) -> None:
    """[1] is folded before, [1 2] between the two tries: only 3 and 4 are left for the third.

    The day has [1 2] by then: its second try folds 3 and 4.
    """
    fold(run(1), table, NOON)
    between = iter([None, run(1, 2)])

    def step(_: object) -> None:
        other = next(between, None)
        if other is not None:
            assert fold(other, table, NOON) == Folded(folded=1, dropped=1)

    raced = FaultyTable(table, before_write=step)
    assert fold(run(1, 2, 3, 4), raced, NOON) == Folded(folded=2, dropped=2)
    assert len(raced.written) == 3 + 2
    assert counted(table) == 4
    assert history(table) == [{"SK": "DAY#2026-03-14", "views": 4, "h12": 4}]


def test_other_folds_before_every_try_leave_the_batch_to_be_delivered_again(
    table: SqliteTable,
) -> None:
    """They come before every try at the badge; its day is not tried."""
    batch = run(*range(1, 11))
    others = iter(range(1, 11))

    def come_between(writes: Sequence[Write]) -> None:
        if writes[0].key.sk == keys.USER:
            assert fold(run(next(others)), table, NOON) == Folded(folded=1)

    raced = FaultyTable(table, before_write=come_between)
    outcome = fold(batch, raced, NOON)
    assert outcome.failed == tuple(batch)
    assert (outcome.folded, outcome.dropped) == (0, 0)
    assert outcome.reason == repr(Unavailable(f"{TRIES} other folds came in between"))
    assert len(raced.written) == TRIES
    assert (counted(table), history(table)[0]["views"]) == (TRIES, TRIES)
    assert fold(batch, table, NOON) == Folded(folded=10 - TRIES, dropped=TRIES)
    assert (counted(table), history(table)[0]["views"]) == (10, 10)


def test_an_answer_that_is_lost_after_the_write_counts_nothing_twice(table: SqliteTable) -> None:
    lossy = FaultyTable(table, after_write=raising(Unavailable("no answer")))
    outcome = fold(run(1, 2), lossy, NOON)
    assert outcome.failed == tuple(run(1, 2))
    assert counted(table) == 2
    assert fold(run(1, 2, 3), table, NOON) == Folded(folded=1, dropped=2)
    assert counted(table) == 3


def test_a_write_sent_twice_because_its_answer_was_lost_counts_once(table: SqliteTable) -> None:
    """The table itself asks again; the second time the fold meets its own position."""
    lossy = FaultyTable(table, before_write=lambda writes: table.write(*writes))
    assert fold(run(1, 2), lossy, NOON) == Folded(dropped=2)
    assert counted(table) == 2
    assert history(table) == [{"SK": "DAY#2026-03-14", "views": 2, "h12": 2}]


def failing_at(sk: str, failure: BaseException) -> Callable[[Sequence[Write]], None]:
    """What raises at every write of one item of a badge."""

    def step(writes: Sequence[Write]) -> None:
        if writes[0].key.sk == sk:
            raise failure

    return step


FAILURES = [Unavailable("throttled"), Refused("no right"), RuntimeError("a bug")]


@pytest.mark.parametrize("failure", FAILURES)
def test_whatever_fails_a_badge_is_answered_and_never_raised(
    table: SqliteTable, failure: Exception
) -> None:
    faulty = FaultyTable(table, before_write=raising(failure, failure))
    assert fold(run(1, 2), faulty, NOON) == Folded(failed=tuple(run(1, 2)), reason=repr(failure))
    assert counted(table) == 0
    assert history(table) == []


@pytest.mark.parametrize("failure", FAILURES)
def test_a_badge_that_fails_lets_its_days_wait_with_it(
    table: SqliteTable, failure: Exception
) -> None:
    faulty = FaultyTable(table, before_write=failing_at("USER", failure))
    assert fold(run(1, 2), faulty, NOON) == Folded(failed=tuple(run(1, 2)), reason=repr(failure))
    assert counted(table) == 0
    assert history(table) == []
    assert fold(run(1, 2, 3), table, NOON) == Folded(folded=3)
    assert counted(table) == 3
    assert history(table) == [{"SK": "DAY#2026-03-14", "views": 3, "h12": 3}]


@pytest.mark.parametrize("failure", FAILURES)
def test_a_day_that_fails_is_told_though_the_count_is_right_and_catches_up_alone(
    table: SqliteTable, failure: Exception
) -> None:
    """Views of days 1, 2, 1, 3, 2, and 2 fails: those of day 2 alone come again, or more."""
    batch = [removal(place, NOON + day * DAY) for place, day in enumerate((1, 2, 1, 3, 2), 1)]
    day_2 = keys.day("octocat", batch[1].taken_at).sk
    faulty = FaultyTable(table, before_write=failing_at(day_2, failure))
    outcome = fold(batch, faulty, NOON)
    assert outcome == Folded(folded=5, failed=(batch[1], batch[4]), reason=repr(failure))
    assert counted(table) == 5
    assert [day["views"] for day in history(table)] == [2, 1]
    # The stream comes again from the first failed record on, with one more of day 1.
    again = [*batch[1:], removal(6, NOON + DAY)]
    assert fold(again, table, NOON) == Folded(folded=1, dropped=4)
    assert counted(table) == 5 + 1
    assert [day["views"] for day in history(table)] == [2 + 1, 2, 1]


def test_the_reasons_of_all_items_that_failed_are_told(table: SqliteTable) -> None:
    first, second = Unavailable("throttled"), Refused("no right")

    def at_days(writes: Sequence[Write]) -> None:
        day = writes[0].key.sk
        if day != keys.USER:
            raise {"DAY#2026-03-14": first, "DAY#2026-03-15": second}[day]

    faulty = FaultyTable(table, before_write=at_days)
    outcome = fold([removal(1, NOON), removal(2, NOON + DAY)], faulty, NOON)
    assert outcome.reason == f"{first!r}; {second!r}"


def test_what_fails_is_told_in_the_order_of_the_stream_and_once(table: SqliteTable) -> None:
    """9 and 10 fail at both items; the second 10 is dropped: 3 given = 0 folded + 1 + 2 failed."""
    failure = Unavailable("throttled")
    faulty = FaultyTable(table, before_write=raising(failure, failure))
    outcome = fold(run(10, 9, 10), faulty, NOON)
    assert outcome == Folded(dropped=1, failed=tuple(run(9, 10)), reason=repr(failure))


def test_a_badge_deleted_between_two_tries_is_folded_when_delivered_again(
    table: SqliteTable,
) -> None:
    failed = ConditionFailed({0: None})
    gone = FaultyTable(table, before_write=raising(*[failed] * TRIES))
    assert fold(run(1, 2), gone, NOON).failed == tuple(run(1, 2))
    assert fold(run(1, 2), table, NOON) == Folded(folded=2)
    assert history(table) == [{"SK": "DAY#2026-03-14", "views": 2, "h12": 2}]


def days(count: int) -> list[Removal]:
    return [removal(day + 1, NOON + day * DAY) for day in range(count)]


@pytest.mark.parametrize("count", [1, 2, 99, 100, 150])
def test_each_item_is_one_update_of_its_own_the_badge_first_then_its_days(
    table: SqliteTable, count: int
) -> None:
    """A transaction would cost twice the write units, and conflict with other writes."""
    watched = FaultyTable(table)
    assert fold(days(count)[::-1], watched, NOON) == Folded(folded=count)
    items = [keys.USER, *(keys.day("octocat", day.taken_at).sk for day in days(count))]
    assert [write.key.sk for (write,) in watched.written] == items
    assert all(isinstance(write, Update) and write.condition for (write,) in watched.written)
    assert counted(table) == count
    assert [day["views"] for day in history(table)] == [1] * count
    assert fold(days(count), table, NOON) == Folded(dropped=count)


def test_a_later_batch_is_one_update_an_item_too(table: SqliteTable) -> None:
    """No try is lost on finding out where the items stand."""
    fold(run(1, 2), table, NOON)
    watched = FaultyTable(table)
    assert fold(run(3, 4), watched, NOON) == Folded(folded=2)
    assert len(watched.written) == 1 + 1


def test_a_badge_that_began_anew_takes_one_update_an_item_too(table: SqliteTable) -> None:
    reset = {"reset": int(NOON * 1000)}
    table.write(Put({"PK": "USER#octocat", "SK": "USER", **reset}))
    table.write(Put({"PK": "USER#octocat", "SK": "DAY#2026-03-14", **reset}))
    watched = FaultyTable(table)
    assert fold(run(1, 2), watched, NOON) == Folded(folded=2)
    assert len(watched.written) == 1 + 1


def test_many_views_of_few_days_are_one_update_an_item(table: SqliteTable) -> None:
    removed = [removal(place, NOON + place % 2 * DAY) for place in range(1_000)]
    watched = FaultyTable(table)
    assert fold(removed, watched, NOON) == Folded(folded=1_000)
    assert len(watched.written) == 1 + 2
    assert [day["views"] for day in history(table)] == [500, 500]


@pytest.mark.parametrize(("at_badge", "at_day"), [(4, 2), (5, 0), (3, 3), (5, 5), (0, 0)])
def test_badge_and_day_each_fold_on_from_where_they_stand(
    table: SqliteTable, at_badge: int, at_day: int
) -> None:
    """So many of 5 views of one day are in the one and in the other; the day is never ahead."""
    stream = run(1, 2, 3, 4, 5)
    day_fails = failing_at("DAY#2026-03-14", Unavailable("throttled"))
    fold(stream[:at_day], table, NOON)
    fold(stream[:at_badge], FaultyTable(table, before_write=day_fails), NOON)
    days = sum(number(day, "views") for day in history(table))
    assert (counted(table), days) == (at_badge, at_day)
    assert fold(stream, table, NOON) == Folded(folded=5 - at_badge, dropped=at_badge)
    check_complete(table, stream)


class Crash(BaseException):
    """The process is gone; no code of its own runs any more."""


def at_write(place: int, failure: BaseException) -> Callable[[object], None]:
    """What raises at one write, counted from 0, and at no other."""
    places = count()

    def step(_: object) -> None:
        if next(places) == place:
            raise failure

    return step


def cuts(length: int) -> Iterator[list[slice]]:
    """Every way to cut a stream into batches."""
    for ends in product([False, True], repeat=length - 1):
        places = [0, *(place for place, end in enumerate(ends, 1) if end), length]
        yield [slice(start, end) for start, end in pairwise(places)]


def over_three_days(badge_id: str) -> list[Removal]:
    """Five removals, those of the days not in one piece."""
    return [removal(n, NOON + day * DAY, badge_id) for n, day in enumerate((0, 1, 0, 2, 1))]


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_a_fold_that_dies_between_two_items_is_caught_up_by_any_cut_of_its_batch(
    table: SqliteTable, writes: int
) -> None:
    """4 removals are 1 write for the badge and 3 for its days: the fold dies before one of them."""
    for case, cut in enumerate(cuts(5)):
        stream = over_three_days(f"badge-{case}")
        dying = FaultyTable(table, before_write=at_write(writes, Crash()))
        with pytest.raises(Crash):
            fold(stream[:4], dying, NOON)
        assert counted(table, f"badge-{case}") == (4 if writes else 0)
        for part in cut:
            assert fold(stream[part], table, NOON).failed == ()
            check_each_item(table, stream)
        check_complete(table, stream)


@dataclass
class Turns:
    """A fold on a thread of its own, which writes only when it is told to."""

    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    told: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    done: bool = False

    def start(self, batch: Sequence[Removal], table: SqliteTable) -> Folded:
        try:
            return fold(batch, FaultyTable(table, before_write=self._wait), NOON)
        finally:
            self.done = True
            self.arrived.release()

    def _wait(self, _: object) -> None:
        self.arrived.release()
        assert self.told.acquire(timeout=PATIENCE)

    def step(self) -> None:
        """Let it do one write, and come to the next one or to its end."""
        if not self.done:
            self.told.release()
            assert self.arrived.acquire(timeout=PATIENCE)


def fold_at_once(
    batches: Sequence[Sequence[Removal]], order: Sequence[int], table: SqliteTable
) -> list[Folded]:
    """Fold batches at once, their writes in an order, what is left one after the other."""
    turns = [Turns() for _ in batches]
    with ThreadPoolExecutor(len(batches)) as pool:
        folds = [
            pool.submit(turn.start, batch, table)
            for turn, batch in zip(turns, batches, strict=True)
        ]
        for turn in turns:
            assert turn.arrived.acquire(timeout=PATIENCE)
        for place in (*order, *[0] * 9, *[1] * 9):
            turns[place].step()
        return [running.result() for running in folds]


@pytest.mark.parametrize(
    ("first", "second"),
    [((0, 4), (0, 4)), ((0, 3), (0, 5)), ((0, 3), (2, 5)), ((1, 5), (0, 4)), ((0, 2), (1, 3))],
)
def test_two_folds_at_once_count_each_view_once_in_any_order_of_their_writes(
    table: SqliteTable, first: tuple[int, int], second: tuple[int, int]
) -> None:
    """Neither starts behind what is acknowledged, which is folded before. 2 ** 6 orders."""
    for case, order in enumerate(product([0, 1], repeat=6)):
        stream = over_three_days(f"badge-{case}")
        acknowledged = max(first[0], second[0])
        fold(stream[:acknowledged], table, NOON)
        batches = [stream[slice(*first)], stream[slice(*second)]]
        outcomes = fold_at_once(batches, order, table)
        assert [outcome.failed for outcome in outcomes] == [(), ()]
        last = max(first[1], second[1])
        assert sum(outcome.folded for outcome in outcomes) == last - acknowledged
        check_complete(table, stream[:last])


def once(act: Callable[[], object]) -> Callable[[], None]:
    """What acts at the first call, and at no other."""
    left = iter([act])

    def step() -> None:
        for first in left:
            first()

    return step


FATES = ["arrives", "is lost before", "is lost after", "dies before", "dies after"]
DELIVERIES = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=12),
        st.integers(min_value=1, max_value=12),
        st.sampled_from(FATES),
        st.integers(min_value=0, max_value=3),
    ),
    max_size=10,
)


@settings(max_examples=100)
@given(
    st.lists(st.integers(min_value=1, max_value=10**20), min_size=1, max_size=12, unique=True),
    DELIVERIES,
)
def test_any_cut_of_the_stream_delivered_any_number_of_times_counts_each_view_once(
    sequences: list[int], deliveries: Sequence[tuple[int, int, str, int]]
) -> None:
    """A delivery starts at or before the first record that is not yet acknowledged."""
    stream = [
        removal(sequence, NOON + place % 5 * 13 * HOUR)
        for place, sequence in enumerate(sorted(sequences))
    ]
    acknowledged = delivered = 0
    with sqlite_table() as table:
        for back, size, fate, write in [*deliveries, (12, 24, "arrives", 0)]:
            start = max(0, acknowledged - back)
            batch = stream[start : start + size]
            outcome = fold_under(fate, write, batch, table)
            delivered = max(delivered, start + len(batch))
            if outcome is not None:
                assert outcome.folded + outcome.dropped <= len(batch)
                first = outcome.failed[0] if outcome.failed else None
                done = batch.index(first) if first else len(batch)
                acknowledged = max(acknowledged, start + done)
            assert acknowledged <= counted(table) <= delivered
            check_each_item(table, stream)
        check_complete(table, stream)


def fold_under(
    fate: str, write: int, batch: Sequence[Removal], table: SqliteTable
) -> Folded | None:
    """Fold a batch, one of whose writes meets a fate; None where the process is then gone."""
    failure = Crash() if fate.startswith("dies") else Unavailable(fate)
    step = raising() if fate == "arrives" else at_write(write, failure)
    nothing = raising()
    after = fate.endswith("after")
    faulty = FaultyTable(
        table, before_write=nothing if after else step, after_write=step if after else nothing
    )
    try:
        return fold(batch, faulty, NOON)
    except Crash:
        return None


def began_anew(table: SqliteTable, key: Key, at: float) -> None:
    """What a reset leaves of an item."""
    item: Item = {"PK": key.pk, "SK": key.sk, "reset": int(at * 1000)}
    table.write(Put(item))


def test_views_taken_before_a_reset_are_in_no_count_and_in_no_day(table: SqliteTable) -> None:
    """Taken at 12:00:00, :01, :02 and :03; reset at :02: 2 of 4 count."""
    began_anew(table, keys.user("octocat"), NOON + 2)
    stream = [removal(place, NOON + place) for place in range(4)]
    assert fold(stream, table, NOON) == Folded(folded=2, dropped=2)
    assert counted(table) == 2
    assert history(table) == [{"SK": "DAY#2026-03-14", "views": 2, "h12": 2}]
    assert fold(stream, table, NOON) == Folded(dropped=4)
    assert counted(table) == 2
    assert history(table) == [{"SK": "DAY#2026-03-14", "views": 2, "h12": 2}]


def test_a_batch_that_is_all_from_before_a_reset_changes_nothing(table: SqliteTable) -> None:
    began_anew(table, keys.user("octocat"), NOON + 60)
    before = table.get(keys.user("octocat"))
    assert fold(run(1, 2), table, NOON) == Folded(dropped=2)
    assert table.get(keys.user("octocat")) == before
    assert history(table) == []


def test_a_reset_between_badge_and_day_takes_the_day_too(table: SqliteTable) -> None:
    day = keys.day("octocat", run(1)[0].taken_at)

    def begin_anew(writes: Sequence[Write]) -> None:
        if writes[0].key == day:
            began_anew(table, day, NOON + 60)

    fold(run(1, 2), FaultyTable(table, before_write=begin_anew), NOON)
    assert history(table) == [{"SK": day.sk, "reset": int((NOON + 60) * 1000)}]


def test_a_reset_between_two_tries_is_seen_by_the_second(table: SqliteTable) -> None:
    resets = iter([NOON + 1])

    def begin_anew(writes: Sequence[Write]) -> None:
        if writes[0].key.sk == keys.USER:
            for at in resets:
                began_anew(table, keys.user("octocat"), at)

    stream = [removal(1, NOON), removal(2, NOON + 1)]
    raced = FaultyTable(table, before_write=begin_anew)
    assert fold(stream, raced, NOON) == Folded(folded=1, dropped=1)
    assert counted(table) == 1
