"""Badges keep the schema of shields.io's endpoint badge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.badges import colors
from chalicelib.badges.badge import Badge, explain
from chalicelib.badges.logos import Logo
from chalicelib.badges.options import FORMATS, MAX_BASE, STYLES
from chalicelib.http import query
from chalicelib.http.errors import BadRequestError
from chalicelib.pages.badge_routes import BadgeOptions
from chalicelib.storage.errors import StorageRefusedError, UnavailableError

TEXTS = {"label", "message", "color", "labelColor", "style", "namedLogo", "logoSvg", "logoColor"}
KEYS = TEXTS | {"schemaVersion", "isError", "logoSize", "cacheSeconds"}


def check_schema(body: Mapping[str, Any]) -> None:
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
    assert not {"namedLogo", "logoSvg"} <= set(body)
    assert "logoColor" not in body or "namedLogo" in body


def test_a_badge_of_two_texts_and_a_color_has_only_these() -> None:
    body = Badge.of("views", "0", "blue").to_json()
    assert body == {"schemaVersion": 1, "label": "views", "message": "0", "color": "blue"}
    check_schema(body)


@given(st.text(min_size=1))
def test_an_error_is_a_red_badge_with_the_reason(reason: str) -> None:
    body = Badge.error("views", reason).to_json()
    check_schema(body)
    assert (body["message"], body["color"], body["isError"]) == (reason, "red", True)


def test_every_option_that_shields_io_can_draw_is_passed_on() -> None:
    options = BadgeOptions(
        query.parse(
            "id=a&label=Besuche&color=f00&labelColor=black&style=flat-square&logo=github"
            "&logoColor=white&format=comma&base=1200"
        )
    )
    assert Badge.of("views", options.write(options.total(34)), "blue", options).to_json() == {
        "schemaVersion": 1,
        "label": "Besuche",
        "message": "1,234",
        "color": "#ff0000",
        "labelColor": "#000000",
        "style": "flat-square",
        "namedLogo": "github",
        "logoColor": "#ffffff",
    }


def test_a_colour_of_a_logo_needs_a_logo() -> None:
    assert Badge("views", "0", logo_color="#ffffff").to_json() == Badge("views", "0").to_json()


def test_an_own_logo_is_a_document_with_its_colour() -> None:
    own = Badge("views", "0", logo=Logo("#000000", '<path d="M0 0h1"/>', "0 0 1 1"))
    document = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"{}><path d="M0 0h1"/></svg>'
    )
    plain, white = own.to_json(), own._replace(logo_color="#ffffff").to_json()
    assert plain["logoSvg"] == document.format("")
    assert white["logoSvg"] == document.format(' fill="#ffffff"')
    check_schema(plain)
    check_schema(white)


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (BadRequestError("style: give flat"), "style: give flat"),
        (UnavailableError("no answer"), "unavailable: try again"),
        (StorageRefusedError("no right"), "unavailable: try again"),
        (KeyError("id"), "internal error: try again"),
    ],
)
def test_a_failure_is_explained_and_logged_unless_it_is_the_callers(
    failure: Exception, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert explain(failure) == text
    is_callers = isinstance(failure, BadRequestError)
    assert caplog.messages == ([] if is_callers else ["badge_failed"])


COLORS = ["green", "4c1", "#4C1", "007ec6", " Blue ", "rebeccapurple", "lightgrey"]
LABELS = st.text(max_size=20)
QUERIES = st.fixed_dictionaries(
    {},
    optional={
        "peek": st.sampled_from(["", "0", "1"]),
        "label": LABELS,
        "color": st.sampled_from(COLORS) | st.just(""),
        "labelColor": st.sampled_from(COLORS) | st.just(""),
        "style": st.sampled_from([*STYLES, ""]),
        "logo": st.from_regex("[a-z0-9]{0,50}", fullmatch=True),
        "logoColor": st.sampled_from(COLORS) | st.just(""),
        "format": st.sampled_from([*FORMATS, ""]),
        "base": st.integers(0, MAX_BASE).map(str) | st.just(""),
    },
)


@given(QUERIES, st.integers(0, 10**15))
def test_whatever_options_are_accepted_the_badge_keeps_the_schema(
    given_query: dict[str, str], count: int
) -> None:
    try:
        options = BadgeOptions({"id": ["a"]} | {name: [text] for name, text in given_query.items()})
    except BadRequestError as refused:
        assert str(refused).startswith("label: ")  # noqa: PT017  all other values are good
        check_schema(Badge.error("views", str(refused)).to_json())
        return
    body = Badge.of("views", options.write(options.total(count)), "blue", options).to_json()
    check_schema(body)
    assert body["label"] == given_query.get("label", "views")
    assert body["message"]
    for name in ("color", "labelColor"):
        if given_query.get(name):
            assert body[name] == colors.parse(given_query[name])
    assert body.get("namedLogo", "") == given_query.get("logo", "")
    assert body.get("style", "") == given_query.get("style", "")
