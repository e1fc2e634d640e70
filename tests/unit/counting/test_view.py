"""The message of a view and its ULID; windows: their marks, the ages of views, and TTLs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.counting import ids
from chalicelib.counting.ids import BadIdError
from chalicelib.counting.view import View, Windows, marker_item, ulid_in
from chalicelib.settings import Settings
from chalicelib.storage.messages import MalformedError
from chalicelib.ulids import new_ulid
from simulation.clocks import NOON
from simulation.views import AT_NOON, WINDOWS, ulid

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


# ---- windows

LENGTHS = st.integers(min_value=1, max_value=86_400)
TIMES = st.integers(min_value=0, max_value=4_102_444_800_000)
"""Milliseconds since 1970."""


def test_the_settings_set_the_lengths() -> None:
    settings = Settings(view_window_seconds=60, grace_seconds=20, retention_seconds=500)
    assert Windows.of(settings) == Windows(window=60, grace=20, retention=500)
    assert Windows.of(Settings()) == Windows() == Windows(300, 600, 1_296_000)


@given(TIMES, LENGTHS)
def test_every_time_is_in_the_window_that_ends_at_its_mark(at: int, window: int) -> None:
    mark = Windows(window=window).mark(at)
    assert type(mark) is int
    assert mark % window == 0
    assert (mark - window) * 1000 <= at < mark * 1000


@given(st.floats(min_value=100_000, max_value=4e9), LENGTHS, LENGTHS)
def test_the_last_mark_whose_grace_is_over_can_be_folded(
    now: float, window: int, grace: int
) -> None:
    mark = Windows(window, grace).foldable(now)
    assert type(mark) is int
    assert mark % window == 0
    assert mark <= now - grace < mark + window


@pytest.mark.parametrize(
    ("age", "is_young", "is_old"),
    [
        (-5, True, False),
        (0, True, False),
        (300, True, False),
        (300.001, False, False),
        (899.999, False, False),
        (900, False, True),
        (1_000_000, False, True),
    ],
)
def test_a_view_is_young_until_half_a_grace_and_old_from_one_and_a_half_on(
    age: float, *, is_young: bool, is_old: bool
) -> None:
    assert WINDOWS.is_young(AT_NOON, NOON + age) == is_young
    assert WINDOWS.is_old(AT_NOON, NOON + age) == is_old


@given(TIMES, LENGTHS, st.integers(1, 10_000), st.integers(0, 600_000))
def test_the_marker_of_a_young_view_stays_for_half_a_grace_at_least(
    at: int, window: int, half: int, age: int
) -> None:
    windows = Windows(window, grace=2 * half)
    now = (at + age) / 1000
    if windows.is_young(at, now):
        assert windows.marker_ttl(windows.mark(at)) >= now + half


def test_markers_and_views_end_on_five_minute_marks_after_the_grace_and_the_retention() -> None:
    assert WINDOWS.marker_ttl(300) == 900
    for at in (AT_NOON, AT_NOON + 299_999):
        assert WINDOWS.view_ttl(at) == int(NOON) + 300 + 1_296_000


def test_a_marker_has_its_own_partition_and_the_id_of_its_badge() -> None:
    assert marker_item("a#b/c", 300, 900) == {
        "PK": "WINDOW#300#a#b/c",
        "SK": "WINDOW",
        "badge": "a#b/c",
        "ttl": 900,
    }
