"""The builder: its script, its pictures, and the logos that it offers."""

from __future__ import annotations

import gzip
import re

from chalicelib.badges.logos import names
from chalicelib.pages import builder
from simulation.resources import GivenResources
from tests.unit.http_requests import ask


def test_the_script_is_small() -> None:
    (inside,) = re.findall("<script>(.*?)</script>", builder.text(has_events=True), re.DOTALL)
    assert len(gzip.compress(inside.encode())) <= 10 * 1_024


def test_every_picture_is_drawn_and_countdowns_are_there_only_with_events() -> None:
    for has_events in (True, False):
        text = builder.text(has_events=has_events)
        assert "example:" not in text
        assert ('for="event"' in text) is has_events


def test_the_logos_are_those_that_a_badge_draws() -> None:
    answer = ask(GivenResources(), "GET", "/logos.json")
    assert list(answer.body) == names()
    assert all(re.fullmatch(r"[Mm][-\w., ]+", path) for path in answer.body.values())
    assert answer.headers["Cache-Control"] == "public, max-age=86400"
