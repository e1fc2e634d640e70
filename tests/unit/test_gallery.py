"""The example README with every badge: it shows every option, and its pictures are current."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from chalicelib import description
from chalicelib.api import TABLE
from chalicelib.badges.options import LOOK
from simulation.environment import ROOT
from tests.gallery import EVENT, FOLDER, WALLET, draw, read_lines
from tests.unit.png_pictures import decode

LINES = read_lines()
FILES = [line.file for line in LINES if line.file]
OPTIONS = (ROOT / "docs" / "badges.md").read_text(encoding="utf-8")
DOCUMENT: dict[str, Any] = json.loads(description.text(TABLE.routes))


def resolve(part: dict[str, Any]) -> dict[str, Any]:
    """Return the component that a part refers to."""
    while "$ref" in part:
        found = DOCUMENT
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        part = found
    return part


def options(operation: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each option of a route, with each listed value but the default, else without one."""
    for parameter in map(resolve, operation["parameters"]):
        if parameter["in"] == "query":
            schema = resolve(parameter["schema"]) | parameter["schema"]
            for value in schema.get("enum", [""]):
                if value != schema.get("default"):
                    yield parameter["name"], str(value)


def shown(path: str) -> set[tuple[str, str]]:
    """Return the options of the lines for a route, each with its value and without."""
    own = path.replace("{event_id}", EVENT).replace("{wallet_id}", WALLET)
    queries = [urlsplit(line.target).query for line in LINES if urlsplit(line.target).path == own]
    given = {option for query in queries for option in parse_qsl(query, keep_blank_values=True)}
    return given | {(name, "") for name, _ in given}


def test_every_option_of_a_picture_is_shown_and_each_of_its_values_that_are_listed() -> None:
    """The look of every badge is shown by that of views."""
    paths = [path for path in DOCUMENT["paths"] if path.endswith((".svg", ".png"))]
    assert len(paths) == 5
    looks = {option for option in shown("/api/v1/views.svg") if option[0] in LOOK}
    missing = {
        path: {*options(DOCUMENT["paths"][path]["get"])}
        - shown(path)
        - (looks if "badge" in path else set())
        for path in paths
    }
    left_out = {path: sorted(some) for path, some in missing.items() if some}
    assert left_out == {}, "add a line to examples/readme/README.md"


def test_the_document_of_options_has_each_option_of_a_picture() -> None:
    paths = [path for path in DOCUMENT["paths"] if path.endswith(".svg")]
    known = {name for path in paths for name, _ in options(DOCUMENT["paths"][path]["get"])}
    left_out = [name for name in sorted(known - {"id"}) if not re.search(f"`{name}[`=]", OPTIONS)]
    assert left_out == [], "add a row to docs/badges.md"


@pytest.fixture(scope="module")
def drawn() -> dict[str, bytes]:
    return draw(LINES)


@pytest.mark.parametrize("file", FILES)
def test_a_picture_of_the_example_readme_is_current(drawn: dict[str, bytes], file: str) -> None:
    read = decode if file.endswith(".png") else bytes
    assert read((FOLDER / file).read_bytes()) == read(drawn[file]), "run python -m tests.gallery"


def test_the_example_readme_shows_each_of_its_pictures_once() -> None:
    there = [f"pictures/{path.name}" for path in (FOLDER / "pictures").iterdir()]
    assert sorted(FILES) == sorted(there)
