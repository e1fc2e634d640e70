"""Query parameters: each is given once, read by a function, and refused with the fix."""

from __future__ import annotations

import pytest

from chalicelib.http import query
from chalicelib.http.errors import BadRequestError


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        ("", {}),
        ("a=1&b=&a=%2F", {"a": ["1", "/"], "b": [""]}),
        ("a=b+c;d", {"a": ["b c;d"]}),
        ("a=%C3%BC&%C3%BC", {"a": ["ü"], "ü": [""]}),
        ("a=%FF", {"a": ["\ufffd"]}),
    ],
)
def test_a_query_is_read_as_browsers_write_it(raw: str, values: dict[str, list[str]]) -> None:
    assert query.parse(raw) == values


def test_a_query_has_at_most_120_parameters() -> None:
    assert query.parse("&".join("a" * 120)) == {"a": [""] * 120}
    with pytest.raises(BadRequestError, match="has 121 parameters: give at most 120"):
        query.parse("&" * 120)


@pytest.mark.parametrize(
    ("given", "reason"),
    [("a\nb", "a control character"), ("\x85", "a control character"), ("\ud800", "half a surr")],
)
def test_a_character_that_no_badge_can_show_is_refused(given: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^the id has {reason}.*: leave it out$"):
        query.check_characters(given, "the id")


def test_a_short_query_is_parsed_once_and_a_long_one_takes_no_memory() -> None:
    short, long = "id=" + "a" * 297, "id=" + "a" * 298
    assert query.parse(short) is query.parse(short)
    assert query.parse(long) == query.parse(long) == {"id": ["a" * 298]}
    assert query.parse(long) is not query.parse(long)
