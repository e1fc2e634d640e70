"""The files of counts, and their import, also after interruptions."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.badges.options import MAX_BASE
from chalicelib.concurrency import map_parallel
from chalicelib.counting import badge_count, ids, keys
from chalicelib.owners import changing, claiming, finding
from chalicelib.owners.changing import BadgeChange
from chalicelib.owners.finding import OwnedBadge
from chalicelib.storage.errors import StorageError, UnavailableError
from chalicelib.storage.ports import Table
from simulation.clocks import NOON, FakeTime
from simulation.faults import Crash
from simulation.storage import FaultyTable, MemoryTable, once, raising
from simulation.views import WINDOWS, fold, shown, store, summary
from tests.profile import cases
from vumi.errors import ReportedError
from vumi.operate.admin import counts
from vumi.operate.admin.counts import (
    MAX_PROBLEMS,
    Import,
    ImportedCount,
    ImportOutcome,
    ImportResult,
    format_row,
)
from vumi.operate.admin.installation import BATCH


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "counts.csv"


def read(path: Path) -> list[ImportedCount]:
    with path.open("rb") as file:
        return counts.read(str(path), file)


def refusal(path: Path, content: bytes | str) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ReportedError) as refused:
        read(path)
    return str(refused.value).replace(str(path), "FILE")


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("id,count\na/b,7\nc,0\n", [(2, "a/b", 7), (3, "c", 0)]),
        ("a/b,7\nc,0", [(1, "a/b", 7), (2, "c", 0)]),
        ("\ufeffid,count\r\na/b,7\r\nc,0\r\n", [(2, "a/b", 7), (3, "c", 0)]),
        ('id,count\n\n"a, b","7"\nc,0\n', [(3, "a, b", 7), (4, "c", 0)]),
        ("a/b,7\nc,0\na/b,7\n", [(1, "a/b", 7), (2, "c", 0)]),
        ("u\u0308,7\n\u00fc,7\n", [(1, "\u00fc", 7)]),
        (f"a,{MAX_BASE}\n", [(1, "a", MAX_BASE)]),
        ("", []),
    ],
    ids=["head", "none", "mark", "quotes", "repeated", "normal", "largest", "empty"],
)
def test_the_lines_of_a_file_are_read(
    path: Path, content: str, rows: list[tuple[int, str, int]]
) -> None:
    path.write_text(content, newline="")
    assert read(path) == [ImportedCount(*row) for row in rows]


FORMULAS = ["=HYPERLINK(0)", "+1", "-1", "@SUM(1)", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201"]
BEGINNINGS = st.sampled_from(["'", "''", *FORMULAS, "'=1", ",", '"', ""])


@given(beginning=BEGINNINGS, end=st.text(max_size=5))
def test_no_id_is_a_formula_and_each_comes_back(beginning: str, end: str) -> None:
    try:
        badge_id = ids.normalise(beginning + end)
    except ids.BadIdError:
        return
    written = format_row(badge_id, 7)
    [[field, _]] = csv.reader(io.StringIO(written, newline=""))
    assert field[0] not in "=+-@\uff1d\uff0b\uff0d\uff20"
    [row] = counts.read("FILE", io.BytesIO(written.encode()))
    assert row.badge_id == badge_id


def test_wrong_lines_are_listed_up_to_a_limit(path: Path) -> None:
    told = refusal(path, "good,1\n" + "bad\n" * (MAX_PROBLEMS + 3)).splitlines()
    assert len(told) == 1 + MAX_PROBLEMS + 1
    assert told[1].startswith("  line 2: ")
    assert told[-1] == "  and 3 more"
    assert "more" not in refusal(path, "bad\n" * MAX_PROBLEMS)


FIELDS = "give id,count, not {} fields; quote an id that has a comma"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("a", FIELDS.format(1)),
        ("a,b,1", FIELDS.format(3)),
        (",1", "the id is empty: give one like owner/name"),
        ("a,", f"give a whole number from 0 to {MAX_BASE}, not ''"),
        (f"a,{MAX_BASE + 1}", f"give a whole number from 0 to {MAX_BASE}, not '{MAX_BASE + 1}'"),
        ("id,count", f"give a whole number from 0 to {MAX_BASE}, not 'count'"),
        ("good,3", "good has 3 here but 1 in line 1"),
    ],
)
def test_a_wrong_line_is_named_with_the_fix(path: Path, line: str, says: str) -> None:
    content = f"good,1\n{line}\nb,2\n"
    assert refusal(path, content) == f"FILE: nothing was imported\n  line 2: {says}"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a,1\n\xff,2\n", "FILE can't be read as UTF-8: 'utf-8' codec"),
        (b'a,1\n"b"c,2\n', "FILE: line 2 is not CSV: "),
        (b'a,1\n"b,2\n', "FILE: line 2 is not CSV: "),
        (bytes(counts.MAX_BYTES + 1), "FILE has more than 33,554,432 bytes: split it"),
    ],
    ids=["not UTF-8", "a quote", "no end", "too large"],
)
def test_a_wrong_file_is_refused(path: Path, content: bytes, says: str) -> None:
    assert refusal(path, content).startswith(says)


# ---- LeanCloud

SAMPLE = """#filetype:JSON-streaming {"type":"Class","class":"Counter"}
{"objectId":"5f0c","title":"Hello","url":"/2020/07/13/hello/","time":41,"ACL":{"*":{"read":true}}}
{"objectId":"5f0d","title":"","url":"/posts/%E6%96%87/index.html","time":7}
{"objectId":"5f0e","title":"Hello","url":"https://me.example/2020/07/13/hello/","time":2,"xid":"x"}
"""
"""Made by the fields of theme-next/hexo-leancloud-counter-security and Valine's `addCount`, after
the first line of LeanCloud's export.
"""
COUNTS = {"me.example/2020/07/13/hello/": 43, "me.example/posts/文/": 7, "me.example": 50}


def read_sample(content: str) -> dict[str, int]:
    file = io.BytesIO(content.encode())
    return {row.badge_id: row.count for row in counts.read_leancloud("FILE", file, "me.example")}


@pytest.mark.parametrize("content", [SAMPLE, f"[{','.join(SAMPLE.splitlines()[1:])}]"])
def test_pages_have_the_ids_of_the_script_and_the_site_has_their_sum(content: str) -> None:
    assert read_sample(content) == COUNTS


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 2: "),
        ("7", "line 2: give an object of the class Counter, with url and time"),
        ('{"url": "/"}', "line 2: give an object of the class Counter, with url and time"),
        ('{"url": "/", "time": -1}', "line 2: give a whole number from 0"),
        ('{"url": "/", "time": true}', "line 2: give a whole number from 0"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_imported(line: str, reason: str) -> None:
    with pytest.raises(ReportedError, match="FILE: nothing was imported") as refused:
        read_sample(SAMPLE.splitlines()[0] + "\n" + line + "\n")
    assert reason in str(refused.value)


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
    ("change", "base"),
    [(BadgeChange(base=5), 5), (BadgeChange(base=0), 0), (BadgeChange(reset=True), 0)],
    ids=["base 5", "base 0", "reset"],
)
def test_another_base_of_the_owner_is_kept_unless_replaced(
    table: Table, change: BadgeChange, base: int
) -> None:
    changing.change(table, claimed(table, "a"), change, NOON)
    row = ImportedCount(2, "a", 1000)
    assert list(job(table).run([row])) == [ImportResult(row, ImportOutcome.KEPT, base)]
    assert shown(table, "a") == base
    replaced = ImportResult(row, ImportOutcome.REPLACED, base)
    assert list(job(table, replace=True).run([row])) == [replaced]
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
    given = rows(**{f"b{n}": n + 1 for n in range(2 * BATCH + 1)})
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
    fault = st.sampled_from([None, UnavailableError("no"), Crash()])
    views = dict.fromkeys("abc", 0)
    table = MemoryTable()
    for _ in range(data.draw(st.integers(1, 3))):
        plan = data.draw(st.lists(fault, max_size=4)), data.draw(st.lists(fault, max_size=4))
        faulty = FaultyTable(table, before_write=raising(*plan[0]), after_write=raising(*plan[1]))
        attempt = Import(faulty, map, lambda: NOON, patience=FakeTime().retry(attempts=2))
        with suppress(StorageError, Crash):
            list(attempt.run(given))
        visited = data.draw(st.sampled_from("abc"))
        visit(table, visited)
        views[visited] += 1
    assert {*imported(table, given)} <= {ImportOutcome.IMPORTED, ImportOutcome.SAME}
    assert {row.badge_id: shown(table, row.badge_id) for row in given} == {
        row.badge_id: row.count + views[row.badge_id] for row in given
    }
