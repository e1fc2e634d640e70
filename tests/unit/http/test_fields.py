"""Queries and bodies: a declared field is read once, with its default, or refused with the fix."""

from __future__ import annotations

import json

import pytest

from chalicelib.http import query
from chalicelib.http.errors import BadRequestError, TooLargeError
from chalicelib.http.fields import MAX_DEPTH, Body, Field, Options, boolean, number


class Base(Options):
    """Options of several routes."""

    days = number(range(1, 10), "The days.", 7)
    label = Field[str | None](str, {}, name="Label", default=None, may_be_empty=True)


class More(Base):
    """Options of one route, which replaces one of them."""

    days = number(range(1, 100), "The days.", 30)
    who = Field(str.upper, {})


class Small(Body):
    """A body with a limit of its own."""

    max_bytes = 30
    on = Field(boolean, {})
    name = Field[str | None](str, {}, default=None)


@pytest.mark.parametrize(
    ("query", "days", "label"),
    [
        ({}, 7, None),
        ({"days": [], "Label": []}, 7, None),
        ({"days": [""], "Label": [""]}, 7, ""),
        ({"days": ["9"], "Label": ["x"], "other": ["y"]}, 9, "x"),
    ],
)
def test_an_option_has_its_value_or_its_default(
    query: dict[str, list[str]], days: int, label: str | None
) -> None:
    asked = Base(query)
    assert (asked.days, asked.label) == (days, label)


def test_a_class_has_the_declarations_of_its_bases_and_may_replace_one() -> None:
    assert [*More.fields] == ["days", "Label", "who"]
    asked = More({"who": ["me"], "days": ["99"]})
    assert (asked.days, asked.label, asked.who) == (99, None, "ME")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"days": ["1", "1"]}, "days: give one, not 2"),
        ({"days": ["", ""]}, "days: give one, not 2"),
        ({"Label": ["x"] * 9}, "Label: give one, not 9"),
        ({"days": ["10"]}, "days: give a whole number from 1 to 9, not '10'"),
        ({"days": ["x" * 99]}, f"days: give a whole number from 1 to 9, not '{'x' * 19}"),
    ],
)
def test_a_malformed_option_is_a_bad_request_that_names_it(
    query: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(BadRequestError) as refusal:
        Base(query)
    assert str(refusal.value) == message


def test_a_body_has_the_required_fields_and_the_defaults_of_others() -> None:
    asked = Small(b'{"on": true}')
    assert (asked.on, asked.name, asked.given) == (True, None, {"on": True})
    assert Small(b'{"on": false, "name": "x"}').name == "x"


OBJECT = "the body must be a JSON object"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        *[(body, OBJECT) for body in (b"", b"{", b"[]", b"null", b'"a"', b"\xff", b"1" * 30)],
        (b"{}", "on: give true or false"),
        (b'{"on": null}', "on: give true or false"),
        (b'{"on": 1}', "on: give true or false"),
        (b'{"on": true, "off": 1}', "no field 'off': there are name, on"),
        (b'{"on": true, "on": false}', "'on' is given twice: give it once"),
        (b'{"name": {"a": 1, "a": 1}}', "'a' is given twice: give it once"),
    ],
)
def test_another_body_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(BadRequestError) as refusal:
        Small(body)
    assert str(refusal.value) == message


class Deep(Body):
    """A body with any JSON."""

    any = Field(lambda given: given, {})


def nested(levels: int) -> bytes:
    return json.dumps({"any": 0}).replace("0", "[" * levels + "]" * levels).encode()


def test_a_body_has_a_maximum_size() -> None:
    with pytest.raises(TooLargeError, match="the body has 31 bytes: give at most 30"):
        Small(b"x" * 31)


def test_json_has_a_maximum_depth() -> None:
    """The object of the body is the first level."""
    assert Deep(nested(MAX_DEPTH - 1)).any
    for levels in (MAX_DEPTH, MAX_DEPTH + 1, 500):
        with pytest.raises(BadRequestError, match="too deep: give at most 100 levels of JSON"):
            Deep(nested(levels))


@pytest.mark.parametrize("body", [b"[" * 100_000, b"1" * 5_000, b'{"any": 1' + b"0" * 5_000 + b"}"])
def test_json_that_python_does_not_read_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequestError, match=OBJECT):
        Deep(body)


# ---- the query


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
