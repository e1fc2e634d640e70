"""The parts that commands share: their environment, ids, --stack, --yes and examples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import click

from chalicelib.counting import ids
from chalicelib.lazy import lazy
from chalicelib.units import Seconds
from vumi.errors import ReportedError
from vumi.settings import GivenSettings, StandaloneSettings

if TYPE_CHECKING:
    from vumi.operate.admin.installation import Installation
    from vumi.operate.installations import file, stack
else:
    file, stack = lazy("vumi.operate.installations.file"), lazy("vumi.operate.installations.stack")

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])

yes = click.option("--yes", is_flag=True, help="Do not ask.")
dry_run = click.option(
    "--dry-run", is_flag=True, is_eager=True, help="Report the changes without making them."
)


class Parsed(click.ParamType[Result]):
    """The type of a value whose parser raises a `ValueError` that says what is right."""

    def __init__(self, name: str, parse: Callable[[str], Result]) -> None:
        self.name, self._parse = name, parse

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> Result:
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


BADGE_ID = Parsed("id", ids.normalise)
"""An id, in the form in which it is stored."""


@dataclass(frozen=True)
class Invocation:
    """The surroundings of a command: the environment variables, and the clock of the server."""

    environment: Mapping[str, str]
    clock: Callable[[], Seconds]

    @cached_property
    def given(self) -> GivenSettings:
        """Return the settings of the environment and of its file. Raises `SettingsError`."""
        return GivenSettings.read(self.environment)

    @cached_property
    def settings(self) -> StandaloneSettings:
        """Return the settings of one machine. Raises `SettingsError`."""
        return self.given.parse()

    def open_installation(self, stack_name: str | None) -> AbstractContextManager[Installation]:
        """Open the file of DATA, which must exist, or a stack. Raises `ReportedError`."""
        if stack_name is None:
            return file.open_installation(self.settings, self.clock)
        return self.open_stack(stack_name)

    def open_stack(self, name: str) -> AbstractContextManager[stack.StackInstallation]:
        """Open a stack on AWS. Raises `ReportedError`."""
        if find_spec("boto3") is None:
            raise ReportedError("--stack needs boto3; install it: pipx inject vu-mi boto3")
        return stack.open_installation(name, self.environment, self.clock)


def setting(name: str, metavar: str, meaning: str) -> Callable[[Function], Function]:
    """Return the option of a setting, which takes precedence over the environment."""

    def keep(context: click.Context, _: click.Parameter, text: str | None) -> None:
        if text:
            given: Invocation = context.obj
            context.obj = replace(given, environment={**given.environment, name: text})

    return click.option(
        f"--{name.lower()}",
        metavar=metavar,
        expose_value=False,
        is_eager=True,
        callback=keep,
        help=f"{meaning}, instead of {name}.",
    )


def confirm(*, yes: bool) -> bool:
    """Return whether the operator agrees. A program must give --yes."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise click.UsageError("give --yes, because there is no terminal to ask on")
    click.confirm("Go on?", abort=True)
    return True


def examples(*lines: str) -> str:
    """Return the end of a command's help, with an example per line."""
    not_wrapped = "\b\nExamples:"  # the first line keeps click from joining the lines after it
    return "\n".join((not_wrapped, *(f"  {line}" for line in lines)))


def on_installation(
    function: Callable[Concatenate[Installation, Parameters], Result],
) -> Callable[Parameters, Result]:
    """Give a command the file of DATA, or with --stack a stack on AWS, as its first argument."""

    @click.option(
        "--stack",
        "stack_name",
        metavar="NAME",
        help="Work on this stack on AWS, instead of the file in DATA.",
    )
    @click.pass_obj
    @wraps(function)
    def command(
        invocation: Invocation, /, *args: Parameters.args, **options: Parameters.kwargs
    ) -> Result:
        stack_name = options.pop("stack_name")
        with invocation.open_installation(cast("str | None", stack_name)) as installation:
            return function(installation, *args, **options)

    return command
