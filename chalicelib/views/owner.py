"""Owning a badge: claim it, then set its base, begin its count anew, freeze, rename, delete it.

An owner has a secret, of which the table has only a digest. What is his stands beside the badge:
in the item `OWNER`, and as attributes of `USER` that every look at the badge reads anyway.

A count that begins anew keeps its position in the stream, and the time from which views count:
`reset`. Views taken before it are in the table, on their way, or in the stream; wherever they turn
up, they are known by their ULID and not counted.

A badge that is renamed stays where it is. Its new name is an item that says where: `alias`.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from chalicelib.ports import (
    MAX_TRANSACTION_WRITES,
    Check,
    ConditionFailed,
    Delete,
    Item,
    Key,
    Put,
    StorageError,
    Table,
    Unavailable,
    Update,
    Value,
    Write,
    attribute,
    number,
    text,
    unchanged,
)
from chalicelib.tokens import digest
from chalicelib.views import counting, keys

if TYPE_CHECKING:
    from boto3.dynamodb.conditions import ConditionBase

SECRET_BYTES = 24
MAX_NAMES = 20
"""Names that a badge can have had."""
TRIES = 5
"""Each failed try means that another change of the same badge came in between."""
MEANWHILE = "the badge was renamed or deleted meanwhile"
HOURS = tuple(f"h{hour:02}" for hour in range(24))


class OwnerError(Exception):
    """An owner's request can't be done; the message says why."""


class TakenError(OwnerError):
    """The id has an owner, or views, or is another badge's name."""


class NotClaimedError(OwnerError):
    """The id has no owner: anybody's views count for it, and nobody can change it."""


class NoSecretError(OwnerError):
    """There is no secret in the request."""


class WrongSecretError(OwnerError):
    """The secret is not the one that the claim answered."""


@dataclass(frozen=True, slots=True)
class Change:
    """What an owner wants changed; None leaves a thing as it is."""

    base: int | None = None
    reset: bool = False
    frozen: bool | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Owned:
    """A badge and its owner's item, as they were when his secret was found right."""

    badge_id: str
    owner: Item

    @property
    def names(self) -> list[str]:
        """Every name it has had, the present one last."""
        given = self.owner.get("names")
        return [self.badge_id, *(map(str, given) if isinstance(given, list) else ())]

    @property
    def held(self) -> ConditionBase:
        """It is still his: not deleted, and claimed by somebody else."""
        return attribute("digest").eq(text(self.owner, "digest"))

    @property
    def held_by_these_names(self) -> ConditionBase:
        """Nor renamed in between: a name that the list of names lacks would outlive the badge."""
        given = self.owner.get("names")
        return self.held & unchanged("names", given or "")


def claim(table: Table, badge_id: str, base: int, now: float) -> str:
    """Make a badge somebody's; returns his secret, which nothing here can tell again.

    Raises `TakenError` and `StorageError`.
    """
    _check_unseen(table, badge_id)
    secret = secrets.token_urlsafe(SECRET_BYTES)
    owner: Item = {**_owner(badge_id), "digest": digest(secret), "created": int(now)}
    values = {"base": base} if base else {}
    badge = Update(
        keys.user(badge_id), values=values, defaults={"created": int(now)}, condition=_unused()
    )
    try:
        table.write(badge, Put(owner, condition=attribute("SK").not_exists()))
    except ConditionFailed:
        raise TakenError(f"{badge_id} has an owner or views already") from None
    return secret


def authenticate(table: Table, badge_id: str, secret: str) -> Owned:
    """The badge of this name, for who has its secret.

    Raises `NotClaimedError`, `WrongSecretError`, in a time that tells nothing of the right secret,
    and `StorageError`.
    """
    user = table.get(keys.user(badge_id)) or {}
    place = text(user, "alias") or badge_id
    owner = table.get(keys.owner(place))
    if owner is None:
        raise NotClaimedError(f"{badge_id} has no owner; claim it with POST /api/v1/badges")
    if not hmac.compare_digest(text(owner, "digest"), digest(secret)):
        raise WrongSecretError("this is not the secret of the badge")
    return Owned(place, owner)


def change(table: Table, owned: Owned, wanted: Change, now: float) -> None:
    """Do all that an owner wants, or nothing. Raises `TakenError` and `StorageError`."""
    if wanted.name is not None and wanted.name not in owned.names:
        _check_unseen(table, wanted.name)
    for _ in range(TRIES):
        user = table.get(keys.user(owned.badge_id)) or {}
        writes = list(_changes(owned, user, wanted, now))
        try:
            table.write(*writes)
        except ConditionFailed as failed:
            if 0 not in failed.items:
                failures = {writes[place].key for place in failed.items}
                raise TakenError(_refusal(owned, wanted, failures)) from None
        else:
            if wanted.reset:
                _forget_days(table, owned.badge_id, number(_begun(user, now), "reset"))
            return
    raise Unavailable(f"{TRIES} other changes of {owned.badge_id} came in between")


