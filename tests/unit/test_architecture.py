"""docs/architecture.md: it is short, and the code has what it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.readme import fences
from vumi.operate.check.rows import KINDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ARCHITECTURE = (DOCS / "architecture.md").read_text(encoding="utf-8")
NAMED_PATH = re.compile(
    r"`((?:chalicelib|vumi|deploy|simulation|tests|bench|chaos)/[\w/.]*|app\.py)`"
)
NAMED_OBJECT = re.compile(r"`(\w+)` in `([\w/]+\.py)`")
PACKAGE_LINE = re.compile(r"^( *)(\S.*?)(?: {2,}[A-Za-z].*)?$")


@pytest.mark.parametrize("document", sorted(DOCS.rglob("*.md")), ids=lambda path: path.name)
def test_each_path_that_a_document_names_exists(document: Path) -> None:
    named = NAMED_PATH.findall(document.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_each_function_of_the_way_of_a_view_is_in_its_module() -> None:
    named = NAMED_OBJECT.findall(ARCHITECTURE)
    assert len(named) > 15
    for name, module in named:
        defined = rf"^(?:class|(?:async )?def) {name}\b"
        assert re.search(defined, (ROOT / module).read_text(), re.MULTILINE), (name, module)


def test_each_function_of_the_drawing_is_a_lambda_function() -> None:
    drawing = (DOCS / "pictures" / "way-of-a-view.svg").read_text(encoding="utf-8")
    named = re.findall(r'class="name"[^>]*>(\w+)<', drawing)
    assert named == ["get_views", "put_views", "fold_views"]
    policies = {policy.stem for policy in (ROOT / ".chalice" / "policies").iterdir()}
    assert set(named) <= policies


def map_of_packages() -> dict[str, set[str]]:
    """Return the names in the map of packages, by their folder; "" is the top."""
    blocks = [fence.content for fence in fences(ARCHITECTURE)]
    [block] = [text for text in blocks if "app.py  " in text]
    found: dict[str, set[str]] = {"": set()}
    folder = ""
    for line in block.splitlines():
        names = re.findall(r"(?<!\S)\.?[a-z_]+(?:/|\.py)(?=\s|$)", line[:60])
        if not line.startswith(" ") and names:
            folder = names[0]
            found[""].add(folder)
            found[folder] = set()
        elif re.match(r"  \S", line):
            found[folder].update(names)
    return found


def test_the_map_has_each_package_and_no_other() -> None:
    found = map_of_packages()
    for folder in ("chalicelib/", "vumi/"):
        packages = {f"{path.parent.name}/" for path in (ROOT / folder).glob("*/__init__.py")}
        assert packages == {name for name in found[folder] if name.endswith("/")}
    for folder, names in found.items():
        assert [name for name in names if not (ROOT / folder / name).exists()] == []


def test_the_table_has_each_kind_of_item() -> None:
    """`vumi check` knows the beginnings of the keys of all items."""
    section = ARCHITECTURE.partition("## The table\n")[2].partition("\n## ")[0]
    keys = re.findall(r"^\| [^|]+\| `([^`<]+)[^`]*`[^|]*\| `([^`<]+)[^`]*`", section, re.MULTILINE)
    documented = {(partition.rstrip("#"), sort.rstrip("#")) for partition, sort in keys}
    assert documented == {(pk.rstrip("#"), sk.rstrip("#")) for pk, sk, _, _ in KINDS}
