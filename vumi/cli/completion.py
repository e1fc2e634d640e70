"""The command `completion`, which prints the completion of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from vumi.cli.options import examples
from vumi.errors import ReportedError

SHELLS = ("bash", "fish", "zsh")
VARIABLE = "_VUMI_COMPLETE"
"""The variable by which the shell asks the program (click, "Shell Completion")."""


class NoCompletionError(ReportedError):
    """The shell can't complete. The message says why."""


@click.command(
    epilog=examples(
        'eval "$(vumi completion bash)"',
        "vumi completion fish > ~/.config/fish/completions/vumi.fish",
    )
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion of commands for SHELL."""
    of_shell = get_completion_class(shell)
    if of_shell is None:
        raise NoCompletionError(f"there is no completion for {shell}")
    program = context.find_root().command
    try:
        click.echo(of_shell(program, {}, "vumi", VARIABLE).source())
    except RuntimeError as error:
        raise NoCompletionError(str(error)) from error
