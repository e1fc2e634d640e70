"""The commands for one badge, and for bans. They need no secret, and the badge needs no owner."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

import click

from chalicelib.badges.options import MAX_BASE
from chalicelib.counting import badge_count
from chalicelib.counting import bans as stored
from chalicelib.counting.bans import Ban
from chalicelib.counting.summary import read
from chalicelib.history import history
from chalicelib.history.history import Span
from chalicelib.owners import changing, claiming, finding, removing
from chalicelib.owners.bans import find as find_ban
from chalicelib.owners.bans import parse_reason, to_json
from chalicelib.owners.changing import BadgeChange
from chalicelib.owners.finding import OwnedBadge
from chalicelib.settings import DIGEST
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailedError
from chalicelib.units import Seconds, to_iso8601, to_milliseconds
from vumi.cli.options import BADGE_ID, Parsed, confirm, dry_run, examples, on_installation, yes
from vumi.cli.output import as_json, log_change, print_fields, print_objects, print_result
from vumi.errors import ReportedError, plural
from vumi.operate.admin.installation import Installation

MONTH_DAYS = 31


def find(table: Table, badge_id: str) -> OwnedBadge:
    """Return a badge by any of its names; visitors may have made a deleted one again.

    Raises `ReportedError` and `StorageError`.
    """
    owned = finding.look_up(table, badge_id)
    count = badge_count.read(table, owned.badge_id)
    if count.is_new or (owned.deleted and not count.shown):
        raise ReportedError(
            f"there is no badge {badge_id}: nobody has visited, imported or claimed it"
        )
    return owned


def reopen(table: Table, owned: OwnedBadge, now: Seconds) -> OwnedBadge:
    """Return the badge, which may be changed: one that was deleted is a badge without an owner now.

    Raises `StorageError`.
    """

    def write() -> OwnedBadge:
        found = finding.look_up(table, owned.badge_id)
        if found.deleted:
            table.write(read(table, owned.badge_id).update(now, {}, remove=("deleted",)))
            raise ConditionFailedError({})  # another request may have deleted it again
        return found

    return finding.write_again(owned.badge_id, write) if owned.deleted else owned


def _parse_digest(text: str) -> str:
    if text and re.fullmatch(DIGEST, text) is None:
        raise ValueError("give 64 hex digits in lower case")
    return text


HOUR = Parsed("hour", removing.parse_hour)
"""The start of an hour in UTC."""
one_badge = click.argument("badge_id", metavar="ID", type=BADGE_ID)
some_badges = click.argument("badge_ids", metavar="ID...", type=BADGE_ID, nargs=-1, required=True)


@click.command(epilog=examples("vumi show octocat/hello-world", "vumi show ID --json"))
@one_badge
@as_json
@on_installation
def show(installation: Installation, badge_id: str) -> None:
    """Show a badge: its count, its names and all that is set."""
    table, now = installation.table, installation.view_clock()
    owned = find(table, badge_id)
    count = badge_count.read(table, owned.badge_id)
    *_, today = days = history.read(table, owned.badge_id, Span(MONTH_DAYS), now).buckets
    print_fields(
        {
            "id": owned.names[-1],
            "names": sorted({*owned.names}),
            "count": count.shown,
            "base": count.summary.base,
            "today": today.views,
            "month": sum(day.views for day in days if day.start.month == today.start.month),
            "frozen": count.summary.frozen,
            "claimed": to_iso8601(owned.created * 1000) if owned.is_claimed else None,
            "reset": to_iso8601(count.summary.reset) if count.summary.reset else None,
        }
    )


@click.command(
    "set", epilog=examples("vumi set octocat/hello-world --base 1000", "vumi set ID --base 0")
)
@one_badge
@click.option(
    "--base",
    type=click.IntRange(0, MAX_BASE),
    required=True,
    help="The number that is added to the views.",
)
@on_installation
def set_(installation: Installation, badge_id: str, base: int) -> None:
    """Set the base of a badge, to which its views are added.

    The badge may be new.
    """
    owned = finding.look_up(installation.table, badge_id)
    _change(installation, owned, BadgeChange(base=base))
    shown = badge_count.read(installation.table, badge_id).shown
    click.echo(f"{badge_id} shows {shown:,} now.")


@click.command(epilog=examples("vumi freeze octocat/hello-world", "vumi freeze ID --off"))
@some_badges
@click.option("--off", is_flag=True, help="Count views again.")
@on_installation
def freeze(installation: Installation, badge_ids: Sequence[str], *, off: bool) -> None:
    """Freeze badges: they show their counts and take no views."""
    for badge_id in badge_ids:
        owned = find(installation.table, badge_id)
        _change(installation, owned, BadgeChange(frozen=not off))
        click.echo(f"{badge_id} {'takes views again' if off else 'is frozen'}.")


@click.command(epilog=examples("vumi reset octocat/hello-world", "vumi reset ID --dry-run"))
@some_badges
@yes
@dry_run
@on_installation
def reset(
    installation: Installation, badge_ids: Sequence[str], *, yes: bool, dry_run: bool
) -> None:
    """Set the counts of badges to 0 and remove their history. This can't be undone."""
    found = [find(installation.table, badge_id) for badge_id in badge_ids]
    _announce(
        installation, badge_ids, "lose their views, base and history, and keep GitHub's numbers"
    )
    if dry_run or not confirm(yes=yes):
        return
    for owned in found:
        _change(installation, owned, BadgeChange(reset=True))
    click.echo(f"Reset {plural(len(found), 'badge')}.")


