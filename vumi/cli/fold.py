"""The command `fold`, which folds badges whose folds were lost."""

from __future__ import annotations

from collections.abc import Iterable

import click

from chalicelib.storage.errors import Unavailable
from vumi.admin.folding import FoldAll, NotFoldedError
from vumi.admin.installation import Installation
from vumi.cli.options import examples, on_installation

REPORT_EVERY = 1_000
"""The progress is printed after this many badges."""


@click.command(
    epilog=examples(
        "vumi fold --all", "vumi fold octocat/hello-world", "vumi fold --all --stack vu-mi-prod"
    )
)
@click.argument("badge_ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "of_all", is_flag=True, help="Fold all badges that have views to fold.")
@on_installation
def fold(installation: Installation, badge_ids: tuple[str, ...], *, of_all: bool) -> None:
    """Fold badges.

    On AWS this is needed after the consumer was stopped for more than 24 hours.
    """
    if of_all == bool(badge_ids):
        raise click.UsageError("give --all or the ids of badges")
    job = FoldAll(installation.folder, installation.map_parallel)
    run(job, badge_ids or installation.viewed_ids())


def run(job: FoldAll, badge_ids: Iterable[str]) -> None:
    """Fold badges and print the progress and the result. Raises `NotFoldedError`."""
    badges = views = failed = 0
    try:
        for badges, folded in enumerate(job.run(badge_ids), 1):
            views += folded.views
            if folded.failure:
                failed += 1
                click.echo(f"{folded.badge_id} is not folded: {folded.failure}")
            if badges % REPORT_EVERY == 0:
                click.echo(f"{badges:,} badges so far", err=True)
    except (Unavailable, KeyboardInterrupt) as error:
        reason = str(error) or "it was interrupted"
        raise NotFoldedError(
            f"the fold stopped after {badges:,} badges: {reason}; run it again to fold the rest"
        ) from error
    click.echo(f"folded {views:,} views of {badges:,} badges")
    if failed:
        raise NotFoldedError(f"{failed:,} badges are not folded; fix the cause and run it again")
