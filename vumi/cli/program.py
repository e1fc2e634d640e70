"""The program `vumi`: its commands, its errors and its exit statuses.

A command is imported when it is called, so that a server does not import the others.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

import click

from chalicelib import VERSION, telemetry
from chalicelib.http.errors import ClientError
from chalicelib.settings import SettingsError
from chalicelib.storage.errors import StorageError
from chalicelib.units import Seconds
from vumi.cli import output
from vumi.cli.options import Invocation, setting
from vumi.errors import ReportedError
from vumi.settings import SETTINGS
from vumi.storage.private_files import UMASK

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Serve": {
        "serve": "serve:serve",
        "init": "setup:init",
        "settings": "setup:settings",
    },
    "Badges": {
        "list": "listing:list_",
        "top": "listing:top",
        "show": "badges:show",
        "set": "badges:set_",
        "freeze": "badges:freeze",
        "reset": "badges:reset",
        "remove-views": "badges:remove_views",
        "traffic": "traffic:traffic",
        "prune": "listing:prune",
        "rename": "badges:rename",
        "delete": "badges:delete",
        "claim": "badges:claim",
        "release": "badges:release",
    },
    "Bans": {"ban": "badges:ban", "bans": "badges:bans", "unban": "badges:unban"},
    "Data": {
        "check": "data:check",
        "backup": "data:backup",
        "restore": "data:restore",
        "export": "data:export",
        "import": "importing:import_",
    },
    "Tokens": {"token": "setup:token"},
    "Events and wallets": {
        "receive": "queues:receive",
        "redrive-events": "queues:redrive_events",
        "statement": "statement:statement",
    },
    "AWS": {"fold": "queues:fold", "redrive": "queues:redrive"},
}
"""The commands of each group of the help, with their module here and the object in it."""
COMMANDS = {name: place for group in GROUPS.values() for name, place in group.items()}
FAILED = 1
COLUMN, HELP_WIDTH = 16, 60
"""Where the descriptions of commands begin, and their width in a terminal of 80 columns."""
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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            name = error.command_name
            raise click.NoSuchCommand(name, possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group, names in GROUPS.items():
            with formatter.section(group):
                found = [(name, self.get_command(ctx, name)) for name in names]
                rows = [(name, one.get_short_help_str(HELP_WIDTH)) for name, one in found if one]
                formatter.write_dl(rows, col_max=COLUMN, col_spacing=COLUMN - max(map(len, names)))


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit statuses: 0 done, 1 failed, 2 wrong usage, 3 errors found by check or statement,"
    " 130 interrupted.",
)
@setting(SETTINGS, "FILE", "Read this settings file")
@click.version_option(VERSION, message="%(prog)s %(version)s")
def vumi() -> None:
    """Live badges for Markdown: views, scheduled events and wallets.

    The commands work on the file in the folder DATA, while the server runs or not, and with --stack
    on a stack on AWS.
    """


def main(arguments: Sequence[str], clock: Callable[[], Seconds] = time.time) -> int:
    """Run the command that the arguments name, and return the exit status.

    The server uses `clock`.
    """
    os.umask(UMASK)  # every new file is for this user only
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))  # a core file would have all requests
    telemetry.write_to(sys.stderr, with_metrics=False)
    return execute(arguments, Invocation(os.environ, clock))


def execute(arguments: Sequence[str], invocation: Invocation) -> int:
    """Run a command, report its error, and return the exit status."""
    given = invocation.environment
    color = False if given.get("NO_COLOR") or given.get("TERM") == "dumb" else None
    try:
        status = vumi.main(
            list(arguments),
            prog_name="vumi",
            obj=invocation,
            standalone_mode=False,
            color=color,
        )
    except click.ClickException as error:
        output.show_error(error, color=color)
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except (ClientError, OSError, ReportedError, SettingsError, StorageError) as error:
        output.show_error(click.ClickException(str(error)), color=color)
        return error.status if isinstance(error, ReportedError) else FAILED
    return status if isinstance(status, int) else 0


def run() -> None:
    """Run the program with the arguments of the process."""
    sys.exit(main(sys.argv[1:]))
