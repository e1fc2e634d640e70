"""The check of the built site: what a page loads from elsewhere, and folders of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.site.built import faults


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://cdn.example/a.js"></script>'),
        ("a.html", '<img srcset="//cdn.example/a.png 2x">'),
        ("a.html", '<link rel="preconnect stylesheet" href="https://fonts.example/a.css">'),
        ("a.css", "@import 'https://fonts.example/a.css';"),
        ("a.css", "a { background: url(//cdn.example/a.png) }"),
    ],
)
def test_a_file_that_loads_from_another_host_is_refused(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    [fault] = faults(tmp_path)
    assert fault.startswith(f"{tmp_path / name}: loads ")


def test_a_page_that_misses_a_picture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<img src="pictures/a.svg">')
    [fault] = faults(tmp_path)
    assert fault.endswith("misses pictures/a.svg")


def test_a_file_that_names_the_folder_of_the_build_is_refused(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "searchindex.js").write_text(f'{{"file": "{tmp_path}/sources/a"}}')
    assert len([*faults(tmp_path / "site")]) == 1


@pytest.mark.parametrize(
    "text",
    [
        '<a href="https://example.com">a link, which is followed by hand</a>',
        '<script src="_static/a.js"></script><link rel="stylesheet" href="a.css">',
        '<pre>&lt;img src="https://views.example.com/a.svg"&gt;</pre>',
    ],
)
def test_links_and_own_files_are_allowed(tmp_path: Path, text: str) -> None:
    (tmp_path / "_static").mkdir()
    for name in ("_static/a.js", "a.css"):
        (tmp_path / name).touch()
    (tmp_path / "a.html").write_text(text)
    assert [*faults(tmp_path)] == []
