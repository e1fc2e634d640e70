"""The message of a view, its ULID, and malformed messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.counting import ids
from chalicelib.counting.ids import BadIdError
from chalicelib.counting.view import View, ulid_in
from chalicelib.storage.messages import MalformedError
from chalicelib.ulids import milliseconds, new_ulid
from simulation.views import AT_NOON, ulid

ULID_AT_NOON = ulid(AT_NOON)
NO_FLAGS: list[object] = [0, 1, 1.0, "true", None, []]
MILLISECONDS = st.integers(min_value=0, max_value=4_102_444_800_000)


def message(**changed: Any) -> str:
    fields = {"id": "octocat", "view": ULID_AT_NOON, "first": False, "hot": False}
    return json.dumps(fields | changed)


def _is_id(raw: str) -> bool:
    try:
        return ids.normalise(raw) == raw
    except BadIdError:
        return False


@given(
    st.text(min_size=1, max_size=30).filter(_is_id),
    MILLISECONDS,
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_a_message_carries_its_view_unchanged(
    badge_id: str,
    at: int,
    first: bool,  # noqa: FBT001
    hot: bool,  # noqa: FBT001
    fold: bool,  # noqa: FBT001
) -> None:
    view = View(badge_id, new_ulid(at), first, hot, fold)
    body = view.to_message()
    assert View.from_message(body) == view
    assert body.isascii()  # SQS refuses some characters that an id may have, such as U+FFFE


def test_the_ulid_of_a_message_is_read_if_it_is_valid() -> None:
    assert ulid_in(message()) == ULID_AT_NOON
    assert ulid_in(message(first=1)) == ulid_in(None) == ""


def test_a_message_asks_for_a_fold_only_if_one_is_overdue() -> None:
    asks = json.loads(View("octocat", ULID_AT_NOON, fold=True).to_message())
    assert asks == {
        "id": "octocat",
        "view": ULID_AT_NOON,
        "first": True,
        "hot": False,
        "fold": True,
    }
    assert "fold" not in json.loads(View("octocat", ULID_AT_NOON).to_message())
    assert View.from_message(message()) == View("octocat", ULID_AT_NOON, first=False)


@given(MILLISECONDS)
def test_a_view_has_its_time_to_the_millisecond(at: int) -> None:
    assert View("octocat", new_ulid(at)).milliseconds == at


@pytest.mark.parametrize(
    "body",
    [
        None,
        17,
        "",
        "null",
        "{}",
        "[" * 100_000,
        "1" * 5_000,
        message(id=""),
        message(id=None),
        message(id="a" * 201),
        message(id="cafe\u0301"),
        message(id="a\nb"),
        message(id="a\ud800"),
        message(view=list(ULID_AT_NOON)),
        message(view=ULID_AT_NOON[:-1]),
        message(view=ULID_AT_NOON + "0"),
        message(view=ULID_AT_NOON.lower()),
        message(view="U" * 26),
        message(view="8" + "0" * 25),
        *(message(first=wrong) for wrong in NO_FLAGS),
        *(message(hot=wrong) for wrong in NO_FLAGS),
        *(message(fold=wrong) for wrong in NO_FLAGS),
    ],
)
def test_a_body_that_is_not_a_view_is_malformed(body: object) -> None:
    with pytest.raises(MalformedError, match=r'^expected \{"id": text, "view": ULID'):
        View.from_message(body)


@pytest.mark.parametrize(
    ("name", "value"),
    [("id", "cafe\u0301"), ("view", ULID_AT_NOON.lower()), ("first", 2), ("hot", 3), ("fold", 4)],
)
def test_an_error_names_the_value_that_is_wrong(name: str, value: object) -> None:
    with pytest.raises(MalformedError) as malformed:
        View.from_message(message(**{name: value}))
    assert repr(value) in str(malformed.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(ULID_AT_NOON),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
    max_leaves=5,
)
FIELDS = dict.fromkeys(("id", "view", "first", "hot", "fold"), JSON)


@given(st.fixed_dictionaries({}, optional=FIELDS) | JSON)
def test_any_message_is_a_view_or_malformed_and_nothing_else(fields: Any) -> None:
    try:
        view = View.from_message(json.dumps(fields))
    except MalformedError:
        return
    assert (view.badge_id, view.ulid) == (fields["id"], fields["view"])
    assert [view.first, view.hot] == [fields["first"], fields["hot"]]


def test_a_key_cannot_be_forged_by_an_id_in_place_of_a_ulid() -> None:
    with pytest.raises(ValueError, match="not a ULID"):
        milliseconds(f"{ULID_AT_NOON}#USER")
