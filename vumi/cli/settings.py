"""The command `settings`, which prints the settings in force."""

from __future__ import annotations

from dataclasses import asdict

import click

from vumi.cli.options import Invocation, examples
from vumi.cli.output import as_json, print_objects, wants_json
from vumi.given_settings import DEFAULT

COMMON = {
    *("HOST", "PORT", "DATA", "SETTINGS", "TRUSTED_PROXIES", "PUBLIC_URL", "IDS", "DROP_IN"),
    *("CLIENT_NEW_IDS_PER_DAY", "MAX_BADGES", "ACCESS_LOG", "EVENTS", "WALLETS"),
}
"""The settings that most operators look at."""


@click.command(
    epilog=examples(
        "vumi settings",
        "vumi settings --all --json",
        "vumi --settings /etc/vu-mi/settings.toml settings",
    )
)
@click.option("--all", "of_all", is_flag=True, help="Print those that few people change too.")
@as_json
@click.pass_obj
def settings(invocation: Invocation, *, of_all: bool) -> None:
    """Print settings with their values and sources.

    These are the most common ones, and all that have not the default. A source is the environment,
    a file or the default. Secrets are masked. A wrong setting is reported as by serve.
    """
    invocation.given.warn()
    _ = invocation.settings
    found = list(invocation.given.in_force())
    shown = [one for one in found if of_all or one.name in COMMON or one.source != DEFAULT]
    print_objects(map(asdict, shown), ("SETTING", "VALUE", "SOURCE"))
    if len(shown) < len(found) and not wants_json():
        click.echo(f"{len(shown)} of {len(found)} settings; --all prints the others", err=True)
