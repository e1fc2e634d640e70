"""The changes of a badge: its base, reset, freeze, its names, its hand-over and its deletion.

An id has lives. A reset, a delete, and a rename onto an id end one life and begin the next. The end
of a life sets the watermark and `reset` of the id to one time, later than every view that was taken
before. So a view belongs to the life of its id at the time in its ULID, whenever its message is
delivered. A deleted badge leaves tombstones under its names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hmac import compare_digest

from chalicelib.counting import badge_count, keys, milestones
from chalicelib.counting.milestones import NOTHING, Milestone, MilestoneContext, Milestones, Reached
from chalicelib.counting.summary import Summary, hour_of, read
from chalicelib.http.tokens import digest
from chalicelib.outgoing.webhooks import WebhookSchedule
from chalicelib.owners import finding
from chalicelib.owners.claiming import move_key, replace_owner
from chalicelib.owners.finding import MAX_NAMES, OwnedBadge
from chalicelib.storage import writes
from chalicelib.storage.conditions import attr
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Value, key_of, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Check, ConditionFailedError, Delete, Update, Write
from chalicelib.ulids import TIMES, latest, milliseconds
from chalicelib.units import Milliseconds, Seconds, WholeSeconds, to_milliseconds

APART_MILLISECONDS = 1_000
"""A life ends at least this long after the earlier watermark, so that two ends differ."""
TOMBSTONE_SECONDS = 7 * 86_400
"""A tombstone outlives the last view by this time, because TTL removes items in any order."""
LAST_MONTHS = 70
"""The months of GitHub's numbers that a transaction deletes, with a badge of 20 names."""


@dataclass(frozen=True, slots=True)
class BadgeChange:
    """The changes that an owner requests; None leaves an attribute unchanged."""

    base: int | None = None
    reset: bool = False
    frozen: bool | None = None
    name: str | None = None
    milestones: tuple[Milestone, ...] | None = None


def change(
    table: Table,
    owned: OwnedBadge,
    wanted: BadgeChange,
    now: Seconds,
    webhooks: WebhookSchedule | None = None,
) -> None:
    """Apply all changes of an owner or an operator, or none.

    Without `webhooks`, milestones that the badge reaches are left to its next count. Raises
    `OwnerError` and `StorageError`.
    """
    reached = finding.change_again(table, owned, _Request(table, wanted, now, webhooks).write)
    milestones.enqueue(reached, webhooks)
    if wanted.reset:
        with suppress(StorageError):  # no reader sees the days of an earlier life
            delete_days(table, read(table, owned.badge_id))


@dataclass(frozen=True, slots=True)
class _Request:
    """A request for changes, which is written for the badge as it is read."""

    table: Table
    wanted: BadgeChange
    now: Seconds
    webhooks: WebhookSchedule | None

    def write(self, owned: OwnedBadge, summary: Summary) -> Reached:
        """Write all changes in one transaction, and return the milestones that they reach."""
        values = self._prepare_values(owned, summary)
        reached = self._prepare_milestones(owned, summary, values)
        remove = ("today", "hot") if self.wanted.reset else ()
        update = summary.update(self.now, {**values, **reached.values}, remove)
        self.table.write(update, *self._prepare_name(owned), *reached.writes)
        return reached

    def _prepare_values(self, owned: OwnedBadge, summary: Summary) -> dict[str, Value]:
        wanted, values = self.wanted, dict[str, Value]()
        if wanted.reset:
            values |= {"base": 0, **begin_life(self.table, summary, self.now, owned.aliases)}
        if wanted.base is not None:
            values["base"] = wanted.base
        if wanted.frozen is not None:
            values["frozen"] = int(wanted.frozen)
        return values

    def _prepare_milestones(
        self, owned: OwnedBadge, summary: Summary, values: Mapping[str, Value]
    ) -> Reached:
        """Return the milestones after a change: those of a reset badge may be reached again.

        Raises `ReachedError` for a new milestone that the badge has reached already.
        """
        wanted, at = self.wanted, to_milliseconds(self.now)
        if "base" not in values and wanted.milestones is None:
            return NOTHING
        stored = milestones.read(self.table, owned.badge_id, owned.digest)
        after = before = stored.rearm() if wanted.reset else stored
        numbers = {"base": summary.base, "count": summary.count, "reset": summary.reset, **values}
        shown = number(numbers, "base") + number(numbers, "count")
        if wanted.milestones is not None:
            _check_new(before, wanted.milestones, shown)
            after = before.set(wanted.milestones, at)
        elif not before.milestones:
            return NOTHING
        if self.webhooks is None:
            return Reached(after.next, (after.put,))
        name, life = wanted.name or owned.names[-1], number(numbers, "reset")
        return after.reach(self.table, MilestoneContext(name, life, shown, at), self.webhooks)

    def _prepare_name(self, owned: OwnedBadge) -> Iterator[Write]:
        """Make a name the current one, if there is one; a new one is an alias with its own life."""
        name = self.wanted.name
        if name is None:
            yield owned.check
            return
        names: list[Value] = [*(old for old in owned.names[1:] if old != name), name]
        if len({*owned.names, name}) > MAX_NAMES:
            raise finding.TakenError(
                f"a badge can have {MAX_NAMES} names, with its earlier names; use one of those"
            )
        yield Update(keys.owner(owned.badge_id), values={"names": names}, condition=owned.unchanged)
        if name not in owned.names:
            if self.table.get(keys.owner(name)) is not None:
                raise finding.taken_error(name)
            unused = finding.read_unviewed(self.table, name)
            values = {**begin_life(self.table, unused, self.now), "alias": owned.badge_id}
            yield unused.update(self.now, values, remove=("deleted",))
            yield Check(keys.owner(name), attr("SK").missing())


