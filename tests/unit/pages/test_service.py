"""The builder and the logos that it offers, and the script of web pages as a file."""

from __future__ import annotations

import gzip
import re

from chalicelib.badges.logos import paths
from chalicelib.pages import service
from simulation.resources import GivenResources
from tests.unit.http_requests import Answer, ask


def test_the_script_of_the_builder_is_small() -> None:
    (inside,) = re.findall("<script>(.*?)</script>", service.text(has_events=True), re.DOTALL)
    assert len(gzip.compress(inside.encode())) <= 10 * 1_024


def test_every_picture_is_drawn_and_countdowns_are_there_only_with_events() -> None:
    for has_events in (True, False):
        text = service.text(has_events=has_events)
        assert "example:" not in text
        assert ('for="event"' in text) is has_events


def test_the_logos_are_those_that_a_badge_draws() -> None:
    answer = ask(GivenResources(), "GET", "/logos.json")
    assert answer.body == paths()
    assert all(re.fullmatch(r"[Mm][-\w., ]+", path) for path in answer.body.values())
    assert answer.headers["Cache-Control"] == "public, max-age=86400"


# ---- the script of web pages, which `tests/browser` runs


def get(**headers: str) -> Answer:
    return ask(GivenResources(), "GET", "/count.js?v=1", **headers)


def test_the_script_is_small_and_cached_for_an_hour() -> None:
    answer = get()
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/javascript;charset=utf-8"
    assert answer.headers["Cache-Control"] == "public, max-age=3600"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert len(gzip.compress(answer.response.body)) <= 2_048
    assert "\n// " not in answer.text


def test_a_browser_that_has_the_script_gets_no_body() -> None:
    tag = get().headers["ETag"]
    again = get(if_none_match=f'"other", {tag}')
    assert (again.status, again.text, again.headers["ETag"]) == (304, "", tag)
    assert get(if_none_match='W/"other"').status == 200
