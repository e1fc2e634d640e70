"""Badges keep the schema of shields.io's endpoint badge."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.views import badge, ids
from chalicelib.views.ids import BadIdError

TEXTS = {"label", "message", "color", "labelColor", "style", "namedLogo", "logoSvg", "logoColor"}
KEYS = TEXTS | {"schemaVersion", "isError", "logoSize", "cacheSeconds"}


def check_schema(body: dict[str, Any]) -> None:
    """Source: shields.io, "Endpoint Badge"; older shields refuse a key that is not in it."""
    assert set(body) <= KEYS
    assert type(body["schemaVersion"]) is int
    assert body["schemaVersion"] == 1
    assert type(body["label"]) is str
    assert type(body["message"]) is str
    for name in TEXTS & set(body) - {"label"}:
        assert type(body[name]) is str
        assert body[name]
    assert type(body.get("isError", False)) is bool


@given(st.integers(min_value=0))
def test_a_count_is_a_badge_of_shields_schema(count: int) -> None:
    body = badge.views(count)
    check_schema(body)
    assert body["message"] == str(count)
    assert "isError" not in body


def test_a_new_badge_says_0() -> None:
    assert badge.views(0) == {
        "schemaVersion": 1,
        "label": "views",
        "message": "0",
        "color": "blue",
    }


@given(st.text(min_size=1))
def test_an_error_is_a_red_badge_that_says_why(reason: str) -> None:
    body = badge.error(reason)
    check_schema(body)
    assert (body["message"], body["color"], body["isError"]) == (reason, "red", True)


@pytest.mark.parametrize("given_ids", [[], [""], ["a", "b"], ["a" * 201], ["\x00"], ["\ud800"]])
def test_every_refusal_of_an_id_can_be_drawn(given_ids: list[str]) -> None:
    with pytest.raises(BadIdError) as refusal:
        ids.parse(given_ids)
    body = badge.error(str(refusal.value))
    check_schema(body)
    assert body["message"].encode()


def test_badges_are_made_anew_so_that_changing_one_changes_no_other() -> None:
    badge.views(1)["label"] = "changed"
    badge.error("x")["label"] = "changed"
    assert badge.views(1)["label"] == badge.error("x")["label"] == "views"
