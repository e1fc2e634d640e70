"""HTTP answers: what no cache may keep, and how an error reads."""

from __future__ import annotations

from typing import Any

import pytest
from chalice.app import Response

from chalicelib.http import responses

BODY: dict[str, Any] = {"schemaVersion": 1, "label": "views", "message": "0"}


def test_a_badge_is_always_200_json_for_any_origin() -> None:
    response = responses.badge(BODY)
    assert response.status_code == 200
    assert response.body == BODY
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_no_cache_keeps_a_badge() -> None:
    """Each of these words is one that GitHub's image proxy or a browser goes by."""
    headers = responses.badge(BODY).headers
    words = {word.strip() for word in str(headers["Cache-Control"]).split(",")}
    assert words == {"max-age=0", "no-cache", "no-store", "must-revalidate"}
    assert headers["Pragma"] == "no-cache"
    assert headers["Expires"] == "Thu, 01 Jan 1970 00:00:00 GMT"


@pytest.mark.parametrize("status", [200, 201, 409])
def test_an_answer_is_json_with_its_status_and_stays_in_no_cache(status: int) -> None:
    response = responses.answer({"status": "ok"}, status)
    assert (response.status_code, response.body) == (status, {"status": "ok"})
    assert response.headers == {"Content-Type": "application/json", "Cache-Control": "no-store"}


def test_an_answer_is_200_unless_it_says_otherwise() -> None:
    assert responses.answer({}).status_code == 200


def test_an_error_has_a_code_for_programs_and_a_message_for_people() -> None:
    response = responses.error(503, "unavailable", "the table does not answer")
    assert response.status_code == 503
    assert response.body == {
        "error": {"code": "unavailable", "message": "the table does not answer"}
    }
    assert response.headers["Cache-Control"] == "no-store"


def test_what_is_unavailable_says_when_to_ask_again() -> None:
    response = responses.unavailable("the table does not answer")
    assert response.status_code == 503
    assert response.body == {
        "error": {"code": "unavailable", "message": "the table does not answer"}
    }
    assert response.headers["Retry-After"] == "1"


def made() -> list[Response]:
    return [responses.badge({}), responses.answer({}), responses.error(400, "x", "y")]


def test_headers_changed_on_one_response_are_those_of_no_other() -> None:
    for response in made():
        response.headers["X-Changed"] = "yes"
    assert all("X-Changed" not in response.headers for response in made())
