"""The program: its list of commands, their help, errors and exit statuses."""

from __future__ import annotations

import re
import time

import click
import pytest

from chalicelib import VERSION
from chalicelib.storage.errors import UnavailableError
from simulation.tables import FaultyTable, raising
from tests.unit.vumi.commands import Vumi
from vumi.cli.options import Invocation
from vumi.cli.program import COMMANDS, GROUPS, main
from vumi.cli.program import vumi as program


def all_commands() -> list[tuple[str, click.Command]]:
    """Return every command and the commands in it, by their full names."""
    context = click.Context(program)
    found = []
    for name in COMMANDS:
        command = program.get_command(context, name)
        assert command is not None
        found.append((name, command))
        if isinstance(command, click.Group):
            found += [(f"{name} {inner}", one) for inner, one in command.commands.items()]
    return found


@pytest.mark.parametrize(("name", "command"), all_commands(), ids=lambda one: str(one)[:20])
def test_the_help_of_every_command_has_its_purpose_and_an_example(
    name: str, command: click.Command
) -> None:
    assert command.name == name.rsplit(maxsplit=1)[-1]
    assert (command.help or "").rstrip(".").strip()
    assert "Examples:" in (command.epilog or "")
    assert f"vumi {name}" in (command.epilog or "")


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


@pytest.mark.parametrize(
    "arguments", [["count"], ["fold"], ["fold", "a", "--all"], ["redrive", "now"], ["import"]]
)
def test_wrong_usage_has_status_2(vumi: Vumi, arguments: list[str]) -> None:
    assert vumi(*arguments) == 2
    assert vumi.err.startswith("Usage: vumi ")


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
