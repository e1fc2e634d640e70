"""The program: its commands, their help, lines of JSON, errors, colours and progress."""

from __future__ import annotations

import re
import time
from io import StringIO
from pathlib import Path

import click
import pytest

from chalicelib import VERSION
from chalicelib.storage.errors import UnavailableError
from simulation.storage import FaultyTable, raising
from simulation.views import put_summary
from tests.terminals import Terminal, run_on_terminal
from tests.unit.vumi.commands import Vumi
from vumi.cli.options import Invocation
from vumi.cli.output import CLEAR_LINE, Progress
from vumi.cli.program import COMMANDS, GROUPS, main
from vumi.storage.database import FILE, Database
from vumi.tokens import FIRST_FILE


def test_the_program_tells_its_commands_and_its_version(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name in COMMANDS:
        assert f"\n  {name} " in out
    for group in GROUPS:
        assert f"\n{group}:\n" in out
    assert "..." not in out.partition("Serve:")[2]
    assert "Exit statuses: 0 done, 1 failed, 2 wrong usage, 3 errors found" in out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"vumi {VERSION}\n"
    assert main([]) == 2
    assert "Usage: vumi [OPTIONS] COMMAND [ARGS]..." in capsys.readouterr().err


HOUR = "2026-03-13T00"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["count"], "No such command 'count'"),
        (["fold"], "give --all or the ids of badges"),
        (["fold", "a", "--all"], "give --all or the ids of badges"),
        (["redrive", "now"], "unexpected extra argument"),
        (["import"], "give a FILE"),
        (["backup"], "Missing argument 'FOLDER'"),
        (["backup", "--keep", "7"], "Missing argument 'FOLDER'"),
        (["backup", "--keep", "0", "x"], "'--keep': 0 is not in the range"),
        (["restore"], "Missing argument 'BACKUP'"),
        (["check", "--table", "x"], "--table needs --stack"),
        (["list", "--limit", "0"], "'--limit': 0 is not in the range"),
        (["list", "--limit", "100001"], "'--limit': 100001 is not in the range"),
        (["list", "--sort", "name"], "'name' is not one of"),
        *((["show", one], "Invalid value for 'ID'") for one in ("", "x" * 201, "a\nb")),
        (["set", "a", "--base", "-1"], "'--base': -1 is not in the range"),
        (["claim", "a", "--digest", "mine"], "give 64 hex digits in lower case"),
        (["remove-views", "a", "--from", HOUR, "--to", "12"], "give a whole hour in UTC like 2026"),
        (["ban", "", "--reason", "x"], "Invalid value for 'PATTERN'"),
        (["ban", "a", "--reason", "x" * 201], "Invalid value for '--reason'"),
        (["statement", "x", "--since", "1"], "give 2026-11-22 or 2026-11-22T17:15:00Z, not '1'"),
    ],
)
def test_wrong_usage_has_status_2_and_changes_nothing(
    vumi: Vumi, arguments: list[str], says: str
) -> None:
    before = dict(vumi.memory.items)
    assert vumi(*arguments) == 2
    assert vumi.err.startswith("Usage: vumi ")
    assert says in " ".join(vumi.err.split())
    assert vumi.memory.items == before


@pytest.mark.parametrize(
    ("arguments", "meant"), [(["lst"], "'list'"), (["serve", "--prot", "1"], "'--port'")]
)
def test_a_mistyped_command_or_option_gets_a_suggestion(
    vumi: Vumi, arguments: list[str], meant: str
) -> None:
    assert vumi(*arguments) == 2
    assert "Did you mean" in vumi.err
    assert meant in vumi.err.splitlines()[-1]


def test_an_option_of_serve_beats_the_environment(vumi: Vumi) -> None:
    vumi.invocation = Invocation({"PORT": "wrong too"}, time.time)
    assert vumi("serve", "--port", "wrong") == 1
    assert "PORT must be a whole number from 0 to 65535, not 'wrong'" in vumi.err


def test_a_quiet_token_is_printed_alone(vumi: Vumi) -> None:
    assert vumi("token", "create", "--name", "a", "--quiet") == 0
    assert re.fullmatch("[A-Za-z0-9_-]{43}\n", vumi.out)


@pytest.mark.parametrize(
    ("failure", "status", "says"),
    [(UnavailableError("throttled"), 1, "Error: throttled\n"), (KeyboardInterrupt(), 130, "\n")],
)
def test_a_failure_of_storage_is_one_line_and_an_interruption_has_the_status_of_its_signal(
    vumi: Vumi, failure: BaseException, status: int, says: str
) -> None:
    vumi.installation.faulty = FaultyTable(vumi.memory, before_write=raising(failure))
    assert vumi("token", "create", "--name", "a") == status
    assert vumi.err == says


