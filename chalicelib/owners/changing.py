"""The changes of a badge: its base, reset, freeze, its names, and the hand-over of its secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from chalicelib.counting import keys, milestones
from chalicelib.counting.milestones import NOTHING, Milestone, MilestoneContext, Milestones, Reached
from chalicelib.counting.summary import Summary, read
from chalicelib.http.tokens import digest
from chalicelib.outgoing.webhooks import WebhookSchedule
from chalicelib.owners.claiming import move_key
from chalicelib.owners.errors import ReachedError, TakenError
from chalicelib.owners.finding import (
    MAX_NAMES,
    OwnedBadge,
    deleted_error,
    find,
    is_same,
    read_summary,
    reread,
    taken_error,
    write_again,
    wrong_secret_error,
)
from chalicelib.owners.lives import begin_life, delete_days, read_unviewed
from chalicelib.storage.conditions import attr
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Value, number
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Check, Update, Write
from chalicelib.units import Seconds, to_milliseconds


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
    reached = write_again(owned.badge_id, lambda: _change(table, owned, wanted, now, webhooks))
    milestones.enqueue(reached, webhooks)
    if wanted.reset:
        with suppress(StorageError):  # no reader sees the days of an earlier life
            delete_days(table, read(table, owned.badge_id))


def _change(
    table: Table,
    owned: OwnedBadge,
    wanted: BadgeChange,
    now: Seconds,
    webhooks: WebhookSchedule | None,
) -> Reached:
    owned = reread(table, owned)
    if owned.deleted:
        raise deleted_error(owned.badge_id)
    summary = read_summary(table, owned)
    values = _prepare_values(table, owned, summary, wanted, now)
    reached = _prepare_milestones(table, owned, summary, values, wanted, now, webhooks)
    remove = ("today", "hot") if wanted.reset else ()
    update = summary.update(now, {**values, **reached.values}, remove)
    table.write(update, *_prepare_name(table, owned, wanted.name, now), *reached.writes)
    return reached


def hand_over(
    table: Table, badge_id: str, secret: str, new_digest: str, now: Seconds
) -> OwnedBadge:
    """Give a badge to the holder of another secret; the present one is void from then on.

    Its milestones go with it. The same request has the same response until the badge gets another
    owner, because the table keeps the digest of the void secret for that. Raises `OwnerError` and
    `StorageError`.
    """
    own_digest = digest(secret)

    def write() -> OwnedBadge:
        owned = find(table, badge_id)
        if owned.deleted:
            raise deleted_error(badge_id)
        holds = is_same(owned.digest, own_digest)
        held = is_same(owned.previous, own_digest)
        if not (is_same(owned.digest, new_digest) and (holds or held)):
            if not holds:
                raise wrong_secret_error()
            table.write(*_prepare_hand_over(table, owned, new_digest, now))
        return owned

    return write_again(badge_id, write)


def _prepare_hand_over(
    table: Table, owned: OwnedBadge, new_digest: str, now: Seconds
) -> Iterator[Write]:
    """Replace the digest of the owner, and that of the milestones if there are any.

    Like every write of milestones, that also writes the summary.
    """
    values: dict[str, Value] = {"digest": new_digest, "previous": owned.digest}
    yield Update(keys.owner(owned.badge_id), values=values, condition=owned.unchanged)
    yield from move_key(owned, new_digest)
    summary = read_summary(table, owned)
    found = milestones.read(table, owned.badge_id, owned.digest)
    if found.milestones:
        yield replace(found, owner=new_digest).put
        yield summary.update(now, {})


def _prepare_values(
    table: Table, owned: OwnedBadge, summary: Summary, wanted: BadgeChange, now: Seconds
) -> dict[str, Value]:
    """Return the attributes of the summary that the owner changes."""
    values: dict[str, Value] = {}
    if wanted.reset:
        values |= {"base": 0, **begin_life(table, summary, now, owned.aliases)}
    if wanted.base is not None:
        values["base"] = wanted.base
    if wanted.frozen is not None:
        values["frozen"] = int(wanted.frozen)
    return values


def _prepare_milestones(  # noqa: PLR0913, PLR0917  the parts of a change
    table: Table,
    owned: OwnedBadge,
    summary: Summary,
    values: Mapping[str, Value],
    wanted: BadgeChange,
    now: Seconds,
    webhooks: WebhookSchedule | None,
) -> Reached:
    """Return the milestones after a change: those of a reset badge may be reached again.

    Raises `ReachedError` for a new milestone that the badge has reached already.
    """
    if "base" not in values and wanted.milestones is None:
        return NOTHING
    stored = milestones.read(table, owned.badge_id, owned.digest)
    after = before = stored.rearm() if wanted.reset else stored
    numbers = {"base": summary.base, "count": summary.count, "reset": summary.reset, **values}
    shown = number(numbers, "base") + number(numbers, "count")
    if wanted.milestones is not None:
        _check_new(before, wanted.milestones, shown)
        after = before.set(wanted.milestones, to_milliseconds(now))
    elif not before.milestones:
        return NOTHING
    if webhooks is None:
        return Reached(after.next, (after.put,))
    name, life = wanted.name or owned.names[-1], number(numbers, "reset")
    passage = MilestoneContext(name, life, shown, to_milliseconds(now))
    return after.reach(table, passage, webhooks)


def _check_new(before: Milestones, wanted: Sequence[Milestone], shown: int) -> None:
    known = {one.count for one in before.milestones}
    for one in wanted:
        if one.count <= shown and one.count not in known:
            raise ReachedError(
                f"milestones: the badge has {shown} views with its base, so {one.count} is reached:"
                " give a higher count"
            )


def _prepare_name(
    table: Table, owned: OwnedBadge, name: str | None, now: Seconds
) -> Iterator[Write]:
    """Make a name the current one, if there is one; a new one is an alias with its own life."""
    if name is None:
        yield Check(keys.owner(owned.badge_id), owned.unchanged)
        return
    names: list[Value] = [*(old for old in owned.names[1:] if old != name), name]
    if len({*owned.names, name}) > MAX_NAMES:
        raise TakenError(
            f"a badge can have {MAX_NAMES} names, with its earlier names; use one of those"
        )
    yield Update(keys.owner(owned.badge_id), values={"names": names}, condition=owned.unchanged)
    if name not in owned.names:
        unused = _read_unused(table, name)
        values = {**begin_life(table, unused, now), "alias": owned.badge_id}
        yield unused.update(now, values, remove=("deleted",))
        yield Check(keys.owner(name), attr("SK").missing())


def _read_unused(table: Table, badge_id: str) -> Summary:
    """Return the summary of an id without views and owner. Raises `TakenError`."""
    if table.get(keys.owner(badge_id)) is not None:
        raise taken_error(badge_id)
    return read_unviewed(table, badge_id)
