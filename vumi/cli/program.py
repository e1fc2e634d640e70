"""The program `vumi`: its commands, its errors and its exit statuses.

A command is imported when it is called, so that a server does not import the others.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module

import click

from chalicelib import telemetry
from chalicelib.http.errors import ClientError
from chalicelib.settings import SettingsError
from chalicelib.storage.errors import StorageError
from chalicelib.units import Seconds
from chalicelib.version import VERSION
from vumi.cli.options import Invocation
from vumi.errors import ReportedError
from vumi.given_settings import SETTINGS
from vumi.storage.private_files import UMASK

COMMANDS: Mapping[str, str] = {
    "serve": "serve:serve",
    "list": "listing:list_",
    "top": "top:top",
    "settings": "settings:settings",
    "show": "badges:show",
    "set": "badges:set_",
    "freeze": "badges:freeze",
    "reset": "badges:reset",
    "rename": "badges:rename",
    "delete": "badges:delete",
    "claim": "badges:claim",
    "release": "badges:release",
    "export": "export:export",
    "import": "importing:import_",
    "token": "token:token",
    "check": "check:check",
    "backup": "backup:backup",
    "restore": "restore:restore",
    "statement": "statement:statement",
    "fold": "fold:fold",
    "redrive": "redrive:redrive",
    "redrive-events": "redrive:redrive_events",
    "receive": "receive:receive",
    "completion": "completion:completion",
}
"""The module in this package and the object in it of each command."""
FAILED = 1
INTERRUPTED = 130
"""The status of a process that SIGINT ended (POSIX shells: 128 and the signal's number)."""


class Program(click.Group):
    """A group of commands, each of which is imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  of click's interface
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"vumi.cli.{module}"), name)
        return command


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit statuses: 0 done, 1 failed, 2 wrong usage, 3 errors found by check or statement,"
    " 130 interrupted.",
)
@click.option(
    "--settings", "path", metavar="FILE", help="Read this settings file, instead of SETTINGS."
)
@click.version_option(VERSION, message="%(prog)s %(version)s")
@click.pass_context
def vumi(context: click.Context, path: str | None) -> None:
    """Live badges for Markdown: views, scheduled events and wallets.

    The commands work on the file in the folder DATA, while the server runs or not, and with --stack
    on a stack on AWS.
    """
    if path is not None:
        given: Invocation = context.obj
        context.obj = replace(given, environment={**given.environment, SETTINGS: path})


def main(arguments: Sequence[str], clock: Callable[[], Seconds] = time.time) -> int:
    """Run the command that the arguments name, and return the exit status.

    The server uses `clock`.
    """
    _protect_files()
    telemetry.write_to(sys.stderr, with_metrics=False)
    return execute(arguments, Invocation(os.environ, clock))


def execute(arguments: Sequence[str], invocation: Invocation) -> int:
    """Run a command, report its error, and return the exit status."""
    try:
        status = vumi.main(list(arguments), prog_name="vumi", obj=invocation, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except ReportedError as error:
        return _fail(str(error), error.status)
    except (ClientError, OSError, SettingsError, StorageError) as error:
        return _fail(str(error))
    return status if isinstance(status, int) else 0


def run() -> None:
    """Run the program with the arguments of the process."""
    sys.exit(main(sys.argv[1:]))


def _protect_files() -> None:
    """Make every new file for this user only, and no core file, which would have all requests."""
    os.umask(UMASK)
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))


def _fail(message: str, status: int = FAILED) -> int:
    click.echo(f"vu-mi: {message}", err=True)
    return status
