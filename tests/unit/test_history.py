"""The history of a badge: every view once, in the day and the hour in which it was taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from chalicelib.dynamodb import DynamoTable
from chalicelib.ports import Delete, Item, Key, Put, Table, Update
from chalicelib.resources import aws_client
from chalicelib.views import counting, folding, history, keys
from chalicelib.views.history import By, History
from tests.aws import create_table
from tests.unit.fakes import FaultyTable, removal, sqlite_table, ulid_of

NOW = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)
TODAY = datetime(2026, 11, 21, tzinfo=UTC)
PARTITION = "USER#octocat"


@pytest.fixture(params=["sqlite", "moto"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Table]:
    if request.param == "sqlite":
        with sqlite_table(tmp_path) as opened:
            yield opened
        return
    with mock_aws():
        client = aws_client("dynamodb")
        create_table(client, "history")
        yield DynamoTable(client, "history")
        client.close()


def read(
    table: Table,
    days: int = 3,
    by: By = By.DAY,
    now: datetime = NOW,
    badge_id: str = "octocat",
) -> History:
    return history.read(table, badge_id, days, now.timestamp(), by)


def views(read: History) -> list[int]:
    return [bucket.views for bucket in read.buckets]


def labels(read: History) -> list[str]:
    return [read.by.label(bucket.start) for bucket in read.buckets]


def day(label: str, badge_id: str = "octocat", **attributes: int) -> Put:
    return Put({"PK": f"USER#{badge_id}", "SK": f"DAY#{label}", **attributes})


def live(*taken: datetime, badge_id: str = "octocat") -> list[Item]:
    return [
        {"PK": f"USER#{badge_id}", "SK": f"VIEW#{ulid_of(at.timestamp(), f'{n:016}')}", "ttl": 1}
        for n, at in enumerate(taken)
    ]


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def write(table: Table, *writes: Put | Update) -> None:
    for each in writes:
        table.write(each)


def test_a_badge_nobody_knows_has_a_history_of_zeros(table: Table) -> None:
    found = read(table)
    assert labels(found) == ["2026-11-19", "2026-11-20", "2026-11-21"]
    assert views(found) == [0, 0, 0]
    assert (found.total, found.since) == (0, None)


def test_days_come_oldest_first_and_those_without_views_are_zero(table: Table) -> None:
    write(table, day("2026-11-21", views=3, h08=3), day("2026-11-18", views=2, h00=2))
    found = read(table, days=5)
    assert labels(found)[::4] == ["2026-11-17", "2026-11-21"]
    assert views(found) == [0, 2, 0, 0, 3]
    assert (found.total, found.since) == (5, date(2026, 11, 18))


def test_live_views_are_added_to_what_is_folded_of_their_day(table: Table) -> None:
    write(table, day("2026-11-21", views=3, h08=3))
    table.put_all(live(NOW, NOW, NOW - timedelta(days=1)))
    assert views(read(table)) == [0, 1, 3 + 2]


def test_a_day_ends_at_midnight_utc(table: Table) -> None:
    last = TODAY - timedelta(milliseconds=1)
    table.put_all(live(last, last, TODAY))
    assert views(read(table)) == [0, 2, 1]
    assert views(read(table, now=last)) == [0, 0, 2]
    assert views(read(table, now=TODAY)) == [0, 2, 1]


@pytest.mark.parametrize(
    ("now", "days"),
    [
        (datetime(2028, 3, 1, tzinfo=UTC), ["2028-02-28", "2028-02-29", "2028-03-01"]),
        (datetime(2027, 3, 1, tzinfo=UTC), ["2027-02-27", "2027-02-28", "2027-03-01"]),
        (datetime(2027, 1, 1, tzinfo=UTC), ["2026-12-30", "2026-12-31", "2027-01-01"]),
    ],
)
def test_leap_days_and_new_years_are_days_like_any_other(
    table: Table, now: datetime, days: list[str]
) -> None:
    write(table, *(day(label, views=place) for place, label in enumerate(days, start=1)))
    found = read(table, now=now)
    assert labels(found) == days
    assert views(found) == [1, 2, 3]


def test_400_days_reach_over_a_leap_year(table: Table) -> None:
    """2028-03-01 and 399 days before it: 2027-01-27, as 2028-02-29 is one of them."""
    write(table, day("2027-01-26", views=1), day("2027-01-27", views=2), day("2028-03-01", views=4))
    found = read(table, days=400, now=datetime(2028, 3, 1, tzinfo=UTC))
    assert (len(found.buckets), labels(found)[0]) == (400, "2027-01-27")
    assert (found.total, found.since) == (2 + 4, date(2027, 1, 26))


def test_400_days_with_views_are_all_read(table: Table) -> None:
    ago = [TODAY - timedelta(days=days) for days in range(402)]
    table.put_all([day(By.DAY.label(start), views=1, h00=1).item for start in ago])
    assert read(table, days=By.DAY.most_days).total == 400


def test_hours_end_with_the_present_one_and_a_day_has_24(table: Table) -> None:
    write(
        table,
        day("2026-11-20", views=7, h08=3, h09=4),
        day("2026-11-21", views=3, h00=1, h08=2),
    )
    table.put_all(live(NOW, NOW - timedelta(hours=1)))
    found = read(table, days=1, by=By.HOUR)
    # From 09:00 yesterday to 08:00 today: yesterday's 3 of 08:00 are too old.
    assert labels(found)[0] == "2026-11-20T09:00Z"
    assert labels(found)[15:] == [f"2026-11-21T{hour:02}:00Z" for hour in range(9)]
    assert views(found) == [4] + [0] * 14 + [1] + [0] * 6 + [1, 2 + 1]


def test_an_hour_ends_when_the_next_begins(table: Table) -> None:
    eight = TODAY.replace(hour=8)
    table.put_all(live(eight - timedelta(milliseconds=1), eight, eight))
    assert views(read(table, days=1, by=By.HOUR))[-2:] == [1, 2]


def test_a_history_of_31_days_by_hour_has_744_buckets(table: Table) -> None:
    write(table, day("2026-10-21", views=3, h08=1, h09=2))
    found = read(table, days=By.HOUR.most_days, by=By.HOUR)
    assert len(found.buckets) == 744
    assert (labels(found)[0], views(found)[0]) == ("2026-10-21T09:00Z", 2)


def test_since_is_the_first_day_of_all_also_before_the_days_asked_for(table: Table) -> None:
    write(table, day("2024-02-29", views=1), day("2026-11-20", views=1))
    assert read(table, days=1).since == date(2024, 2, 29)


def test_a_live_view_may_be_the_first_of_all(table: Table) -> None:
    table.put_all(live(TODAY - timedelta(days=2), NOW))
    assert read(table, days=1).since == date(2026, 11, 19)
    write(table, day("2026-11-20", views=1))
    assert read(table, days=1).since == date(2026, 11, 19)


def test_what_was_taken_before_a_reset_does_not_count(table: Table) -> None:
    """The reset empties the item of its day, which then has what came after it."""
    reset = TODAY - timedelta(hours=10)
    write(
        table,
        Put({"PK": PARTITION, "SK": "USER", "count": 2, "reset": milliseconds(reset)}),
        day("2026-11-19", views=100, h01=100),
        day("2026-11-20", views=2, h15=2),
    )
    table.put_all(live(reset - timedelta(milliseconds=1), reset, NOW))
    found = read(table)
    assert views(found) == [0, 2 + 1, 1]
    assert found.since == date(2026, 11, 20)
    assert read(table, days=3, by=By.HOUR).total == found.total
    count = counting.read(table, "octocat")
    assert found.total == count.folded + count.live


def test_a_reset_in_the_midst_of_today_leaves_what_came_after_it(table: Table) -> None:
    reset = TODAY.replace(hour=8)
    write(
        table,
        Put({"PK": PARTITION, "SK": "USER", "reset": milliseconds(reset)}),
        day("2026-11-20", views=9),
        day("2026-11-21", views=0),
    )
    assert read(table).total == 0
    assert read(table).since is None
    table.put_all(live(NOW))
    assert (views(read(table)), read(table).since) == ([0, 0, 1], TODAY.date())


def test_history_begins_at_the_first_day_with_views_behind_an_empty_one(table: Table) -> None:
    reset = TODAY - timedelta(days=5)
    user: Item = {"PK": PARTITION, "SK": "USER", "reset": milliseconds(reset)}
    write(table, Put(user), day("2026-11-16", views=0), day("2026-11-18", views=1))
    assert read(table).since == date(2026, 11, 18)


def test_a_clock_set_back_behind_the_reset_shows_the_day_of_the_reset(table: Table) -> None:
    """Views are then taken at the time of the reset, and no view is hidden in the future."""
    reset = NOW + timedelta(days=1)
    write(table, Put({"PK": PARTITION, "SK": "USER", "reset": milliseconds(reset)}))
    table.put_all(live(reset))
    found = read(table)
    assert (labels(found)[-1], views(found)) == ("2026-11-22", [0, 0, 1])
    assert labels(read(table, days=1, by=By.HOUR))[-1] == "2026-11-22T08:00Z"


def test_another_name_of_a_badge_has_the_history_of_the_badge(table: Table) -> None:
    reset = TODAY - timedelta(days=1)
    write(
        table,
        Put({"PK": "USER#new", "SK": "USER", "alias": "octocat"}),
        day("2026-11-20", "new", views=50),
        Put({"PK": PARTITION, "SK": "USER", "reset": milliseconds(reset)}),
        day("2026-11-19", views=8),
        day("2026-11-20", views=4),
    )
    table.put_all(live(NOW))
    assert views(read(table, badge_id="new")) == [0, 4, 1]


def test_a_name_leads_to_a_badge_by_one_step_at_most(table: Table) -> None:
    write(
        table,
        Put({"PK": "USER#one", "SK": "USER", "alias": "two"}),
        Put({"PK": "USER#two", "SK": "USER", "alias": "one"}),
        day("2026-11-21", "two", views=2),
    )
    assert read(table, badge_id="one").total == 2


def test_only_views_and_days_of_the_badge_itself_count(table: Table) -> None:
    write(
        table,
        Put({"PK": PARTITION, "SK": "OWNER", "views": 9, "created": 9}),
        Put({"PK": PARTITION, "SK": "USER", "count": 9, "floor": 9, "base": 9}),
        day("2026-11-21", "octocat2", views=9),
        day("2026-11-22", views=9, h00=9),
    )
    table.put_all(live(NOW, badge_id="octo"))
    assert read(table).total == read(table, by=By.HOUR).total == 0


def test_views_of_the_next_hour_come_when_it_begins(table: Table) -> None:
    """The clock of another machine may be a little ahead."""
    table.put_all(live(NOW + timedelta(hours=1)))
    assert read(table, by=By.HOUR).total == 0
    assert read(table, by=By.HOUR, now=NOW + timedelta(hours=1)).total == 1


@pytest.mark.parametrize(("put", "seen"), [(7_999, 7_999), (8_000, 8_000), (8_100, 8_000)])
def test_8000_live_views_are_read_and_no_more(tmp_path: Path, put: int, seen: int) -> None:
    with sqlite_table(tmp_path) as table:
        table.put_all(live(*([NOW] * put)))
        assert read(table).total == seen


@dataclass
class Between(FaultyTable):
    """A table in which something happens once, before the n-th of its answers."""

    at: int = 0
    happens: Callable[[], None] = lambda: None

    def get(self, key: Key) -> Item | None:
        self._step()
        return super().get(key)

    def query(self, partition: str, **how: Any) -> list[Item]:
        self._step()
        return super().query(partition, **how)

    def _step(self) -> None:
        self.at -= 1
        if self.at == 0:
            self.happens()


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_fold_between_two_reads_never_adds_to_the_history(tmp_path: Path, at: int) -> None:
    """Of 3 live views one is folded before one of the 4 reads: badge, first day, days, views."""
    with sqlite_table(tmp_path) as table:
        items = live(NOW, NOW, NOW)
        table.put_all(items)

        def fold_one() -> None:
            table.write(Delete(Key(PARTITION, str(items[0]["SK"]))))
            folding.fold([removal(1, NOW.timestamp())], table, NOW.timestamp())

        # Behind the read of its day it is in neither the day nor the live views.
        assert read(Between(table, at=at, happens=fold_one)).total == (2 if at == 4 else 3)
        assert table.get(keys.day("octocat", NOW)) is not None
        assert read(table).total == 3


seconds = st.integers(0, 400 * 86_400)
"""Before the end of the present day, so that 400 days hold them all."""
taken_views = st.lists(st.tuples(seconds, st.booleans()), max_size=40)


def fill(table: Table, taken: Sequence[tuple[datetime, bool]]) -> None:
    """Views as they were taken, each folded or live."""
    folded = [at for at, is_folded in taken if is_folded]
    removals = [removal(n, at.timestamp()) for n, at in enumerate(folded, start=1)]
    folding.fold(removals, table, NOW.timestamp())
    table.put_all(live(*(at for at, is_folded in taken if not is_folded)))


def moments(taken: Sequence[tuple[int, bool]]) -> list[tuple[datetime, bool]]:
    last = datetime(2026, 11, 21, 23, 59, 59, tzinfo=UTC)
    earliest = last - timedelta(days=400) + timedelta(seconds=1)
    return [(max(earliest, last - timedelta(seconds=ago)), folded) for ago, folded in taken]


@given(taken_views)
def test_a_history_of_400_days_adds_up_to_the_count(taken: list[tuple[int, bool]]) -> None:
    """Each view is in the day it was taken, once, whether folded or live."""
    views_taken = moments(taken)
    with sqlite_table() as table:
        fill(table, views_taken)
        found = read(table, days=400)
        count = counting.read(table, "octocat")
    days = Counter(f"{at:%Y-%m-%d}" for at, _ in views_taken)
    assert found.total == count.folded + count.live == len(taken)
    assert len(set(labels(found))) == 400
    assert views(found) == [days[label] for label in labels(found)]
    assert found.since == min((at.date() for at, _ in views_taken), default=None)


@given(taken_views, st.integers(1, 31), st.integers(0, 23))
def test_the_hours_of_a_day_add_up_to_the_day(
    taken: list[tuple[int, bool]], days: int, hour: int
) -> None:
    """The hours begin the day before the first day, and today they end with the present one."""
    recent = [(ago % (32 * 86_400), folded) for ago, folded in taken]
    now = NOW.replace(hour=hour)
    with sqlite_table() as table:
        fill(table, moments(recent))
        by_hour, by_day = read(table, days, By.HOUR, now), read(table, days, By.DAY, now)
    summed: Counter[str] = Counter()
    for bucket in by_hour.buckets:
        summed[By.DAY.label(bucket.start)] += bucket.views
    past = list(zip(labels(by_day), views(by_day), strict=True))[:-1]
    assert [(label, summed[label]) for label, _ in past] == past
    assert len(by_hour.buckets) == len(set(labels(by_hour))) == days * 24
    present = [at for at, _ in moments(recent) if at.date() == now.date() and at.hour <= hour]
    assert summed["2026-11-21"] == len(present)


def test_a_history_by_day_as_json(table: Table) -> None:
    write(table, day("2026-11-20", views=2))
    assert history.document("octocat", read(table, days=2)) == {
        "id": "octocat",
        "by": "day",
        "days": 2,
        "since": "2026-11-20",
        "total": 2,
        "views": [{"day": "2026-11-20", "views": 2}, {"day": "2026-11-21", "views": 0}],
    }


def test_a_history_by_hour_as_json(table: Table) -> None:
    table.put_all(live(NOW))
    document = history.document("octocat", read(table, days=1, by=By.HOUR))
    assert {name: document[name] for name in ("id", "by", "days", "since", "total")} == {
        "id": "octocat",
        "by": "hour",
        "days": 1,
        "since": "2026-11-21",
        "total": 1,
    }
    assert document["views"][-2:] == [
        {"hour": "2026-11-21T07:00Z", "views": 0},
        {"hour": "2026-11-21T08:00Z", "views": 1},
    ]


def test_a_history_without_views_says_so_in_json(table: Table) -> None:
    assert history.document("octocat", read(table))["since"] is None
