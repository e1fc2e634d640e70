"""The program that makes `logos.json` from the packages of simple-icons and svgo."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chalicelib.badges import logos as included
from tests import logos
from tests.logos import LICENCES, OF_PACKAGE, WANTED

FOLDER = Path(logos.__file__).parent
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><path d="{}"/></svg>'
SVGO = """#!/bin/sh
# Writes the decimals into each path instead of shortening it.
sed -i "s/0h/0h$DECIMALS/" "$3"/*.svg
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Return a folder with packages in which every third wanted logo has a licence of its own."""
    package = tmp_path / "node_modules" / "simple-icons"
    (package / "data").mkdir(parents=True)
    (package / "icons").mkdir()
    kinds = (None, "MIT", "CC-BY-SA-4.0")
    listed = []
    for place, name in enumerate([*sorted({*WANTED.split()}), "other", "rare"]):
        kind = {"rare": "custom"}.get(name, kinds[place % len(kinds)])
        length = logos.LONG_PATH if name == "ada" else 0
        (package / "icons" / f"{name}.svg").write_text(SVG.format("M0 0h" + "1" * length))
        listed.append(
            {"slug": name, "hex": "ABCDEF"} | ({"license": {"type": kind}} if kind else {})
        )
    (package / "data" / "simple-icons.json").write_text(json.dumps(listed))
    svgo = tmp_path / "node_modules" / ".bin" / "svgo"
    svgo.parent.mkdir()
    svgo.write_text(SVGO)
    svgo.chmod(0o755)
    return tmp_path


def test_a_wanted_logo_is_drawn_if_its_licence_allows_it(packages: Path) -> None:
    built = logos.build(packages)
    drawn, licences = built["logos"], built["licences"]
    refused = {name for name in WANTED.split() if licences.get(name) == "CC-BY-SA-4.0"}
    assert set(drawn) == {*WANTED.split()} - refused
    assert 0 < len(refused) < len(drawn)
    assert licences["rare"] == "custom"
    assert {licences[name] for name in drawn if name in licences} == {"MIT"}


def test_the_included_logos_are_the_wanted_ones() -> None:
    """`make logos` needs npm, so this compares names and licences alone."""
    refused = {name for name in WANTED.split() if included.find_refused_licence(name)}
    assert set(included.names()) == {*WANTED.split()} - refused
    assert not {included.licences()[name] for name in refused} & LICENCES
    assert OF_PACKAGE not in included.licences().values()
