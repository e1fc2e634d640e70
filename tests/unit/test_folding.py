"""The fold: each removed view into the count and the history once, whatever is delivered how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.ports import ConditionFailed, Item, Put, Refused, Unavailable, number
from chalicelib.views import keys
from chalicelib.views.folding import TRIES, Folded, fold
from chalicelib.views.removals import Removal
from local.table import SqliteTable
from tests.unit.fakes import NOON, FaultyTable, raising, removal, sqlite_table

HOUR = 3_600
DAY = 24 * HOUR
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
    """The days of a badge, oldest first, without their partition key."""
    days = table.query(f"USER#{badge_id}", first="DAY#", last="DAY#~", limit=1_000)
    return [{name: value for name, value in day.items() if name != "PK"} for day in days]


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
    assert history(table) == [
        {"SK": "DAY#2026-03-14", "views": 3, "h12": 2, "h13": 1},
        {"SK": "DAY#2026-03-15", "views": 1, "h12": 1},
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
    """[1] is folded before, [1 2] between the two tries: only 3 and 4 are left for the third."""
    fold(run(1), table, NOON)
    between = iter([None, run(1, 2), None])

    def step(_: object) -> None:
        other = next(between)
        if other is not None:
            assert fold(other, table, NOON) == Folded(folded=1, dropped=1)

    raced = FaultyTable(table, before_write=step)
    assert fold(run(1, 2, 3, 4), raced, NOON) == Folded(folded=2, dropped=2)
    assert len(raced.written) == 3
    assert counted(table) == 4


def test_other_folds_before_every_try_leave_the_batch_to_be_delivered_again(
    table: SqliteTable,
) -> None:
    batch = run(*range(1, 11))
    others = iter(range(1, 11))

    def come_between(_: object) -> None:
        assert fold(run(next(others)), table, NOON) == Folded(folded=1)

    raced = FaultyTable(table, before_write=come_between)
    outcome = fold(batch, raced, NOON)
    assert outcome.failed == tuple(batch)
    assert (outcome.folded, outcome.dropped) == (0, 0)
    assert "Unavailable" in outcome.reason
    assert len(raced.written) == TRIES
    assert fold(batch, table, NOON) == Folded(folded=10 - TRIES, dropped=TRIES)


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


@pytest.mark.parametrize(
    "failure", [Unavailable("throttled"), Refused("no right"), RuntimeError("a bug")]
)
def test_whatever_fails_a_badge_is_answered_and_never_raised(
    table: SqliteTable, failure: Exception
) -> None:
    faulty = FaultyTable(table, before_write=raising(failure))
    assert fold(run(1, 2), faulty, NOON) == Folded(failed=tuple(run(1, 2)), reason=repr(failure))
    assert counted(table) == 0
    assert history(table) == []


def test_what_fails_is_told_in_the_order_of_the_stream_and_once(table: SqliteTable) -> None:
    faulty = FaultyTable(table, before_write=raising(Unavailable("throttled")))
    outcome = fold(run(10, 9, 10), faulty, NOON)
    assert outcome.failed == tuple(run(9, 10))
    assert outcome.dropped == 1


def test_a_badge_deleted_between_two_tries_is_folded_when_delivered_again(
    table: SqliteTable,
) -> None:
    failed = ConditionFailed({0: None})
    gone = FaultyTable(table, before_write=raising(*[failed] * TRIES))
    assert fold(run(1, 2), gone, NOON).failed == tuple(run(1, 2))
    assert fold(run(1, 2), table, NOON) == Folded(folded=2)


def days(count: int) -> list[Removal]:
    return [removal(day + 1, NOON + day * DAY) for day in range(count)]


@pytest.mark.parametrize(
    ("count", "writes"),
    [
        (99, [1 + 99]),
        (100, [1 + 99, 1 + 1]),
        (150, [1 + 99, 1 + 51]),
        (198, [1 + 99, 1 + 99]),
        (199, [1 + 99, 1 + 99, 1 + 1]),
    ],
)
def test_a_batch_over_many_days_is_cut_into_transactions_of_at_most_100_writes(
    table: SqliteTable, count: int, writes: list[int]
) -> None:
    watched = FaultyTable(table)
    assert fold(days(count), watched, NOON) == Folded(folded=count)
    assert [len(transaction) for transaction in watched.written] == writes
    assert counted(table) == count
    assert [day["views"] for day in history(table)] == [1] * count
    assert fold(days(count), table, NOON) == Folded(dropped=count)


def test_many_views_of_few_days_are_one_transaction(table: SqliteTable) -> None:
    removed = [removal(place, NOON + place % 2 * DAY) for place in range(1_000)]
    watched = FaultyTable(table)
    assert fold(removed, watched, NOON) == Folded(folded=1_000)
    assert [len(transaction) for transaction in watched.written] == [1 + 2]
    assert [day["views"] for day in history(table)] == [500, 500]


def test_where_the_second_transaction_fails_only_its_records_are_left(table: SqliteTable) -> None:
    batch = days(150)
    faulty = FaultyTable(table, before_write=raising(None, Unavailable("throttled")))
    outcome = fold(batch, faulty, NOON)
    assert (outcome.folded, outcome.dropped) == (99, 0)
    assert outcome.failed == tuple(batch[99:])
    assert counted(table) == 99
    # The stream comes again from the first failed record on, or from anywhere before it.
    assert fold(batch[50:], table, NOON) == Folded(folded=51, dropped=49)
    assert counted(table) == 150
    assert sum(number(day, "views") for day in history(table)) == 150


def once(act: Callable[[], object]) -> Callable[[], None]:
    """What acts at the first call, and at no other."""
    left = iter([act])

    def step() -> None:
        for first in left:
            first()

    return step


DELIVERIES = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=12),
        st.integers(min_value=1, max_value=12),
        st.sampled_from(["arrives", "is lost before", "is lost after"]),
    ),
    max_size=10,
)


@settings(max_examples=60)
@given(
    st.lists(st.integers(min_value=1, max_value=10**20), min_size=1, max_size=12, unique=True),
    DELIVERIES,
)
def test_any_cut_of_the_stream_delivered_any_number_of_times_counts_each_view_once(
    sequences: list[int], deliveries: Sequence[tuple[int, int, str]]
) -> None:
    """A delivery starts at or before the first record that is not yet acknowledged."""
    stream = [
        removal(sequence, NOON + place * 5 * HOUR)
        for place, sequence in enumerate(sorted(sequences))
    ]
    acknowledged = delivered = 0
    with sqlite_table() as table:
        for back, size, fate in [*deliveries, (12, 24, "arrives")]:
            start = max(0, acknowledged - back)
            batch = stream[start : start + size]
            lost = raising(Unavailable(fate))
            faulty = FaultyTable(
                table,
                before_write=lost if fate == "is lost before" else raising(),
                after_write=lost if fate == "is lost after" else raising(),
            )
            outcome = fold(batch, faulty, NOON)
            assert outcome.folded + outcome.dropped + len(outcome.failed) == len(batch)
            delivered = max(delivered, start + len(batch))
            acknowledged = max(acknowledged, start + len(batch) - len(outcome.failed))
            assert acknowledged <= counted(table) <= delivered
        assert counted(table) == len(stream)
        assert sum(number(day, "views") for day in history(table)) == len(stream)
