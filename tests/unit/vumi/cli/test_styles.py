"""A terminal gets colours and symbols, a pipe plain words."""

from __future__ import annotations

from io import BytesIO, TextIOWrapper
from pathlib import Path

import click
import pytest

from simulation.installation import MemoryInstallation, invoke_on
from tests.terminals import run_on_terminal
from vumi.cli import styles
from vumi.cli.program import execute
from vumi.operate.check.report import FindingKind
from vumi.storage.database import FILE, Database

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
    shown = styles.mark(kind, Stream(is_terminal=True))
    symbol = click.unstyle(shown)
    assert (len(symbol), symbol == shown) == (1, False)
    for stream in (Stream(is_terminal=False), Stream(is_terminal=True, encoding="latin-1")):
        assert styles.mark(kind, stream) == f"{kind}:"


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [({}, None), ({"NO_COLOR": ""}, None), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colours_are_refused_by_the_environment(
    environment: dict[str, str], wanted: object
) -> None:
    assert styles.wants_color(environment) is wanted


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
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, seen = run_on_terminal(*arguments, DATA=str(tmp_path))
    assert status > 0
    assert f"{RED}\x1b[1mError:\x1b[0m " in seen
    assert execute(arguments, invoke_on(MemoryInstallation())) == status
    assert "\x1b" not in capsys.readouterr().err
