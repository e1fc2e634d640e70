"""The responses in JSON: their bytes and status. No cache stores them."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from chalicelib.badges.options import PIXEL, Badge
from chalicelib.badges.responses import badge_json, badge_svg
from chalicelib.http import responses
from chalicelib.http.messages import Response

BADGE = Badge("views", "0")


def badges() -> list[Response]:
    return [badge_json(BADGE), badge_svg(BADGE)]


def test_a_badge_that_nobody_shall_see_is_one_transparent_pixel() -> None:
    response = badge_svg(BADGE._replace(style=PIXEL))
    assert response.headers == badge_svg(BADGE).headers
    drawn = ET.fromstring(response.body)  # noqa: S314  our own
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    assert (dict(drawn.attrib), [*drawn]) == ({"width": "1", "height": "1"}, [])


def test_an_image_that_is_opened_as_a_page_runs_no_script_and_loads_nothing() -> None:
    policy = badge_svg(BADGE).headers["Content-Security-Policy"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    assert "Content-Security-Policy" not in badge_json(BADGE).headers


def test_no_cache_stores_a_badge() -> None:
    """GitHub's image proxy and browsers each obey some of these words."""
    for response in badges():
        headers = response.headers
        words = {word.strip() for word in headers["Cache-Control"].split(",")}
        assert words == {"max-age=0", "no-cache", "no-store", "must-revalidate"}
        assert headers["Pragma"] == "no-cache"
        assert headers["Expires"] == "Thu, 01 Jan 1970 00:00:00 GMT"


@pytest.mark.parametrize("status", [200, 201])
def test_json_has_a_status_and_is_not_cached(status: int) -> None:
    headers = {
        "Content-Type": "application/json",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    response = responses.json({"status": "\ud800ü"}, status)
    assert response == Response(status, headers, b'{"status":"\\ud800\\u00fc"}')


def test_an_error_has_a_code_for_programs_and_a_message_for_people() -> None:
    error = {"code": "wallet_exists", "message": "the user has a wallet", "id": "w"}
    response = responses.error(409, "wallet_exists", "the user has a wallet", {"id": "w"})
    assert (response.status, json.loads(response.body)) == (409, {"error": error})
    assert response.headers["Cache-Control"] == "no-store"