def delete(table: Table, owned: Owned, now: float) -> None:
    """Remove a badge and all it has; views that come later begin anew. Raises `StorageError`.

    What stays is when that was, so that views on their way don't bring it back.
    """
    for _ in range(TRIES):
        user = table.get(keys.user(owned.badge_id)) or {}
        begun = _begun(user, now)
        gone = Update(
            keys.user(owned.badge_id),
            values=begun,
            remove=("count", "floor", "base", "frozen"),
            condition=_still(user),
        )
        aliases = [
            Update(keys.user(name), values=begun, remove=("alias", "count", "floor"))
            for name in _aliases(owned)
        ]
        today = _day_begun(owned.badge_id, begun)
        owner = Delete(keys.owner(owned.badge_id), owned.held_by_these_names)
        try:
            table.write(gone, today, owner, *aliases)
        except ConditionFailed as failed:
            if 0 not in failed.items:
                raise TakenError(MEANWHILE) from None
            continue
        _forget_days(table, owned.badge_id, number(begun, "reset"))
        return
    raise Unavailable(f"{TRIES} other changes of {owned.badge_id} came in between")


def _changes(owned: Owned, user: Item, wanted: Change, now: float) -> Iterator[Write]:
    """The badge first: where its condition fails, another change came in between."""
    begun = _begun(user, now) if wanted.reset else {}
    base = wanted.base if wanted.base is not None else (0 if wanted.reset else None)
    values: dict[str, int] = {**begun, **({} if base is None else {"base": base})}
    if wanted.frozen is not None:
        values["frozen"] = int(wanted.frozen)
    yield Update(
        keys.user(owned.badge_id),
        values=values,
        defaults={"created": int(now)},
        remove=("count", "floor") if wanted.reset else (),
        condition=_still(user),
    )
    if wanted.reset:
        yield _day_begun(owned.badge_id, begun)
    if wanted.name is None:
        yield Check(keys.owner(owned.badge_id), owned.held)
    else:
        yield from _renamed(owned, wanted.name, now)


def _refusal(owned: Owned, wanted: Change, failures: Collection[Key]) -> str:
    if keys.owner(owned.badge_id) in failures:
        return MEANWHILE
    return f"{wanted.name} has an owner or views already"


def _renamed(owned: Owned, name: str, now: float) -> Iterator[Write]:
    names: list[Value] = [*(old for old in owned.names[1:] if old != name), name]
    if len({*owned.names, name}) > MAX_NAMES:
        raise TakenError(f"a badge can have {MAX_NAMES} names, and this one has had as many")
    yield Update(
        keys.owner(owned.badge_id), values={"names": names}, condition=owned.held_by_these_names
    )
    if name not in owned.names:
        alias = {"alias": owned.badge_id}
        created = {"created": int(now)}
        yield Update(keys.user(name), values=alias, defaults=created, condition=_unused())
        yield Check(keys.owner(name), attribute("SK").not_exists())


def _aliases(owned: Owned) -> list[str]:
    return sorted({name for name in owned.names if name != owned.badge_id})


def _begun(user: Item, now: float) -> dict[str, int]:
    """The time from which views count: later than every reset before, whatever the clock says.

    A view that comes after it has seen it, and is taken no sooner. Views that were taken by a clock
    ahead of this one are not before it: they go on counting.
    """
    return {"reset": max(int(now * 1000), number(user, "reset")) + 1}


def _day_begun(badge_id: str, begun: dict[str, int]) -> Update:
    """The day's history, emptied; it stays, so that a fold under way finds the reset there too."""
    return Update(_day(badge_id, begun["reset"]), values={"views": 0, **begun}, remove=HOURS)


def _day(badge_id: str, reset: int) -> Key:
    return keys.day(badge_id, datetime.fromtimestamp(reset / 1000, UTC))


def _forget_days(table: Table, badge_id: str, reset: int) -> None:
    """Remove the history before a reset.

    No reader sees it any more: where the table fails in between, the rest goes with the next reset.
    """
    with suppress(StorageError):
        _delete_days(table, badge_id, reset)


def _delete_days(table: Table, badge_id: str, reset: int) -> None:
    today = _day(badge_id, reset).sk
    partition = keys.partition(badge_id)
    while days := table.query(
        partition, first=keys.DAY, last=today, limit=MAX_TRANSACTION_WRITES, attributes=("SK",)
    ):
        old = [Delete(Key(partition, text(day, "SK"))) for day in days if day["SK"] != today]
        if not old:
            return
        table.write(*old)


def _owner(badge_id: str) -> Item:
    pk, sk = keys.owner(badge_id)
    return {"PK": pk, "SK": sk}


def _check_unseen(table: Table, badge_id: str) -> None:
    """Raise `TakenError` for an id with live views: one stored directly may have left no floor."""
    if counting.read(table, badge_id).live:
        raise TakenError(f"{badge_id} has an owner or views already")


def _unused() -> ConditionBase:
    """No view was put under an id: a put raises its floor first. Nor is it a name, or imported."""
    return (
        attribute("floor").not_exists()
        & (attribute("count").not_exists() | attribute("count").eq(0))
        & attribute("alias").not_exists()
        & (attribute("base").not_exists() | attribute("base").eq(0))
    )


def _still(user: Item) -> ConditionBase:
    """No other reset came in between; then it would be the later one that counts."""
    return unchanged("reset", number(user, "reset"))
