"""The documents: each link leads to what it names, also in the site."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from docs.site.staging import GROUP, HOME, NAMED, relink
from tests.markdown_links import anchors, links, to_anchor

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "chalicelib",
    "vumi",
    "deploy",
    "simulation",
    "bench",
    "chaos",
    "examples",
    "tests",
)
PARTS_OF_CODE = {".py", ".html", ".js", ".yaml", ".yml", ".toml", ".json", ".service", ""}
NOT_OURS = {"node_modules", "__pycache__"}
DOCUMENTS = [
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        ".github/**/*.md",
        *(f"{name}/**/*.md" for name in FOLDERS),
    )
    for path in sorted(ROOT.glob(pattern))
    if NOT_OURS.isdisjoint(path.parts)
]
NAME = re.compile(r"\b((?:docs/(?:decisions/)?[a-z-]+|README|CONTRIBUTING)\.md)(?:#([\w-]+))?")
"""A document that code names, in a message or a comment."""
WRAPPED = re.compile(r'"\n\s*f?"')
"""The end of a line in a text of several lines of code."""
SCHEMES = {"https", "http", "mailto"}
GROUPS = ["Use", "Run", "Understand", "Look up", "Internals"]


def wrong(path: Path, link: str) -> str:
    """Return what is wrong with a link of a document, or an empty text."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        is_url = parts.scheme == "mailto" or re.fullmatch(r"[\w.:\[\]-]+", parts.netloc)
        return "" if parts.scheme in SCHEMES and is_url else "no URL"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists() or not target.is_relative_to(ROOT):
        return "no such file"
    if target.is_dir():
        target /= "README.md"
    if parts.fragment and target.suffix == ".md" and parts.fragment not in anchors(target):
        return "no such heading"
    return ""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_link_of_a_document_leads_to_a_file_and_a_heading(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert {link: fault for link in links(text) if (fault := wrong(document, link))} == {}


def code() -> Iterator[Path]:
    """Yield the files that may name a document."""
    yield from (ROOT / name for name in ("Makefile", "Containerfile", "app.py", "pyproject.toml"))
    yield from (
        path for name in (".ci", ".chalice", ".github") for path in (ROOT / name).rglob("*")
    )
    for folder in FOLDERS:
        yield from (ROOT / folder).rglob("*")


def test_each_document_that_code_names_has_the_heading() -> None:
    faults = []
    for path in code():
        if (
            path.suffix not in PARTS_OF_CODE
            or not path.is_file()
            or not NOT_OURS.isdisjoint(path.parts)
        ):
            continue
        text = WRAPPED.sub("", path.read_text(encoding="utf-8", errors="replace"))
        for name, anchor in NAME.findall(text):
            if wrong(ROOT / "README.md", f"{name}#{anchor}" if anchor else name):
                faults.append(f"{path.relative_to(ROOT)}: {name}#{anchor}")
    assert faults == []


def test_each_document_is_in_one_group_of_the_home() -> None:
    groups = GROUP.findall((ROOT / HOME).read_text(encoding="utf-8"))
    assert [title for title, _ in groups] == GROUPS
    listed = Counter(page for _, text in groups for _, page in NAMED.findall(text))
    documents = {path.name for path in (ROOT / "docs").glob("*.md")} - {Path(HOME).name}
    assert {page for page in listed if "/" not in page} == documents
    assert {*listed.values()} == {1}


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("One machine", "one-machine"),
        ("`GET /api/v1/views.svg`", "get-apiv1viewssvg"),
        ("$ of the ways in, to a function", "-of-the-ways-in-to-a-function"),
        ("Don't: what's \u00fcber_all?", "dont-whats-\u00fcber_all"),
    ],
)
def test_an_anchor_is_that_of_github(heading: str, anchor: str) -> None:
    assert to_anchor(heading) == anchor


@pytest.mark.parametrize(
    "link", ["no.md", "CHANGELOG.md#no", "#no", "../../README.md", "ftp://a.example/", "https:///a"]
)
def test_a_wrong_link_is_found(link: str) -> None:
    assert wrong(ROOT / "README.md", link)


def test_links_are_found_in_markdown_and_html_but_not_in_code() -> None:
    text = (
        '[a](b.md) ![c](d.svg) `[e](f.md)` <img src="g.svg">\n\n'
        '<picture><source srcset="h.svg 2x"></picture>\n'
    )
    assert [*links(text)] == ["b.md", "d.svg", "g.svg", "h.svg"]


@pytest.mark.parametrize(
    ("path", "text", "staged"),
    [
        ("docs/badges.md", "[a](../CONTRIBUTING.md#style)", "[a](CONTRIBUTING.md#style)"),
        ("CONTRIBUTING.md", "[a](docs/badges.md)", "[a](badges.md)"),
        ("docs/badges.md", "[a](../examples/Caddyfile)", "[a](examples/Caddyfile.md)"),
        ("docs/decisions/README.md", "[a](../../examples)", "[a](../examples/README.md)"),
        ("README.md", '<img src="docs/pictures/flat.svg">', '<img src="pictures/flat.svg">'),
        ("docs/badges.md", "[a](https://a.example/b.md)", "[a](https://a.example/b.md)"),
        ("docs/badges.md", "[a](README.md)", "[a](index.md)"),
    ],
)
def test_a_link_leads_to_the_place_in_the_site(path: str, text: str, staged: str) -> None:
    assert relink(path, text)[0] == staged
