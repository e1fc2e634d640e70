"""An export of LeanCloud becomes the counts of a site and of its pages."""

from __future__ import annotations

import io

import pytest

from vumi.operate.admin.counts_file import CountsFileError, read_leancloud

SAMPLE = """#filetype:JSON-streaming {"type":"Class","class":"Counter"}
{"objectId":"5f0c","title":"Hello","url":"/2020/07/13/hello/","time":41,"ACL":{"*":{"read":true}}}
{"objectId":"5f0d","title":"","url":"/posts/%E6%96%87/index.html","time":7}
{"objectId":"5f0e","title":"Hello","url":"https://me.example/2020/07/13/hello/","time":2,"xid":"x"}
"""
"""Made by the fields of theme-next/hexo-leancloud-counter-security and Valine's `addCount`, after
the first line of LeanCloud's export.
"""
COUNTS = {"me.example/2020/07/13/hello/": 43, "me.example/posts/文/": 7, "me.example": 50}


def read(content: str) -> dict[str, int]:
    file = io.BytesIO(content.encode())
    return {row.badge_id: row.count for row in read_leancloud("FILE", file, "me.example")}


def test_pages_have_the_ids_of_the_script_and_the_site_has_their_sum() -> None:
    assert read(SAMPLE) == COUNTS


def test_an_array_is_read_too() -> None:
    assert read(f"[{','.join(SAMPLE.splitlines()[1:])}]") == COUNTS


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
    with pytest.raises(CountsFileError, match="FILE: nothing was imported") as refused:
        read(SAMPLE.splitlines()[0] + "\n" + line + "\n")
    assert reason in str(refused.value)
