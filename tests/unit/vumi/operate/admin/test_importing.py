"""The import of counts on both engines, also after interruptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.concurrency import map_parallel
from chalicelib.counting import badge_count, keys
from chalicelib.owners import changing, claiming, finding
from chalicelib.owners.changing import BadgeChange
from chalicelib.owners.finding import OwnedBadge
from chalicelib.storage.errors import StorageError, UnavailableError
from chalicelib.storage.ports import Table
from simulation.clocks import NOON, FakeTime
from simulation.memory_table import MemoryTable
from simulation.tables import FaultyTable, once, raising
from simulation.views import WINDOWS, fold, shown, store, summary
from tests.profile import cases
from vumi.operate.admin.counts_file import ImportedCount
from vumi.operate.admin.importing import BATCH_BADGES, Import, ImportOutcome, ImportResult


class KilledError(Exception):
    """The process ends here."""


@pytest.fixture
def table() -> Table:
    return MemoryTable()


def rows(**counts: int) -> list[ImportedCount]:
    return [
        ImportedCount(line, name, count) for line, (name, count) in enumerate(counts.items(), 2)
    ]


def job(table: Table, **settings: Any) -> Import:
    return Import(table, map, lambda: NOON, patience=FakeTime().retry(), **settings)


def imported(table: Table, given: Sequence[ImportedCount], **settings: Any) -> list[ImportOutcome]:
    results = list(job(table, **settings).run(given))
    assert [result.row for result in results] == list(given)
    return [result.outcome for result in results]


def visit(table: Table, badge_id: str) -> None:
    """Take a view that is stored immediately."""
    one = badge_count.read(table, badge_id).view(WINDOWS, NOON)
    assert store(table, one) == {}


def claimed(table: Table, badge_id: str, base: int = 0) -> OwnedBadge:
    secret = claiming.claim(table, badge_id, base, NOON)
    return finding.authenticate(table, badge_id, secret)


def test_a_count_becomes_the_base_of_its_badge_and_again_changes_nothing(table: Table) -> None:
    assert imported(table, rows(a=1000, b=0)) == [ImportOutcome.IMPORTED, ImportOutcome.SAME]
    assert (shown(table, "a"), shown(table, "b")) == (1000, 0)
    assert summary(table, "a")["created"] == NOON
    with pytest.raises(finding.TakenError):
        claiming.claim(table, "a", 0, NOON)
    visit(table, "a")
    before = table.get(keys.summary("a"))
    assert imported(table, rows(a=1000)) == [ImportOutcome.SAME]
    assert table.get(keys.summary("a")) == before
    assert shown(table, "a") == 1001


@pytest.mark.parametrize(
    ("replace", "outcome"), [(False, ImportOutcome.KEPT), (True, ImportOutcome.REPLACED)]
)
def test_another_base_is_kept_unless_replaced(
    table: Table,
    replace: bool,  # noqa: FBT001
    outcome: ImportOutcome,
) -> None:
    claimed(table, "a", base=5)
    [result] = job(table, replace=replace).run(rows(a=1000))
    assert result == ImportResult(ImportedCount(2, "a", 1000), outcome, before=5)
    assert shown(table, "a") == (1000 if replace else 5)


@pytest.mark.parametrize(
    "change", [BadgeChange(base=0), BadgeChange(reset=True)], ids=["base 0", "reset"]
)
def test_a_base_that_an_owner_set_to_0_is_kept(table: Table, change: BadgeChange) -> None:
    imported(table, rows(a=0))
    owned = claimed(table, "a")
    changing.change(table, owned, change, NOON)
    assert imported(table, rows(a=1000)) == [ImportOutcome.KEPT]
    assert shown(table, "a") == 0
    assert imported(table, rows(a=1000), replace=True) == [ImportOutcome.REPLACED]
    assert shown(table, "a") == 1000


def test_a_dry_run_reports_the_same_and_writes_nothing(table: Table) -> None:
    claimed(table, "kept", base=5)
    before = table.get(keys.summary("kept"))
    given = rows(new=7, kept=6, none=0)
    told = imported(table, given, dry_run=True)
    assert told == [ImportOutcome.IMPORTED, ImportOutcome.KEPT, ImportOutcome.SAME]
    assert table.get(keys.summary("new")) is None
    assert table.get(keys.summary("kept")) == before
    assert imported(table, given, dry_run=True, replace=True)[1] == ImportOutcome.REPLACED
    assert table.get(keys.summary("kept")) == before
    assert imported(table, given) == told


@pytest.mark.parametrize("each", [map, map_parallel])
def test_more_badges_than_a_batch_keep_their_order(each: Any) -> None:
    given = rows(**{f"b{n}": n + 1 for n in range(2 * BATCH_BADGES + 1)})
    table = MemoryTable()
    results = list(Import(table, each, lambda: NOON).run(given))
    assert [result.row for result in results] == given
    assert {result.outcome for result in results} == {ImportOutcome.IMPORTED}
    assert all(shown(table, row.badge_id) == row.count for row in given)


Meanwhile = Callable[[Table, OwnedBadge], object]


@pytest.mark.parametrize(
    ("meanwhile", "count"),
    [
        (lambda table, owned: changing.change(table, owned, BadgeChange(base=3), NOON), 3),
        (lambda table, owned: changing.change(table, owned, BadgeChange(reset=True), NOON), 0),
        (lambda table, owned: changing.delete(table, owned, NOON, WINDOWS.retention), 0),
    ],
    ids=["base", "reset", "deletion"],
)
def test_a_decision_of_the_owner_during_the_import_is_kept(
    table: Table, meanwhile: Meanwhile, count: int
) -> None:
    owned = claimed(table, "a")
    faulty = FaultyTable(table, before_write=once(lambda: meanwhile(table, owned)))
    assert imported(faulty, rows(a=9)) == [ImportOutcome.KEPT]
    assert shown(table, "a") == count


def test_a_name_that_is_given_before_or_during_the_import_is_followed(table: Table) -> None:
    owned = claimed(table, "old")
    change = once(lambda: changing.change(table, owned, BadgeChange(name="new"), NOON))
    faulty = FaultyTable(table, before_write=change)
    assert imported(faulty, rows(new=9)) == [ImportOutcome.IMPORTED]
    assert (shown(table, "old"), shown(table, "new")) == (9, 9)
    assert imported(table, rows(new=10), replace=True) == [ImportOutcome.REPLACED]
    assert (shown(table, "old"), shown(table, "new")) == (10, 10)


def test_a_view_that_is_folded_during_the_import_stays_counted(table: Table) -> None:
    """The import reads the summary again after another write."""
    visit(table, "a")
    folding = once(lambda: fold(table, NOON + 900, "a"))
    assert imported(FaultyTable(table, before_write=folding), rows(a=9)) == [ImportOutcome.IMPORTED]
    assert (summary(table, "a")["count"], shown(table, "a")) == (1, 10)


@settings(max_examples=cases(60))
@given(data=st.data())
def test_an_import_cut_short_anywhere_and_run_again_is_exact(data: st.DataObject) -> None:
    """Writes fail before or after they take effect, with views and imports in between."""
    given = rows(a=10, b=20, c=30)
    fault = st.sampled_from([None, UnavailableError("no"), KilledError()])
    views = dict.fromkeys("abc", 0)
    table = MemoryTable()
    for _ in range(data.draw(st.integers(1, 3))):
        plan = data.draw(st.lists(fault, max_size=4)), data.draw(st.lists(fault, max_size=4))
        faulty = FaultyTable(table, before_write=raising(*plan[0]), after_write=raising(*plan[1]))
        attempt = Import(faulty, map, lambda: NOON, patience=FakeTime().retry(attempts=2))
        with suppress(StorageError, KilledError):
            list(attempt.run(given))
        visited = data.draw(st.sampled_from("abc"))
        visit(table, visited)
        views[visited] += 1
    assert {*imported(table, given)} <= {ImportOutcome.IMPORTED, ImportOutcome.SAME}
    assert {row.badge_id: shown(table, row.badge_id) for row in given} == {
        row.badge_id: row.count + views[row.badge_id] for row in given
    }
