"""The page: one file that runs only its own script and names no other host."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from chalicelib.http.messages import Request, Response
from chalicelib.pages import builder
from simulation.resources import GivenResources


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


def answer() -> Response:
    return builder.get_page(Request("GET", "/"), GivenResources())


def elements() -> Elements:
    return Elements(builder.text(has_events=True))


def directives() -> dict[str, str]:
    policy = answer().headers["Content-Security-Policy"]
    return dict(each.split(" ", 1) for each in str(policy).split("; "))


def test_it_is_html_that_a_cache_may_store_for_minutes() -> None:
    response = answer()
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/html;charset=utf-8"
    assert response.headers["Cache-Control"] == "public, max-age=300"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert response.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    features = response.headers["Permissions-Policy"].split(", ")
    assert {"camera=()", "geolocation=()", "microphone=()", "payment=()"} <= set(features)
    assert all(re.fullmatch(r"[a-z-]+=\(\)", feature) for feature in features)


@pytest.mark.parametrize("element", ["script", "style"])
def test_the_policy_runs_only_the_scripts_of_the_page(element: str) -> None:
    (inside,) = elements().texts[element]
    digest = b64encode(sha256(inside.encode()).digest()).decode()
    assert directives()[f"{element}-src"] == f"'sha256-{digest}'"


def test_the_policy_refuses_everything_else() -> None:
    allowed = directives()
    del allowed["script-src"], allowed["style-src"]
    assert allowed == {
        "default-src": "'none'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }


def test_no_attribute_has_a_style_or_a_script() -> None:
    names = {name for _, attrs in elements().tags for name in attrs}
    assert {name for name in names if name == "style" or name.startswith("on")} == set()


def test_it_names_no_host_except_shields() -> None:
    """An SVG's namespace is a name, not an address."""
    hosts = set(re.findall(r"https?://([\w.-]+)", builder.text(has_events=True)))
    assert hosts == {"img.shields.io", "www.w3.org"}


def test_ids_of_elements_are_unique_and_every_used_id_exists() -> None:
    found = elements()
    names = found.values("id")
    assert len(names) == len(set(names))
    for attribute in ("for", "aria-labelledby", "aria-describedby", "list"):
        assert set(found.values(attribute)) <= set(names)
