"""The pages with a script: each is one response, runs its own script and names no other host."""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from hashlib import sha256

import pytest

from simulation.resources import GivenResources
from simulation.storage import MemoryTable
from tests.unit.html_pages import Page
from tests.unit.http_requests import Answer, ask

OF_A_BADGE = "/s?id=a"
HOSTS = {
    "/": {"img.shields.io"},
    "/own": {"raw.githubusercontent.com", "github.com"},
    OF_A_BADGE: {"localhost", "ogp.me"},
}
"""The hosts to which the pages lead, but that they never ask."""
MAX_SCRIPT_BYTES = 20_480


def open_page(path: str) -> Answer:
    return ask(GivenResources(MemoryTable()), "GET", path)


@pytest.fixture(params=HOSTS)
def path(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def answer(path: str) -> Answer:
    return open_page(path)


@pytest.fixture
def elements(answer: Answer) -> Page:
    return Page(answer.text)


def test_it_is_html_that_a_cache_may_store_for_minutes_unless_it_has_a_count(
    path: str, answer: Answer
) -> None:
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html;charset=utf-8"
    stored = "no-store" if path == OF_A_BADGE else "public, max-age=300"
    assert answer.headers["Cache-Control"] == stored
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    features = answer.headers["Permissions-Policy"].split(", ")
    assert {"camera=()", "geolocation=()", "microphone=()", "payment=()"} <= set(features)
    assert all(re.fullmatch(r"[a-z-]+=\(\)", feature) for feature in features)
    assert answer.text.startswith("<!doctype html>")


def test_the_policy_allows_only_the_scripts_and_styles_of_the_page(
    answer: Answer, elements: Page
) -> None:
    policy = answer.headers["Content-Security-Policy"]
    inside = {name: "".join(elements.texts[name]).encode() for name in ("script", "style")}
    digests = {name: b64encode(sha256(text).digest()).decode() for name, text in inside.items()}
    assert dict(each.split(" ", 1) for each in policy.split("; ")) == {
        "default-src": "'none'",
        **{f"{name}-src": f"'sha256-{digest}'" for name, digest in digests.items()},
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }


def test_no_attribute_has_a_style_or_a_script(elements: Page) -> None:
    names = {name for _, attrs in elements.elements for name in attrs}
    assert {name for name in names if name == "style" or name.startswith("on")} == set()


def test_it_names_no_other_host(path: str, answer: Answer) -> None:
    """An SVG's namespace is a name, and `example.com` is an example."""
    text = answer.text.replace("\\", "")
    hosts = set(re.findall(r"https?:/+([\w.-]+)", text)) - {"www.w3.org", "example.com"}
    assert hosts == HOSTS[path]


def test_the_scripts_of_all_pages_are_small() -> None:
    scripts = [Page(open_page(path).text).texts["script"][0] for path in HOSTS]
    assert sum(len(gzip.compress(script.encode())) for script in scripts) <= MAX_SCRIPT_BYTES


def test_ids_of_elements_are_unique_and_every_used_id_exists(elements: Page) -> None:
    names = elements.values("id")
    assert len(names) == len(set(names))
    for attribute in ("for", "aria-labelledby", "aria-describedby", "list"):
        assert set(elements.values(attribute)) <= set(names)
