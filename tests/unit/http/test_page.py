"""The pages with a script: each is one response, runs its own script and names no other host."""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from simulation.resources import GivenResources
from tests.unit.http_requests import Answer, ask

HOSTS = {"/": {"img.shields.io"}, "/own": {"raw.githubusercontent.com", "github.com"}}
"""The hosts to which the pages lead, but that they never ask."""
MAX_SCRIPT_BYTES = 20_480


class Elements(HTMLParser):
    """The elements of the page: the tags with their attributes, and the texts of each tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open, []).append(data)

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002  elements of interest hold no other
        self._open = ""

    def values(self, attribute: str) -> list[str]:
        return [attrs[attribute] or "" for _, attrs in self.tags if attribute in attrs]


def open_page(path: str) -> Answer:
    return ask(GivenResources(), "GET", path)


@pytest.fixture(params=HOSTS)
def path(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def answer(path: str) -> Answer:
    return open_page(path)


@pytest.fixture
def elements(answer: Answer) -> Elements:
    return Elements(answer.text)


@pytest.fixture
def directives(answer: Answer) -> dict[str, str]:
    policy = answer.headers["Content-Security-Policy"]
    return dict(each.split(" ", 1) for each in str(policy).split("; "))


def test_it_is_html_that_a_cache_may_store_for_minutes(answer: Answer) -> None:
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html;charset=utf-8"
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    features = answer.headers["Permissions-Policy"].split(", ")
    assert {"camera=()", "geolocation=()", "microphone=()", "payment=()"} <= set(features)
    assert all(re.fullmatch(r"[a-z-]+=\(\)", feature) for feature in features)
    assert answer.text.startswith("<!doctype html>")


@pytest.mark.parametrize("element", ["script", "style"])
def test_the_policy_runs_only_the_scripts_of_the_page(
    element: str, elements: Elements, directives: dict[str, str]
) -> None:
    (inside,) = elements.texts[element]
    digest = b64encode(sha256(inside.encode()).digest()).decode()
    assert directives[f"{element}-src"] == f"'sha256-{digest}'"


def test_the_policy_refuses_everything_else(directives: dict[str, str]) -> None:
    del directives["script-src"], directives["style-src"]
    assert directives == {
        "default-src": "'none'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }


def test_no_attribute_has_a_style_or_a_script(elements: Elements) -> None:
    names = {name for _, attrs in elements.tags for name in attrs}
    assert {name for name in names if name == "style" or name.startswith("on")} == set()


def test_it_names_no_other_host(path: str, answer: Answer) -> None:
    """An SVG's namespace is a name, and `example.com` is an example."""
    text = answer.text.replace("\\", "")
    hosts = set(re.findall(r"https?:/+([\w.-]+)", text)) - {"www.w3.org", "example.com"}
    assert hosts == HOSTS[path]


def test_the_scripts_of_both_pages_are_small() -> None:
    scripts = [Elements(open_page(path).text).texts["script"][0] for path in HOSTS]
    assert sum(len(gzip.compress(script.encode())) for script in scripts) <= MAX_SCRIPT_BYTES


def test_ids_of_elements_are_unique_and_every_used_id_exists(elements: Elements) -> None:
    names = elements.values("id")
    assert len(names) == len(set(names))
    for attribute in ("for", "aria-labelledby", "aria-describedby", "list"):
        assert set(elements.values(attribute)) <= set(names)
