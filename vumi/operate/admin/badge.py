"""One badge as an operator sees it, and the operator's changes to it.

The operator needs no secret, and the badge needs no owner.
"""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.counting import badge_count
from chalicelib.counting.summary import read
from chalicelib.history import history
from chalicelib.history.buckets import Span
from chalicelib.owners import finding
from chalicelib.owners.finding import OwnedBadge
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailedError
from chalicelib.units import Seconds, to_iso8601
from vumi.errors import ReportedError

MONTH_DAYS = 31


class UnknownBadgeError(ReportedError):
    """Nobody has ever visited, imported or claimed a badge of this id."""


@dataclass(frozen=True, slots=True)
class BadgeReport:
    """A badge with all that is set; `count` is the number that it shows.

    `today` and `month` are the views of the current day and month, in UTC. `reset` and `claimed`
    are times in ISO 8601, or None.
    """

    id: str
    names: tuple[str, ...]
    count: int
    base: int
    today: int
    month: int
    frozen: bool
    claimed: str | None
    reset: str | None


def find(table: Table, badge_id: str) -> OwnedBadge:
    """Return a badge by any of its names; visitors may have made a deleted one again.

    Raises `UnknownBadgeError` and `StorageError`.
    """
    owned = finding.look_up(table, badge_id)
    count = badge_count.read(table, owned.badge_id)
    if count.is_new or (owned.deleted and not count.shown):
        raise UnknownBadgeError(
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


def report(table: Table, badge_id: str, now: Seconds) -> BadgeReport:
    """Return a badge by any of its names. Raises `UnknownBadgeError` and `StorageError`."""
    owned = find(table, badge_id)
    count = badge_count.read(table, owned.badge_id)
    *_, today = days = history.read(table, owned.badge_id, Span(MONTH_DAYS), now).buckets
    return BadgeReport(
        id=owned.names[-1],
        names=tuple(sorted({*owned.names})),
        count=count.shown,
        base=count.summary.base,
        today=today.views,
        month=sum(day.views for day in days if day.start.month == today.start.month),
        frozen=count.summary.frozen,
        claimed=to_iso8601(owned.created * 1000) if owned.is_claimed else None,
        reset=to_iso8601(count.summary.reset) if count.summary.reset else None,
    )
