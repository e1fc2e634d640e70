"""The deletion of a badge, and the tombstones that it leaves."""

from __future__ import annotations

from contextlib import suppress

from chalicelib.counting import keys
from chalicelib.counting.summary import Summary, read
from chalicelib.owners.claiming import move_key
from chalicelib.owners.finding import OwnedBadge, reread, write_again
from chalicelib.owners.lives import begin_life, delete_days, keys_of_traffic
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailedError, Delete, Update
from chalicelib.units import Seconds, WholeSeconds

TOMBSTONE_SECONDS = 7 * 86_400
"""A tombstone outlives the last view by this time, because TTL removes items in any order."""
LAST_MONTHS = 70
"""The months of GitHub's numbers that a transaction deletes, with a badge of 20 names."""


def delete(table: Table, owned: OwnedBadge, now: Seconds, retention: WholeSeconds) -> None:
    """Delete a badge with its history; later views begin a new life.

    A tombstone with the time of the deletion stays for `retention` and a week. Raises `OwnerError`
    and `StorageError`.
    """
    _bury(table, write_again(owned.badge_id, lambda: _delete(table, owned, now)), now, retention)


def _delete(table: Table, owned: OwnedBadge, now: Seconds) -> OwnedBadge:
    owned = reread(table, owned)
    if not owned.deleted:
        digest, names = owned.tombstone_digest, sorted({*owned.names})
        table.write(
            *(_end_life(table, read(table, name), digest, now) for name in names),
            Delete(keys.owner(owned.badge_id), owned.unchanged),
            Delete(keys.milestones(owned.badge_id)),
            *move_key(owned),
            *_prepare_traffic(table, owned),
        )
    return owned


def _end_life(table: Table, summary: Summary, deleted_by: str, now: Seconds) -> Update:
    """Return the write that ends the life of an id whose badge is deleted."""
    return summary.update(
        now,
        {**begin_life(table, summary, now), "deleted": deleted_by},
        remove=("alias", "today", "base", "frozen", "hot", "milestone"),
    )


def _prepare_traffic(table: Table, owned: OwnedBadge) -> list[Delete]:
    """Return the deletions of GitHub's numbers; earlier months than fit in are deleted before.

    The summary was read before, and whoever stores numbers writes it too. So none are left.
    """
    months = [Delete(key) for key in keys_of_traffic(table, owned.badge_id)]
    while months[LAST_MONTHS:]:
        table.write(*months[:LAST_MONTHS])
        months = months[LAST_MONTHS:]
    return months


def _bury(table: Table, owned: OwnedBadge, now: Seconds, retention: WholeSeconds) -> None:
    """Remove the history of a deleted badge, then set the TTL of its tombstones."""
    for name in sorted({*owned.names}):
        summary = read(table, name)
        if summary.deleted != owned.tombstone_digest:
            continue
        delete_days(table, summary)
        ttl = max(int(now), summary.reset // 1000) + retention + TOMBSTONE_SECONDS
        with suppress(ConditionFailedError):  # a new life has begun
            if not summary.count:
                table.write(summary.update(now, {"ttl": ttl}))
