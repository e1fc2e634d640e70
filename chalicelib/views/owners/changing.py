"""The changes of a badge: its base, reset, freeze, its names, and the hand-over of its secret."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from chalicelib.http.tokens import digest
from chalicelib.storage.conditions import attr
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Value
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Check, ConditionFailed, Update, Write
from chalicelib.units import Seconds
from chalicelib.views import keys
from chalicelib.views.owners.errors import TakenError
from chalicelib.views.owners.finding import (
    MAX_NAMES,
    TRIES,
    OwnedBadge,
    deleted_error,
    find,
    is_same,
    overtaken_error,
    read_summary,
    reread,
    taken_error,
    wrong_secret_error,
)
from chalicelib.views.owners.lives import begin_life, delete_days, read_unviewed
from chalicelib.views.summary import Summary, read


@dataclass(frozen=True, slots=True)
class BadgeChange:
    """The changes that an owner requests; None leaves an attribute unchanged."""

    base: int | None = None
    reset: bool = False
    frozen: bool | None = None
    name: str | None = None


def change(table: Table, owned: OwnedBadge, wanted: BadgeChange, now: Seconds) -> None:
    """Apply all changes of an owner or an operator, or none.

    Raises `OwnerError` and `StorageError`.
    """
    for _ in range(TRIES):
        owned = reread(table, owned)
        if owned.deleted:
            raise deleted_error(owned.badge_id)
        summary = read_summary(table, owned)
        try:
            table.write(*_prepare_change(table, owned, summary, wanted, now))
        except ConditionFailed:
            continue
        if wanted.reset:
            with suppress(StorageError):  # no reader sees the days of an earlier life
                delete_days(table, read(table, owned.badge_id))
        return
    raise overtaken_error(owned.badge_id)


def hand_over(table: Table, badge_id: str, secret: str, new_digest: str) -> OwnedBadge:
    """Give a badge to the holder of another secret; the present one is void from then on.

    The same request has the same answer until the badge gets another owner, because the table
    keeps the digest of the void secret for that. Raises `OwnerError` and `StorageError`.
    """
    own_digest = digest(secret)
    for _ in range(TRIES):
        owned = find(table, badge_id)
        if owned.deleted:
            raise deleted_error(badge_id)
        holds = is_same(owned.digest, own_digest)
        held = is_same(owned.previous, own_digest)
        if is_same(owned.digest, new_digest) and (holds or held):
            return owned
        if not holds:
            raise wrong_secret_error()
        values: dict[str, Value] = {"digest": new_digest, "previous": own_digest}
        try:
            table.write(Update(keys.owner(owned.badge_id), values=values, condition=owned.as_read))
        except ConditionFailed:
            continue
        return owned
    raise overtaken_error(badge_id)


def _prepare_change(
    table: Table, owned: OwnedBadge, summary: Summary, wanted: BadgeChange, now: Seconds
) -> Iterator[Write]:
    values: dict[str, Value] = {}
    if wanted.reset:
        values = {"base": 0, **begin_life(summary, now)}
    if wanted.base is not None:
        values["base"] = wanted.base
    if wanted.frozen is not None:
        values["frozen"] = int(wanted.frozen)
    yield summary.update(now, values, remove=("today", "hot") if wanted.reset else ())
    if wanted.name is None:
        yield Check(keys.owner(owned.badge_id), owned.as_read)
    else:
        yield from _prepare_rename(table, owned, wanted.name, now)


def _prepare_rename(table: Table, owned: OwnedBadge, name: str, now: Seconds) -> Iterator[Write]:
    """Make a name the current one; a new name becomes an alias with its own life."""
    names: list[Value] = [*(old for old in owned.names[1:] if old != name), name]
    if len({*owned.names, name}) > MAX_NAMES:
        raise TakenError(
            f"a badge can have {MAX_NAMES} names, with its earlier names; use one of those"
        )
    yield Update(keys.owner(owned.badge_id), values={"names": names}, condition=owned.as_read)
    if name not in owned.names:
        unused = _read_unused(table, name)
        values = {**begin_life(unused, now), "alias": owned.badge_id}
        yield unused.update(now, values, remove=("deleted",))
        yield Check(keys.owner(name), attr("SK").missing())


def _read_unused(table: Table, badge_id: str) -> Summary:
    """Return the summary of an id without views and owner. Raises `TakenError`."""
    if table.get(keys.owner(badge_id)) is not None:
        raise taken_error(badge_id)
    return read_unviewed(table, badge_id)
