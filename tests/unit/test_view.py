"""A view's message there and back, its ULID, and what is no view."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.views import ids
from chalicelib.views.ids import BadIdError
from chalicelib.views.view import MalformedError, View, earliest, taken_at
from tests.unit.fakes import NOON, ulid_of

ULID_AT_NOON = ulid_of(NOON)


def message(**changed: Any) -> str:
    return json.dumps({"id": "octocat", "view": ULID_AT_NOON, "shown": 7} | changed)


def _is_id(raw: str) -> bool:
    try:
        return ids.normalise(raw) == raw
    except BadIdError:
        return False


@given(
    st.text(min_size=1, max_size=30).filter(_is_id),
    st.integers(min_value=0),
    st.floats(min_value=0.001, max_value=4_102_444_800),
)
def test_a_message_carries_its_view_unchanged(badge_id: str, shown: int, now: float) -> None:
    view = View.taken(badge_id, shown, now)
    body = view.to_message()
    assert View.from_message(body) == view
    assert body.isascii()  # SQS refuses some characters that an id may have, such as U+FFFE


@given(st.floats(min_value=0.001, max_value=4_102_444_800))
def test_a_view_knows_when_it_was_taken_to_the_millisecond(now: float) -> None:
    moment = taken_at(View.taken("octocat", 0, now).ulid)
    difference = datetime.fromtimestamp(now, UTC) - moment
    slack = timedelta(microseconds=2)
    assert -slack <= difference <= timedelta(milliseconds=1) + slack


def test_a_time_in_whole_seconds_is_a_time_in_seconds() -> None:
    assert taken_at(View.taken("octocat", 0, 1_773_489_600).ulid).year == 2026


def test_no_two_views_are_the_same_even_at_one_moment() -> None:
    views = {View.taken("octocat", 0, NOON) for _ in range(1_000)}
    assert len({view.ulid for view in views}) == 1_000


def test_views_sort_by_the_time_they_were_taken() -> None:
    moments = [NOON + seconds for seconds in (0.0, 0.001, 1.0, 86_400.0, 3e8)]
    ulids = [View.taken("octocat", 0, moment).ulid for moment in moments]
    assert ulids == sorted(ulids)


@pytest.mark.parametrize(
    "body",
    [
        None,
        17,
        "",
        "no json",
        "null",
        "[]",
        '"text"',
        "{}",
        "[" * 100_000,
        "1" * 5_000,
        message(id=""),
        message(id=5),
        message(id=None),
        message(id=["octocat"]),
        message(id="a" * 201),
        message(id="cafe\u0301"),
        message(id="a\nb"),
        message(id="a\ud800"),
        message(view=""),
        message(view=5),
        message(view=list(ULID_AT_NOON)),
        message(view=ULID_AT_NOON[:-1]),
        message(view=ULID_AT_NOON + "0"),
        message(view=ULID_AT_NOON.lower()),
        message(view="U" * 26),
        message(view="8" + "0" * 25),
        message(view="7" + "Z" * 25),
        message(shown=-1),
        message(shown=1.0),
        message(shown="7"),
        message(shown=None),
        message(shown=True),
        message(reset=-1),
        message(reset=1.0),
        message(reset="7"),
        message(reset=None),
        message(reset=True),
        message(hot=-1),
        message(hot=None),
        message(hot=True),
    ],
)
def test_what_is_no_view_is_malformed_whatever_it_is(body: object) -> None:
    with pytest.raises(MalformedError, match="expected"):
        View.from_message(body)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", "cafe\u0301"),
        ("view", ULID_AT_NOON.lower()),
        ("shown", -1),
        ("reset", -2),
        ("hot", -3),
    ],
)
def test_what_is_wrong_with_a_message_is_told(name: str, value: object) -> None:
    with pytest.raises(MalformedError) as malformed:
        View.from_message(message(**{name: value}))
    what = "" if name == "view" else f"{name} "
    assert what + repr(value) in str(malformed.value)


@pytest.mark.parametrize("missing", ["id", "view", "shown"])
def test_a_message_without_one_of_its_fields_is_malformed(missing: str) -> None:
    fields = json.loads(message())
    del fields[missing]
    with pytest.raises(MalformedError, match=missing):
        View.from_message(json.dumps(fields))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(ULID_AT_NOON),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
    max_leaves=5,
)


@given(st.fixed_dictionaries({}, optional={"id": JSON, "view": JSON, "shown": JSON}) | JSON)
def test_any_message_is_a_view_or_malformed_and_nothing_else(fields: Any) -> None:
    try:
        view = View.from_message(json.dumps(fields))
    except MalformedError:
        return
    assert (view.badge_id, view.ulid, view.shown) == (
        fields["id"],
        fields["view"],
        fields["shown"],
    )


def test_a_key_cannot_be_forged_by_an_id_in_place_of_a_ulid() -> None:
    with pytest.raises(ValueError, match="26 characters"):
        taken_at(f"{ULID_AT_NOON}#USER")


AT_NOON = int(NOON * 1000)


def test_a_view_of_a_count_that_never_began_anew_says_nothing_of_it() -> None:
    """Messages that were enqueued before there was a reset are read as ever."""
    assert set(json.loads(View.taken("octocat", 7, NOON).to_message())) == {"id", "view", "shown"}
    assert View.from_message(message()).reset == 0


def test_a_message_of_a_hot_badge_says_until_when() -> None:
    """Messages that were enqueued before there were hot ones are read as ever."""
    view = View.taken("octocat", 7, NOON, hot=1_800_000_000)
    assert json.loads(view.to_message())["hot"] == 1_800_000_000
    assert View.from_message(view.to_message()) == view
    assert View.from_message(message()).hot == View.from_message(message(hot=0)).hot == 0


@given(st.integers(min_value=1, max_value=2**47))
def test_a_message_carries_the_reset_that_its_visitor_saw(reset: int) -> None:
    view = View.taken("octocat", 7, NOON, reset)
    assert json.loads(view.to_message())["reset"] == reset
    assert View.from_message(view.to_message()) == view


@pytest.mark.parametrize(
    ("reset", "milliseconds"),
    [
        (0, AT_NOON),
        (AT_NOON - 1, AT_NOON),
        (AT_NOON, AT_NOON),
        (AT_NOON + 1, AT_NOON + 1),
        (AT_NOON + 3_600_000, AT_NOON + 3_600_000),
    ],
)
def test_a_view_is_taken_no_sooner_than_its_reset_whatever_the_clock_says(
    reset: int, milliseconds: int
) -> None:
    ulid = View.taken("octocat", 0, NOON, reset).ulid
    assert round(taken_at(ulid).timestamp() * 1000) == milliseconds
    assert ulid >= earliest(reset)


@given(st.integers(min_value=0, max_value=4_102_444_800_000))
def test_earliest_parts_the_views_of_before_from_those_of_a_millisecond(moment: int) -> None:
    first = earliest(moment)
    assert round(taken_at(first).timestamp() * 1000) == moment
    assert first.endswith("0" * 16)
    assert View.taken("octocat", 0, moment / 1000, moment).ulid >= first
    assert earliest(moment) > ulid_of(max(0, moment - 1) / 1000, "Z" * 16) or moment == 0
