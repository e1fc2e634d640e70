"""A terminal gets colours, symbols and a line of progress, a pipe plain words."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import click
import pytest

from tests.unit.vumi.commands import Vumi
from vumi.cli import output
from vumi.cli.progress import CLEAR_LINE, Progress
from vumi.operate.check.report import FindingKind
from vumi.storage.database import FILE, Database


def run_on_terminal(*arguments: str, **environment: str) -> tuple[int, str]:
    """Run `vumi`, and return its status and what it writes to a pseudo-terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.run(  # noqa: S603  our own program
        [sys.executable, "-m", "vumi", *arguments],
        env={**os.environ, "TERM": "xterm", **environment},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        check=False,
    )
    os.close(theirs)
    seen = os.read(ours, 10_000).decode()
    os.close(ours)
    return process.returncode, seen


RED, GREEN = "\x1b[31m", "\x1b[32m"


class Stream(TextIOWrapper):
    """A stream that may be a terminal."""

    def __init__(self, *, is_terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__(BytesIO(), encoding)
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


@pytest.mark.parametrize("kind", FindingKind)
def test_a_terminal_shows_a_coloured_symbol_and_a_pipe_the_word(kind: FindingKind) -> None:
    shown = output.mark(kind, Stream(is_terminal=True))
    symbol = click.unstyle(shown)
    assert (len(symbol), symbol == shown) == (1, False)
    for stream in (Stream(is_terminal=False), Stream(is_terminal=True, encoding="latin-1")):
        assert output.mark(kind, stream) == f"{kind}:"


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [({}, None), ({"NO_COLOR": ""}, None), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colours_are_refused_by_the_environment(
    environment: dict[str, str], wanted: object
) -> None:
    assert output.wants_color(environment) is wanted


def test_a_check_on_a_terminal_has_colours_unless_they_are_refused(tmp_path: Path) -> None:
    Database(tmp_path / FILE).close()
    data = str(tmp_path)
    tmp_path.chmod(0o700)
    status, seen = run_on_terminal("check", DATA=data)
    assert status == 0
    assert f"{GREEN}✓\x1b[0m badges: each count equals the sum of its history\r\n" in seen
    status, seen = run_on_terminal("check", DATA=data, NO_COLOR="1")
    assert "✓ badges: each count equals the sum of its history\r\n" in seen
    assert "\x1b" not in seen


@pytest.mark.parametrize("arguments", [["show", "nobody"], ["lst"]])
def test_the_first_word_of_an_error_is_red_on_a_terminal_alone(
    vumi: Vumi, arguments: list[str], tmp_path: Path
) -> None:
    status, seen = run_on_terminal(*arguments, DATA=str(tmp_path))
    assert status > 0
    assert f"{RED}\x1b[1mError:\x1b[0m " in seen
    assert vumi(*arguments) == status
    assert "\x1b" not in vumi.err


# ---- the line of progress


class Terminal(StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def after(seconds: int, stream: StringIO) -> Progress:
    """Return the progress of a command that has read two items and takes this time."""
    line, waits = Progress("reading", stream), iter([False] * seconds)
    assert list(line.count("ab")) == ["a", "b"]
    line.run(lambda _: next(waits, True))
    return line


def text(line: Progress) -> str:
    assert isinstance(line.stream, StringIO)
    return line.stream.getvalue()


def test_a_line_is_shown_from_the_second_second_on_and_is_removed() -> None:
    line = after(3, Terminal())
    drawn = [f"{CLEAR_LINE}reading ({seconds} s, 2 so far)" for seconds in (2, 3)]
    assert text(line) == "".join(drawn)
    line.hide()
    line.hide()
    assert text(line) == "".join([*drawn, CLEAR_LINE])


def test_a_short_command_shows_no_line() -> None:
    line = after(1, Terminal())
    line.hide()
    assert text(line) == ""


def test_a_pipe_gets_no_line() -> None:
    assert text(after(3, StringIO())) == ""
