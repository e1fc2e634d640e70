"""The requests of a badge's owner: claim, show, set the base, reset, freeze, rename and delete.

The item `OWNER` has a digest of the owner's secret. The other settings are in the badge's summary.

An id has lives: a reset, a delete, and a rename onto it end one and begin the next. The end of a
life sets the watermark and `reset` of the id to one time, later than every view that was answered
before. So a view belongs to the life of its id at the time in its ULID, whenever its message is
delivered.

A renamed badge keeps its partition. Its new name is a summary with an `alias`.

A claim is void after a week if its badge has neither views nor settings. Nothing removes it: it
stands until somebody else claims the id, in a write that requires the state that was read. So an
owner's request that comes before that write keeps the claim. A view counts for its id, whoever owns
it, and no claim removes views.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from chalicelib.http.errors import ClientError, UnauthorizedError
from chalicelib.http.tokens import digest
from chalicelib.storage.conditions import Condition, attr, unchanged
from chalicelib.storage.errors import StorageError, Unavailable
from chalicelib.storage.items import Item, Value, key_of, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import (
    MAX_TRANSACTION_WRITES,
    Check,
    ConditionFailed,
    Delete,
    Put,
    Update,
    Write,
)
from chalicelib.units import Seconds, WholeSeconds, to_milliseconds
from chalicelib.views import counting, keys
from chalicelib.views.summary import Summary, hour_of, read

SECRET_BYTES = 24
MAX_NAMES = 20
"""The maximum number of names of a badge, with its earlier names."""
CLAIM_SECONDS = 7 * 86_400
"""After this time, a claim without views and settings is void."""
TRIES = 10
"""A try fails if another write changed the badge."""
AHEAD_MILLISECONDS = 5_000
"""A life ends this long after the clock's time, because clocks differ by seconds."""
APART_MILLISECONDS = 1_000
"""A life ends at least this long after the earlier watermark, so that two ends differ."""
TOMBSTONE_SECONDS = 7 * 86_400
"""A tombstone outlives the last view by this time, because TTL removes items in any order."""


class OwnerError(ClientError):
    """An owner's request is refused. The message says why."""


class TakenError(OwnerError):
    """The id has an owner or views, or is an alias of another badge."""

    status = 409
    code = "taken"


class NotClaimedError(OwnerError):
    """The id has no owner, so nobody can change its badge."""

    status = 404
    code = "not_claimed"


class NoSecretError(UnauthorizedError, OwnerError):
    """The request has no secret."""


class WrongSecretError(OwnerError):
    """The secret is not that of the badge."""

    status = 403
    code = "wrong_secret"


@dataclass(frozen=True, slots=True)
class BadgeChange:
    """The changes that an owner requests; None leaves an attribute unchanged."""

    base: int | None = None
    reset: bool = False
    frozen: bool | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class OwnedBadge:
    """A badge, the digest of its owner's secret, and all its names, the current one last.

    `deleted` is true if the owner has deleted the badge. `created` is the time of the claim.
    """

    badge_id: str
    digest: str
    names: tuple[str, ...] = ()
    deleted: bool = False
    created: WholeSeconds = 0

    @classmethod
    def of(cls, badge_id: str, owner: Item) -> OwnedBadge:
        """Decode a badge from its item `OWNER`."""
        given = owner.get("names")
        names = tuple(map(str, given)) if isinstance(given, list) else ()
        created = number(owner, "created")
        return cls(badge_id, text(owner, "digest"), (badge_id, *names), created=created)

    @property
    def aliases(self) -> list[str]:
        return sorted(set(self.names) - {self.badge_id})

    @property
    def as_read(self) -> Condition:
        """Return the condition that the owner and the names are still those that were read."""
        names: list[Value] = [*self.names[1:]]
        return (attr("digest") == self.digest) & unchanged("names", names)


@dataclass(frozen=True, slots=True)
class ClaimedBadge:
    """A successful claim; `secret` is empty if the owner chose it."""

    badge_id: str
    secret: str = field(default="", repr=False)


