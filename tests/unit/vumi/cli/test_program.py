"""The program: its list of commands, their help, errors and exit statuses."""

from __future__ import annotations

import re
import time

import click
import pytest

from chalicelib import VERSION
from chalicelib.storage.errors import UnavailableError
from simulation.installation import MemoryInstallation, invoke_on
from simulation.memory_table import MemoryTable
from simulation.tables import FaultyTable, raising
from vumi.cli.options import Invocation
from vumi.cli.program import COMMANDS, GROUPS, execute, main, vumi


def all_commands() -> list[tuple[str, click.Command]]:
    """Return every command and the commands in it, by their full names."""
    context = click.Context(vumi)
    found = []
    for name in COMMANDS:
        command = vumi.get_command(context, name)
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
def test_wrong_usage_has_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(arguments, invoke_on(MemoryInstallation())) == 2
    assert capsys.readouterr().err.startswith("Usage: vumi ")


@pytest.mark.parametrize(
    ("arguments", "meant"), [(["lst"], "'list'"), (["serve", "--prot", "1"], "'--port'")]
)
def test_a_mistyped_command_or_option_gets_a_suggestion(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(arguments, invoke_on(MemoryInstallation())) == 2
    err = capsys.readouterr().err
    assert "Did you mean" in err
    assert meant in err.splitlines()[-1]


def test_an_option_of_serve_beats_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    invocation = Invocation({"PORT": "wrong too"}, time.time)
    assert execute(["serve", "--port", "wrong"], invocation) == 1
    assert "PORT must be a whole number from 0 to 65535, not 'wrong'" in capsys.readouterr().err


def test_a_quiet_token_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    installation = MemoryInstallation()
    assert execute(["token", "create", "--name", "a", "--quiet"], invoke_on(installation)) == 0
    assert re.fullmatch("[A-Za-z0-9_-]{43}\n", capsys.readouterr().out)


def test_a_failure_of_storage_is_one_line_with_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    class Failing(FaultyTable, MemoryTable):
        """A table that fails."""

    table = Failing(MemoryTable(), before_write=raising(UnavailableError("throttled")))
    installation = MemoryInstallation(table)
    assert execute(["token", "create", "--name", "a"], invoke_on(installation)) == 1
    assert capsys.readouterr().err == "Error: throttled\n"


def test_an_interrupted_command_has_the_status_of_the_signal() -> None:
    class Interrupted(MemoryInstallation):
        """The operator presses Ctrl-C."""

        @property
        def table(self) -> MemoryTable:
            raise KeyboardInterrupt

    assert execute(["token", "list"], invoke_on(Interrupted())) == 130


@pytest.mark.parametrize("shell", ["fish", "zsh", "bash"])
def test_a_shell_completes_commands_and_options(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks the program by environment variables, as its script does."""
    assert main(["completion", shell]) == 0
    assert "_VUMI_COMPLETE" in capsys.readouterr().out
    monkeypatch.setenv("COMP_WORDS", "vumi redr")
    monkeypatch.setenv("COMP_CWORD", "redr" if shell == "fish" else "1")
    monkeypatch.setenv("_VUMI_COMPLETE", f"{shell}_complete")
    with pytest.raises(SystemExit) as ended:
        main([])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert ("redrive-events" in out, "import" in out) == (True, False)
