"""The check of the built site: what a page loads from elsewhere, and folders of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.site.built import faults


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