@click.command(
    "remove-views",
    epilog=examples("vumi remove-views ID --from 2026-11-21T08:00Z --to 2026-11-21T10:00Z"),
)
@one_badge
@click.option("--from", "first", type=HOUR, required=True, help="The first hour, in UTC.")
@click.option("--to", "until", type=HOUR, required=True, help="The hour after the last one.")
@yes
@on_installation
def remove_views(
    installation: Installation, badge_id: str, first: datetime, until: datetime, *, yes: bool
) -> None:
    """Remove the views of hours, to undo a burst.

    The hours are whole, in UTC, and leave the count and the history. This can't be undone.
    """
    try:
        hours = removing.Hours(first, until)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    owned = find(installation.table, badge_id)
    _announce(installation, [badge_id], "lose the views of these hours")
    confirm(yes=yes)
    windows, now = installation.counting.windows, installation.view_clock()
    before = finding.describe_for_log(installation.table, owned)
    removed = removing.remove(installation.table, owned, hours, windows, now)
    log_change(owned.names[-1], before)
    shown = badge_count.read(installation.table, badge_id).shown
    click.echo(f"Removed {plural(removed, 'view')}; {badge_id} shows {shown:,} now.")


@click.command(epilog=examples("vumi rename octocat/hello-world octocat/hello"))
@one_badge
@click.argument("new_id", metavar="NEW", type=BADGE_ID)
@on_installation
def rename(installation: Installation, badge_id: str, new_id: str) -> None:
    """Rename a badge, which keeps its count.

    Its earlier names show the same count.
    """
    owned = find(installation.table, badge_id)
    _change(installation, owned, BadgeChange(name=new_id))
    click.echo(f"{badge_id} is {new_id} now; both names show the same count.")


@click.command(epilog=examples("vumi delete octocat/hello-world", "vumi delete ID --dry-run"))
@some_badges
@yes
@dry_run
@on_installation
def delete(
    installation: Installation, badge_ids: Sequence[str], *, yes: bool, dry_run: bool
) -> None:
    """Remove badges with all they have. This can't be undone."""
    found = [find(installation.table, badge_id) for badge_id in badge_ids]
    _announce(installation, badge_ids, "are removed, with their history, names and owners")
    if dry_run or not confirm(yes=yes):
        return
    retention = installation.settings.retention_seconds
    for owned in found:
        now = installation.view_clock()
        opened = reopen(installation.table, owned, now)
        before = finding.describe_for_log(installation.table, opened)
        changing.delete(installation.table, opened, now, retention)
        log_change(owned.names[-1], before)
    click.echo(f"deleted: {', '.join(badge_ids)}")