@pytest.mark.parametrize("shell", ["fish", "zsh", "bash"])
def test_a_shell_completes_commands_and_options(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks the program by environment variables, as its script does."""
    monkeypatch.setenv("COMP_WORDS", "vumi redr")
    monkeypatch.setenv("COMP_CWORD", "redr" if shell == "fish" else "1")
    monkeypatch.setenv("_VUMI_COMPLETE", f"{shell}_complete")
    with pytest.raises(SystemExit) as ended:
        main([])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert ("redrive-events" in out, "import" in out) == (True, False)


RED = "\x1b[31m"


@pytest.mark.parametrize(
    ("environment", "marks", "has_colours"),
    [
        ({"NO_COLOR": ""}, {"✓", "!", "✗"}, True),
        ({"NO_COLOR": "1"}, {"✓", "!", "✗"}, False),
        ({"TERM": "dumb"}, {"✓", "!", "✗"}, False),
        ({"PYTHONIOENCODING": "latin-1"}, {"ok:", "note:", "wrong:"}, True),
    ],
)
def test_a_check_on_a_terminal_has_symbols_and_colours_unless_they_are_refused(
    tmp_path: Path, environment: dict[str, str], marks: set[str], *, has_colours: bool
) -> None:
    Database(tmp_path / FILE).close()
    (tmp_path / FIRST_FILE).touch()
    tmp_path.chmod(0o777)
    status, seen = run_on_terminal("check", **{"DATA": str(tmp_path), **environment})
    assert status == 3
    assert marks <= {line.split()[0] for line in click.unstyle(seen).splitlines()}
    assert ("\x1b" in seen) is has_colours


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

DRAWN = [f"{CLEAR_LINE}reading ({seconds} s, 2 so far)" for seconds in (2, 3)]


@pytest.mark.parametrize(
    ("seconds", "stream", "shown"),
    [(3, Terminal(), [*DRAWN, CLEAR_LINE]), (1, Terminal(), []), (3, StringIO(), [])],
    ids=["long", "short", "pipe"],
)
def test_a_terminal_shows_a_line_from_the_second_second_on_and_it_is_removed(
    seconds: int, stream: StringIO, shown: list[str]
) -> None:
    line, waits = Progress("reading", stream), iter([False] * seconds)
    assert list(line.count("ab")) == ["a", "b"]
    line.run(lambda _: next(waits, True))
    assert stream.getvalue() == "".join(shown[:2])
    line.hide()
    line.hide()
    assert stream.getvalue() == "".join(shown)


NEW = "?"
"""Stands for a new secret."""


@pytest.fixture(autouse=True)
def _badge(vumi: Vumi) -> None:
    put_summary(vumi.memory, "a", base=10, count=5, version=1, created=1)


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("claim a", [{"id": "a", "secret": NEW}]),
        (f"claim a --digest {'0' * 64}", [{"id": "a", "secret": None}]),
        ("token create --name ci", [{"name": "ci", "token": NEW}]),
        ("fold a", [{"badges": 1, "views": 0, "not_folded": 0}]),
        ("redrive", [{"sent": 0, "too_old": 0, "malformed": 0}]),
        ("redrive-events x", [{"id": "x", "outcome": "unknown", "error": ""}]),
    ],
)
def test_a_result_is_read_by_a_program(
    vumi: Vumi, command: str, lines: list[dict[str, object]]
) -> None:
    found = vumi.json(*command.split())
    secret = {name for line in found for name, value in line.items() if len(str(value)) in {32, 43}}
    assert [line | dict.fromkeys(secret & line.keys(), NEW) for line in found] == lines


def test_an_import_is_read_by_a_program(vumi: Vumi, tmp_path: Path) -> None:
    counts, export = tmp_path / "counts.csv", str(tmp_path / "export.jsonl")
    counts.write_text("a,3\nb,4\n")
    assert vumi.json("import", str(counts), "--dry-run") == [
        {"id": "a", "outcome": "kept", "before": 10, "count": 3},
        {"imported": 1, "unchanged": 0, "replaced": 0, "kept": 1},
    ]
    assert vumi("export", export) == 0
    put_summary(vumi.memory, "a", count=1, version=1, created=9)
    assert vumi.json("import", export) == [
        {"kind": "badge", "name": "a", "kept": "it is here with other content"},
        {"kind": "badge", "kept": 1},
    ]


def test_a_token_is_revoked_for_a_program(vumi: Vumi) -> None:
    vumi.json("token", "create", "--name", "ci")
    [revoked] = vumi.json("token", "revoke", "ci")
    assert revoked["name"] == "ci"