def claim(
    table: Table, badge_id: str, base: int, now: Seconds, secret_digest: str = ""
) -> ClaimedBadge:
    """Give a badge to an owner.

    With the digest of a secret that the owner chose, the claim may be repeated and has the same
    answer. Without one, a secret is generated, which can't be retrieved later. A void claim of
    another owner is replaced. Raises `TakenError` and `StorageError`.
    """
    secret = "" if secret_digest else secrets.token_urlsafe(SECRET_BYTES)
    own_digest = secret_digest or digest(secret)
    for _ in range(TRIES):
        owner = table.get(keys.owner(badge_id))
        if owner and hmac.compare_digest(text(owner, "digest"), own_digest):
            return ClaimedBadge(badge_id, secret)
        summary = _read_unviewed(table, badge_id)
        owned = OwnedBadge.of(badge_id, owner) if owner else None
        if owned and not _is_void(owned, summary, now):
            raise _taken_error(badge_id)
        free = owned.as_read if owned else attr("SK").missing()
        try:
            table.write(
                summary.update(now, {"base": base} if base else {}, remove=("deleted",)),
                Put(_owner_item(badge_id, own_digest, now), free),
            )
        except ConditionFailed:
            continue
        return ClaimedBadge(badge_id, secret)
    raise _overtaken_error(badge_id)


def authenticate(table: Table, badge_id: str, secret: str) -> OwnedBadge:
    """Return the badge of this name if the secret matches.

    The comparison takes constant time. Raises `NotClaimedError`, `WrongSecretError` and
    `StorageError`.
    """
    owned = find(table, badge_id)
    if hmac.compare_digest(owned.digest, digest(secret)):
        return owned
    if owned.deleted:
        raise _unclaimed_error(badge_id)
    raise WrongSecretError("this is not the secret of the badge")


def find(table: Table, badge_id: str) -> OwnedBadge:
    """Return the badge of this name. Raises `NotClaimedError` and `StorageError`."""
    summary = read(table, badge_id)
    place = summary.alias or badge_id
    if owner := table.get(keys.owner(place)):
        return OwnedBadge.of(place, owner)
    if summary.deleted:
        return OwnedBadge(place, summary.deleted, (place,), deleted=True)
    raise _unclaimed_error(badge_id)


def change(table: Table, owned: OwnedBadge, wanted: BadgeChange, now: Seconds) -> None:
    """Apply all changes of an owner, or none. Raises `OwnerError` and `StorageError`."""
    for _ in range(TRIES):
        owned = _reread(table, owned)
        if owned.deleted:
            raise NotClaimedError(f"{owned.badge_id} was deleted")
        summary = read(table, owned.badge_id)
        try:
            table.write(*_prepare_change(table, owned, summary, wanted, now))
        except ConditionFailed:
            continue
        if wanted.reset:
            with suppress(StorageError):  # no reader sees the days of an earlier life
                _delete_days(table, read(table, owned.badge_id))
        return
    raise _overtaken_error(owned.badge_id)


def delete(table: Table, owned: OwnedBadge, now: Seconds, retention: WholeSeconds) -> None:
    """Delete a badge with its history; later views begin a new life. Raises `StorageError`.

    A tombstone with the time of the deletion stays for `retention` and a week.
    """
    for _ in range(TRIES):
        owned = _reread(table, owned)
        if owned.deleted:
            break
        try:
            table.write(
                *(_end_life(read(table, name), owned.digest, now) for name in _all_names(owned)),
                Delete(keys.owner(owned.badge_id), owned.as_read),
            )
        except ConditionFailed:
            continue
        break
    else:
        raise _overtaken_error(owned.badge_id)
    _bury(table, owned, now, retention)


def _reread(table: Table, owned: OwnedBadge) -> OwnedBadge:
    """Read the badge again, because another request may have changed it."""
    owner = table.get(keys.owner(owned.badge_id))
    if owner and text(owner, "digest") == owned.digest:
        return OwnedBadge.of(owned.badge_id, owner)
    if read(table, owned.badge_id).deleted == owned.digest:
        return OwnedBadge(owned.badge_id, owned.digest, owned.names, deleted=True)
    raise NotClaimedError(f"{owned.badge_id} was deleted and has another owner now")


