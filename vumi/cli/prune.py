"""The command `prune`, which removes badges that nobody owns and nobody sees, on one machine."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass

import click

from chalicelib.units import WholeSeconds
from vumi.cli.options import Invocation, Parsed, confirm, dry_run, examples, yes
from vumi.cli.output import as_json, log_change, print_objects, print_result
from vumi.cli.progress import progress
from vumi.errors import plural
from vumi.operate.installations.file import open_installation
from vumi.storage.pruning import Pruning, UnseenBadge

DAY: WholeSeconds = 86_400


def _parse_days(value: str) -> WholeSeconds:
    """Return the seconds of a number of days."""
    found = re.fullmatch("([1-9][0-9]{0,4})d", value)
    if found is None:
        raise ValueError(f"give days like 180d, not {value!r}")
    return int(found[1]) * DAY


@dataclass(slots=True)
class PrunedSums:
    """The sums over badges: the earliest day of a last view, and about how many bytes they have."""

    badges: int = 0
    views: int = 0
    oldest: str | None = None
    bytes: int = 0

    def add(self, badges: Iterable[UnseenBadge]) -> None:
        for badge in badges:
            self.badges += 1
            self.views += badge.shown
            self.oldest = min(self.oldest or badge.seen, badge.seen)
            self.bytes += badge.bytes

    @property
    def fields(self) -> dict[str, str | int | None]:
        names = ("badges", "views", "oldest", "bytes")
        return {name: getattr(self, name) for name in names}


@click.command(
    epilog=examples(
        "vumi prune --unseen 180d --below 10 --dry-run",
        "vumi prune --unseen 180d --below 10 --yes",
    )
)
@click.option(
    "--unseen",
    type=Parsed("days", _parse_days),
    required=True,
    help="Days without a view, like 180d, or more.",
)
@click.option(
    "--below", type=click.IntRange(min=1), required=True, help="Shown numbers below this one."
)
@yes
@dry_run
@as_json
@click.pass_obj
def prune(invocation: Invocation, *, unseen: int, below: int, yes: bool, dry_run: bool) -> None:
    """Remove badges that nobody owns and nobody saw.

    It works on one machine. This can't be undone.

    Badges with an owner, a second name, milestones, GitHub's numbers, or views that are not folded
    stay, and so do frozen ones. Visitors do not wait. The server gives free pages of the file back
    to the disk, until a fifth of the file is free for new views.
    """
    with open_installation(invocation.settings, invocation.clock) as installation:
        since = installation.view_clock() - unseen
        job = Pruning(installation.database, installation.views_queue, since, below)
        found, pruned = PrunedSums(), PrunedSums()
        with progress("looking for badges") as line:
            found.add(line.count(job.find()))
        print_objects([found.fields])
        if dry_run or not found.badges or not confirm(yes=yes):
            return
        with progress("pruning badges") as line:
            try:
                pruned.add(line.count(job.prune(time.monotonic, time.sleep)))
            finally:
                if pruned.badges:
                    log_change(plural(pruned.badges, "badge"), pruned.fields)
        text = f"Pruned {plural(pruned.badges, 'badge')}."
        print_result(text, {"pruned": pruned.badges})
