"""Badges have the schema of shields.io, and no other key, which older shields refuse."""

from __future__ import annotations

import pytest

from chalicelib.badges.logos import Logo
from chalicelib.badges.options import Badge
from chalicelib.badges.responses import explain
from chalicelib.http import query
from chalicelib.http.errors import BadRequestError
from chalicelib.pages.badge_routes import BadgeOptions
from chalicelib.storage.errors import StorageRefusedError, UnavailableError


def test_a_badge_of_two_texts_and_a_color_has_only_these() -> None:
    """The colour of a logo needs a logo."""
    plain = {"schemaVersion": 1, "label": "views", "message": "0", "color": "blue"}
    assert Badge("views", "0").to_json() == plain
    assert Badge("views", "0", logo_color="#ffffff", spark=(1, 2)).to_json() == plain
    error = plain | {"color": "red", "isError": True}
    assert Badge.error("views", "0").to_json() == error


def test_every_option_that_shields_io_can_draw_is_passed_on() -> None:
    options = BadgeOptions(
        query.parse(
            "id=a&label=Besuche&color=f00&labelColor=black&style=flat-square&logo=github"
            "&logoColor=white&format=comma&base=1200"
        )
    )
    assert options.badge("views", options.write(options.total(34)), "blue").to_json() == {
        "schemaVersion": 1,
        "label": "Besuche",
        "message": "1,234",
        "color": "#ff0000",
        "labelColor": "#000000",
        "style": "flat-square",
        "namedLogo": "github",
        "logoColor": "#ffffff",
    }


def test_an_own_logo_is_a_document_with_its_colour() -> None:
    own = Badge("views", "0", logo=Logo("#000000", '<path d="M0 0h1"/>', "0 0 1 1"))
    document = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"{}><path d="M0 0h1"/></svg>'
    )
    for color, fill in (("", ""), ("#ffffff", ' fill="#ffffff"')):
        body = own._replace(logo_color=color).to_json()
        assert body["logoSvg"] == document.format(fill)
        assert body.keys().isdisjoint({"namedLogo", "logoColor"})


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
