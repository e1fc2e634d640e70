"""A file of counts is read completely, and each wrong line is reported."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.badges.options import MAX_BASE
from chalicelib.counting import ids
from vumi.errors import ReportedError
from vumi.operate.admin import counts
from vumi.operate.admin.counts import MAX_PROBLEMS, ImportedCount, format_row


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


def test_a_file_that_is_too_large_is_refused(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(counts.MAX_BYTES + 1)
    with pytest.raises(ReportedError, match="split it"):
        read(path)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("a", "give id,count, not 1 fields; quote an id that has a comma"),
        ("a,b,1", "give id,count, not 3 fields; quote an id that has a comma"),
        (",1", "the id is empty: give one like owner/name"),
        ("a\x7f,1", "the id has a control character: leave it out"),
        ("a" * 201 + ",1", "the id has 201 characters and 201 bytes: give at most 200 and 400"),
        ("a,", f"give a whole number from 0 to {MAX_BASE}, not ''"),
        ("a, 1", f"give a whole number from 0 to {MAX_BASE}, not ' 1'"),
        ("a,-1", f"give a whole number from 0 to {MAX_BASE}, not '-1'"),
        ("a,1.0", f"give a whole number from 0 to {MAX_BASE}, not '1.0'"),
        ("a,٣", f"give a whole number from 0 to {MAX_BASE}, not '٣'"),
        (f"a,{MAX_BASE + 1}", f"give a whole number from 0 to {MAX_BASE}, not '{MAX_BASE + 1}'"),
    ],
)
def test_a_wrong_line_is_named_with_the_fix(path: Path, line: str, says: str) -> None:
    content = f"good,1\n{line}\n"
    assert refusal(path, content) == f"FILE: nothing was imported\n  line 2: {says}"


def test_wrong_lines_are_listed_up_to_a_limit(path: Path) -> None:
    told = refusal(path, "good,1\n" + "bad\n" * (MAX_PROBLEMS + 3)).splitlines()
    assert len(told) == 1 + MAX_PROBLEMS + 1
    assert told[1].startswith("  line 2: ")
    assert told[-1] == "  and 3 more"
    assert "more" not in refusal(path, "bad\n" * MAX_PROBLEMS)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a,1\n\xff,2\n", "FILE can't be read as UTF-8: 'utf-8' codec"),
        (b'a,1\n"b"c,2\n', "FILE: line 2 is not CSV: "),
        (b'a,1\n"b,2\n', "FILE: line 2 is not CSV: "),
        ("a,1\nid,count\n", "FILE: nothing was imported\n  line 2: give a whole number"),
        (
            "id,count\na,1\nb,2\na,3\n",
            "FILE: nothing was imported\n  line 4: a has 3 here but 1 in line 2",
        ),
    ],
)
def test_a_wrong_file_is_refused(path: Path, content: bytes | str, says: str) -> None:
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


def test_pages_have_the_ids_of_the_script_and_the_site_has_their_sum() -> None:
    assert read_sample(SAMPLE) == COUNTS


def test_an_array_is_read_too() -> None:
    assert read_sample(f"[{','.join(SAMPLE.splitlines()[1:])}]") == COUNTS


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