def _check_new(before: Milestones, wanted: Sequence[Milestone], shown: int) -> None:
    known = {one.count for one in before.milestones}
    for one in wanted:
        if one.count <= shown and one.count not in known:
            raise finding.ReachedError(
                f"milestones: the badge has {shown} views with its base, so {one.count} is reached:"
                " give a higher count"
            )


def hand_over(
    table: Table, badge_id: str, secret: str, new_digest: str, now: Seconds
) -> OwnedBadge:
    """Give a badge to the holder of another secret; the present one is void from then on.

    Its milestones go with it. The same request has the same response until the badge gets another
    owner, because the table keeps the digest of the void secret for that. Raises `OwnerError` and
    `StorageError`.
    """
    own_digest = digest(secret)

    def prepare(owned: OwnedBadge) -> Iterable[Write]:
        if not owned.is_claimed:
            error = finding.deleted_error if owned.deleted else finding.unclaimed_error
            raise error(badge_id)
        holds = compare_digest(owned.digest, own_digest)
        held = compare_digest(owned.previous, own_digest)
        if compare_digest(owned.digest, new_digest) and (holds or held):
            return ()
        if not holds:
            raise finding.WrongSecretError(finding.MISMATCH)
        return _prepare_hand_over(table, owned, new_digest, now)

    return replace_owner(table, badge_id, prepare)


def _prepare_hand_over(
    table: Table, owned: OwnedBadge, new_digest: str, now: Seconds
) -> Iterator[Write]:
    """Replace the digest of the owner, and that of the milestones if there are any.

    Like every write of milestones, that also writes the summary.
    """
    values: dict[str, Value] = {"digest": new_digest, "previous": owned.digest}
    yield Update(keys.owner(owned.badge_id), values=values, condition=owned.unchanged)
    yield from move_key(owned, new_digest)
    summary = read(table, owned.badge_id)  # before the milestones, which a fold may write between
    found = milestones.read(table, owned.badge_id, owned.digest)
    if found.milestones:
        yield replace(found, owner=new_digest).put
        yield summary.update(now, {})


def delete(table: Table, owned: OwnedBadge, now: Seconds, retention: WholeSeconds) -> None:
    """Delete a badge with its history; later views begin a new life.

    A tombstone with the time of the deletion stays for `retention` and a week. Raises `OwnerError`
    and `StorageError`.
    """
    deleted = finding.write_again(owned.badge_id, lambda: _delete(table, owned, now))
    _bury(table, deleted, now, retention)


def _delete(table: Table, owned: OwnedBadge, now: Seconds) -> OwnedBadge:
    owned = finding.reread(table, owned)
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
    return summary.update(
        now,
        {**begin_life(table, summary, now), "deleted": deleted_by},
        remove=("alias", "today", "base", "frozen", "hot", "milestone"),
    )


def _prepare_traffic(table: Table, owned: OwnedBadge) -> list[Delete]:
    """Return the deletions of GitHub's numbers; earlier months than fit in are deleted before.

    The summary was read before, and whoever stores numbers writes it too. So none are left.
    """
    months = [Delete(key) for key in finding.keys_of_traffic(table, owned.badge_id)]
    while months[LAST_MONTHS:]:
        table.write(*months[:LAST_MONTHS])
        months = months[LAST_MONTHS:]
    return months


def _bury(table: Table, owned: OwnedBadge, now: Seconds, retention: WholeSeconds) -> None:
    for name in sorted({*owned.names}):
        summary = read(table, name)
        if summary.deleted != owned.tombstone_digest:
            continue
        delete_days(table, summary)
        ttl = max(int(now), summary.reset // 1000) + retention + TOMBSTONE_SECONDS
        with suppress(ConditionFailedError):  # a new life has begun
            if not summary.count:
                table.write(summary.update(now, {"ttl": ttl}))


def begin_life(
    table: Table, summary: Summary, now: Seconds, aliases: Iterable[str] = ()
) -> dict[str, Value]:
    """Return the attributes that begin a life, later than all views of the life before it.

    Views are stored under the id and its aliases. Raises `StorageError`.
    """
    clock = to_milliseconds(now) + badge_count.AHEAD_MILLISECONDS
    newest = max(_read_newest(table, name) for name in (summary.badge_id, *aliases))
    at = max(clock, summary.watermark + APART_MILLISECONDS, newest + 1)
    return {"count": 0, "watermark": at, "reset": at}


def _read_newest(table: Table, badge_id: str) -> Milliseconds:
    page = table.query(
        keys.partition(badge_id),
        first=keys.VIEW,
        last=keys.VIEW + latest(TIMES[-1]),
        limit=1,
        attributes=("SK",),
        descending=True,
    )
    return milliseconds(text(page[0], "SK").removeprefix(keys.VIEW)) if page else 0


def delete_days(table: Table, summary: Summary) -> None:
    """Delete the days of earlier lives of an id, but none that a fold has begun again meanwhile.

    Raises `StorageError`; calling it again deletes the others.
    """
    earlier = attr("reset").missing() | (attr("reset") < summary.reset)
    while True:
        days = table.query(
            keys.partition(summary.badge_id),
            first=keys.DAY,
            last=keys.DAY + hour_of(summary.reset).day,
            limit=writes.MAX_TRANSACTION_WRITES,
            attributes=("PK", "SK", "reset"),
        )
        old = [Delete(key_of(day), earlier) for day in days if number(day, "reset") < summary.reset]
        if not old:
            return
        with suppress(ConditionFailedError):
            table.write(*old)