@click.command(
    epilog=examples(
        "vumi claim octocat/hello-world",
        "vumi claim ID --json",
        'vumi claim ID --digest "$(printf %s "$SECRET" | sha256sum | cut -d" " -f1)"',
    )
)
@one_badge
@click.option(
    "--digest",
    type=Parsed("digest", _parse_digest),
    metavar="TEXT",
    default="",
    help="The SHA-256 digest of the owner's secret (default: a new one).",
)
@as_json
@on_installation
def claim(installation: Installation, badge_id: str, digest: str) -> None:
    """Hand out a secret for any badge, whoever has it now.

    An earlier secret of the badge is void. The badge may be new.
    """
    before = _describe(installation, badge_id)
    own = claiming.grant(installation.table, badge_id, installation.view_clock(), digest)
    log_change(badge_id, before)
    secret = f"; its secret, shown only once: {own}" if own else ""
    fields = {"id": badge_id, "secret": own or None}
    print_result(f"{badge_id} has a new owner{secret}", fields)


@click.command(epilog=examples("vumi release octocat/hello-world"))
@some_badges
@on_installation
def release(installation: Installation, badge_ids: Sequence[str]) -> None:
    """Remove the owners of badges, whose counts stay."""
    for badge_id in badge_ids:
        before = _describe(installation, badge_id)
        released = claiming.release(installation.table, badge_id)
        log_change(badge_id, before)
        click.echo(f"{badge_id} {'has no owner now' if released else 'had no owner'}.")


def _change(installation: Installation, owned: finding.OwnedBadge, wanted: BadgeChange) -> None:
    now = installation.view_clock()
    opened = reopen(installation.table, owned, now)
    before = finding.describe_for_log(installation.table, opened)
    changing.change(installation.table, opened, wanted, now)
    log_change(owned.names[-1], before)


def _describe(installation: Installation, badge_id: str) -> Mapping[str, object]:
    table = installation.table
    return finding.describe_for_log(table, finding.look_up(table, badge_id))


def _announce(installation: Installation, badge_ids: Sequence[str], loss: str) -> None:
    """Print the counts of badges that a change would remove."""
    for badge_id in badge_ids:
        click.echo(f"{badge_id} shows {badge_count.read(installation.table, badge_id).shown:,}")
    click.echo(f"These badges {loss}.")


pattern_argument = click.argument("pattern", metavar="PATTERN", type=BADGE_ID)


@click.command(
    epilog=examples(
        "vumi ban spammer/page --reason spam",
        "vumi ban 'spammer/*' --reason spam",
        "vumi ban 'spammer/*' --stack vu-mi-prod",
    )
)
@pattern_argument
@click.option(
    "--reason",
    type=Parsed("reason", parse_reason),
    metavar="TEXT",
    default="",
    help="The reason, for operators alone.",
)
@on_installation
def ban(installation: Installation, pattern: str, reason: str) -> None:
    """Ban ids: they are neither counted nor shown.

    In a pattern, * stands for any characters. The numbers stay, and unban shows them again. A ban
    holds from the next request on, on AWS within a minute.
    """
    before = find_ban(installation.table, pattern)
    now = to_milliseconds(installation.clock())
    stored.put(installation.table, Ban(pattern, reason, "vumi ban", now))
    log_change(pattern, before)
    click.echo(f"{pattern} is banned.")


@click.command(epilog=examples("vumi bans", "vumi bans --json"))
@as_json
@on_installation
def bans(installation: Installation) -> None:
    """List all bans."""
    print_objects(map(to_json, stored.read_all(installation.table)))


@click.command(epilog=examples("vumi unban 'spammer/*'"))
@pattern_argument
@on_installation
def unban(installation: Installation, pattern: str) -> None:
    """Lift a ban, so that ids count again and show their numbers."""
    before = find_ban(installation.table, pattern)
    if not stored.lift(installation.table, pattern):
        raise ReportedError(f"no ban has the pattern {pattern}; vumi bans lists all")
    log_change(pattern, before)
    click.echo(f"{pattern} is not banned any more.")