def _prepare_change(
    table: Table, owned: OwnedBadge, summary: Summary, wanted: BadgeChange, now: Seconds
) -> Iterator[Write]:
    values: dict[str, Value] = {}
    if wanted.reset:
        values = {"base": 0, **_begin_life(summary, now)}
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
        values = {**_begin_life(unused, now), "alias": owned.badge_id}
        yield unused.update(now, values, remove=("deleted",))
        yield Check(keys.owner(name), attr("SK").missing())


def _all_names(owned: OwnedBadge) -> list[str]:
    return [owned.badge_id, *owned.aliases]


def _end_life(summary: Summary, secret_digest: str, now: Seconds) -> Update:
    """Return the write that ends the life of an id whose badge is deleted."""
    return summary.update(
        now,
        {**_begin_life(summary, now), "deleted": secret_digest},
        remove=("alias", "today", "base", "frozen", "hot"),
    )


def _bury(table: Table, owned: OwnedBadge, now: Seconds, retention: WholeSeconds) -> None:
    """Remove the history of a deleted badge, then set the TTL of its tombstones."""
    for name in _all_names(owned):
        summary = read(table, name)
        if summary.deleted != owned.digest:
            continue
        _delete_days(table, summary)
        ttl = max(int(now), summary.reset // 1000) + retention + TOMBSTONE_SECONDS
        with suppress(ConditionFailed):  # a new life has begun
            if not summary.count:
                table.write(summary.update(now, {"ttl": ttl}))


def _begin_life(summary: Summary, now: Seconds) -> dict[str, Value]:
    """Return the attributes that begin a life, later than all views of the life before it."""
    clock = to_milliseconds(now) + AHEAD_MILLISECONDS
    at = max(clock, summary.watermark + APART_MILLISECONDS)
    return {"count": 0, "watermark": at, "reset": at}


def _delete_days(table: Table, summary: Summary) -> None:
    """Delete the days of earlier lives of an id.

    Raises `StorageError`; calling it again deletes the others.
    """
    while True:
        days = table.query(
            keys.partition(summary.badge_id),
            first=keys.DAY,
            last=keys.DAY + hour_of(summary.reset).day,
            limit=MAX_TRANSACTION_WRITES,
            attributes=("PK", "SK", "reset"),
        )
        old = [Delete(key_of(day)) for day in days if number(day, "reset") < summary.reset]
        if not old:
            return
        table.write(*old)


def _owner_item(badge_id: str, secret_digest: str, now: Seconds) -> Item:
    pk, sk = keys.owner(badge_id)
    return {"PK": pk, "SK": sk, "digest": secret_digest, "created": int(now)}


def _read_unused(table: Table, badge_id: str) -> Summary:
    """Return the summary of an id without views and owner. Raises `TakenError`."""
    if table.get(keys.owner(badge_id)) is not None:
        raise _taken_error(badge_id)
    return _read_unviewed(table, badge_id)


def _read_unviewed(table: Table, badge_id: str) -> Summary:
    """Return the summary of an id without views, of no other badge. Raises `TakenError`."""
    summary = read(table, badge_id)
    if summary.alias or summary.count or summary.base or counting.read(table, badge_id).live:
        raise _taken_error(badge_id)
    return summary


def _is_void(owned: OwnedBadge, summary: Summary, now: Seconds) -> bool:
    """Return whether the claim of a badge without views and base is void.

    A badge that its owner has reset may have had views.
    """
    is_set = owned.aliases or summary.frozen or summary.reset > owned.created * 1000
    return not is_set and owned.created + CLAIM_SECONDS <= now


def _taken_error(badge_id: str) -> TakenError:
    return TakenError(f"{badge_id} has an owner or views already")


def _unclaimed_error(badge_id: str) -> NotClaimedError:
    return NotClaimedError(f"{badge_id} has no owner; claim it with POST /api/v1/badges")


def _overtaken_error(badge_id: str) -> Unavailable:
    return Unavailable(f"{badge_id} was changed by {TRIES} other writes; try again")
