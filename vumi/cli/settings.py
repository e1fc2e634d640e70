"""The command `settings`, which prints the settings in force."""

from __future__ import annotations

from dataclasses import asdict, astuple

import click

from vumi.cli.options import Invocation, as_json, examples
from vumi.cli.output import print_json, print_table


@click.command(
    epilog=examples(
        "vumi settings", "vumi settings --json", "vumi --settings /etc/vu-mi/settings.toml settings"
    )
)
@as_json
@click.pass_obj
def settings(invocation: Invocation, *, as_json: bool) -> None:
    """Print each setting, its value in force, and its source. Secrets are masked.

    A source is the environment, a file or the default. A wrong setting is reported as by serve.
    """
    invocation.given.warn_of_readers()
    _ = invocation.settings
    found = list(invocation.given.in_force())
    if as_json:
        for one in found:
            print_json(asdict(one))
    else:
        print_table(("SETTING", "VALUE", "SOURCE"), map(astuple, found))
