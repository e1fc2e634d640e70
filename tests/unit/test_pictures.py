"""The pictures of the README: they are current."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pictures import FOLDER, pictures

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.parametrize("name", pictures())
def test_a_picture_is_current(name: str) -> None:
    drawn = pictures()[name] + "\n"
    assert (FOLDER / name).read_text(encoding="utf-8") == drawn, "run python -m tests.pictures"


def test_the_readme_shows_exactly_these_pictures() -> None:
    shown = re.findall(r"docs/pictures/([\w.-]+)", README.read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(pictures()) == sorted(file.name for file in FOLDER.iterdir())
