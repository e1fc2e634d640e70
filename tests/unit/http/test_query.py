"""Query parameters: each is given once, read by a function, and refused with the fix."""

from __future__ import annotations

import pytest

from chalicelib.http import query
from chalicelib.http.errors import BadRequestError


def whole(given: str) -> int:
    if not given.isdecimal():
        raise ValueError(f"give a whole number, not {query.shown(given)}")
    return int(given)


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


def test_a_query_has_at_most_100_parameters() -> None:
    assert query.parse("&".join("a" * 100)) == {"a": [""] * 100}
    with pytest.raises(BadRequestError, match="has 101 parameters: give at most 100"):
        query.parse("&" * 100)


@pytest.mark.parametrize(("given", "read"), [({"n": ["5"]}, 5), ({}, 7), ({"n": [""]}, 7)])
def test_a_missing_or_empty_parameter_has_its_default(
    given: dict[str, list[str]], read: int
) -> None:
    assert query.one(given, "n", whole, default=7) == read


def test_an_empty_text_is_a_value_if_the_parameter_allows_it() -> None:
    assert query.one({"n": [""]}, "n", str, default=None, may_be_empty=True) == ""
    assert query.one({}, "n", str, default=None, may_be_empty=True) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["1", "1"], "n: give one, not 2"),
        (["x"], "n: give a whole number, not 'x'"),
        (["x" * 99], f"n: give a whole number, not '{'x' * 19}"),
    ],
)
def test_a_malformed_parameter_is_a_bad_request_that_names_it(
    values: list[str], message: str
) -> None:
    with pytest.raises(BadRequestError) as refusal:
        query.one({"n": values}, "n", whole, default=7)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("given", "reason"),
    [("a\nb", "a control character"), ("\x85", "a control character"), ("\ud800", "half a surr")],
)
def test_a_character_that_no_badge_can_show_is_refused(given: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^the id has {reason}.*: leave it out$"):
        query.check_characters(given, "the id")


def test_a_query_is_plain_without_any_parameter_but_the_id() -> None:
    assert query.is_plain(query.parse(""))
    assert query.is_plain(query.parse("id=a"))
    assert not query.is_plain(query.parse("id=a&new-option="))


def test_a_short_query_is_parsed_once_and_a_long_one_takes_no_memory() -> None:
    short, long = "id=" + "a" * 297, "id=" + "a" * 298
    assert query.parse(short) is query.parse(short)
    assert query.parse(long) == query.parse(long) == {"id": ["a" * 298]}
    assert query.parse(long) is not query.parse(long)
