"""The script of web pages as a file; `tests/browser` runs it."""

from __future__ import annotations

import gzip

from simulation.resources import GivenResources
from tests.unit.http_requests import Answer, ask


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
