"""The token of the first start: on a terminal, or in a file of its owner."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from vumi.first_token import FILE, show_token

TOKEN = "the-first-token"  # noqa: S105  an example


class Terminal(io.StringIO):
    """A stream that a person reads."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_the_token_and_no_file_has_it(tmp_path: Path) -> None:
    terminal = Terminal()
    show_token(TOKEN, terminal, tmp_path)
    assert terminal.getvalue() == (f"Token for events and wallets, shown this once: {TOKEN}\n")
    assert list(tmp_path.iterdir()) == []


def test_any_other_stream_names_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    stream = io.StringIO()
    show_token(TOKEN, stream, tmp_path)
    path = tmp_path / FILE
    assert stream.getvalue() == (
        f"Token for events and wallets: in {path}; store it elsewhere, and remove the file\n"
    )
    assert path.read_text() == f"{TOKEN}\n"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("planted", ["link", "file"])
def test_a_planted_file_does_not_get_the_token(tmp_path: Path, planted: str) -> None:
    other = tmp_path / "other"
    other.touch(mode=0o666)
    if planted == "link":
        (tmp_path / FILE).symlink_to(other)
    else:
        (tmp_path / FILE).hardlink_to(other)
    show_token(TOKEN, io.StringIO(), tmp_path)
    assert other.read_text() == ""
    assert (tmp_path / FILE).read_text() == f"{TOKEN}\n"
