"""The documents: each link leads to what it names, also in the site, which loads nothing else."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from docs.site.built import faults
from docs.site.staging import GROUP, HOME, NAMED, relink
from tests.markdown_links import anchors, links

ROOT = Path(__file__).parents[2]
FOLDERS = ("chalicelib", "vumi", "deploy", "simulation", "bench", "chaos", "examples", "tests")
PARTS_OF_CODE = {".py", ".html", ".js", ".yaml", ".yml", ".toml", ".json", ".service", ""}
NOT_OURS = {"node_modules", "__pycache__"}


def files(*patterns: str) -> list[Path]:
    found = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return [path for path in found if path.is_file() and NOT_OURS.isdisjoint(path.parts)]


DOCUMENTS = files("*.md", *(f"{name}/**/*.md" for name in ("docs", ".github", *FOLDERS)))
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


def test_each_link_of_a_document_leads_to_a_file_and_a_heading() -> None:
    read = {document: links(document.read_text(encoding="utf-8")) for document in DOCUMENTS}
    faults = [(path, link, wrong(path, link)) for path, found in read.items() for link in found]
    assert [fault for fault in faults if fault[-1]] == []
    assert len(faults) > len(DOCUMENTS) > 20


def test_each_document_that_code_names_has_the_heading() -> None:
    folders = (f"{name}/**/*" for name in (".ci", ".chalice", ".github", *FOLDERS))
    faults = []
    for path in files("Makefile", "Containerfile", "app.py", "pyproject.toml", *folders):
        if path.suffix in PARTS_OF_CODE:
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
    "link", ["no.md", "CHANGELOG.md#no", "#no", "../../README.md", "ftp://a.example/", "https:///a"]
)
def test_a_wrong_link_is_found(link: str) -> None:
    assert wrong(ROOT / "README.md", link)


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


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.html", '<script src="https://cdn.example/a.js"></script>', "loads https"),
        ("a.html", '<img srcset="//cdn.example/a.png 2x">', "loads //cdn"),
        ("a.html", '<link rel="preconnect" href="https://fonts.example/">', "loads https"),
        ("a.css", "a { background: url(//cdn.example/a.png) }", "loads //cdn"),
        ("a.html", '<img src="pictures/a.svg">', "misses pictures/a.svg"),
        ("a.js", "HERE/sources/a", "names the folder"),
    ],
)
def test_a_file_that_loads_from_elsewhere_or_names_the_machine_is_refused(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text.replace("HERE", str(tmp_path.parent)))
    [fault] = faults(tmp_path)
    assert fault.startswith(f"{tmp_path / name}: {said}")


def test_links_and_own_files_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "a.js").touch()
    text = '<a href="https://example.com">followed by hand</a><script src="a.js"></script>'
    (tmp_path / "a.html").write_text(f"{text}<pre>&lt;img src='https://a.example/a.svg'&gt;</pre>")
    assert [*faults(tmp_path)] == []
