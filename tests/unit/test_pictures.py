"""The pictures of the README and the docs: they are current."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pictures import FOLDER, pictures

ROOT = Path(__file__).parents[2]
DRAWN_BY_HAND = {"way-of-a-view.svg"}


@pytest.mark.parametrize("name", pictures())
def test_a_picture_is_current(name: str) -> None:
    drawn = pictures()[name] + "\n"
    assert (FOLDER / name).read_text(encoding="utf-8") == drawn, "run python -m tests.pictures"


def test_the_readme_and_the_docs_show_exactly_these_pictures() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    texts = [document.read_text(encoding="utf-8") for document in documents]
    shown = {name for text in texts for name in re.findall(r"pictures/([\w.-]+\.svg)", text)}
    assert shown == {*pictures(), *DRAWN_BY_HAND} == {file.name for file in FOLDER.iterdir()}
