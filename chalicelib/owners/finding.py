"""The badges with their owners and names, as requests find them.

The item `OWNER` has a digest of the owner's secret and the names of the badge. Without a digest, it
has the names of a badge that nobody owns. The other settings are in the badge's summary.

A renamed badge keeps its partition. Its new name is a summary with an `alias`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any, TypeVar

from chalicelib.counting import badge_count, keys, milestones
from chalicelib.counting.summary import Summary, read
from chalicelib.http.errors import ClientError, UnauthorizedError
from chalicelib.http.tokens import digest
from chalicelib.storage.conditions import Condition, unchanged
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item, Key, Value, key_of, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Check, ConditionFailedError
from chalicelib.units import WholeSeconds, to_iso8601

Result = TypeVar("Result")

MAX_NAMES = 20
"""The maximum number of names of a badge, with its earlier names."""
MAX_MONTHS = 12 * 1_000
"""More months of GitHub's numbers than a badge has."""
MISMATCH = "this is not the secret of the badge"
TRIES = 10
"""A try fails if another write changed the badge."""
OPERATOR = "operator"
"""The text in place of the digest, if nobody owned the badge that the operator deleted."""


class OwnerError(ClientError):
    """An owner's request is refused. The message says why."""


class TakenError(OwnerError):
    """The id has an owner, views, a base or GitHub's numbers, or is an alias of another badge."""

    status = 409
    code = "taken"


class ReachedError(OwnerError):
    """The badge has reached a new milestone already, so it would never be sent."""

    status = 409
    code = "reached"


class NotFoldedError(OwnerError):
    """The hours have views that are not folded yet, so they can't be removed."""

    status = 409
    code = "not_folded"


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
class OwnedBadge:
    """A badge, the digest of its owner's secret, and all its names, the current one last.

    `badge_id` is the id under which the badge is stored, the first of the names. `digest` is empty
    if nobody owns the badge, and `deleted` is true if it was deleted. `created` is the time of the
    owner's claim. `previous` is the digest of the secret that handed the badge over, `proven` the
    name that they have proven last, `earlier` those before it, and `granted` is true if the
    operator has given it away.
    """

    badge_id: str
    digest: str = ""
    names: tuple[str, ...] = ()
    deleted: bool = False
    created: WholeSeconds = 0
    previous: str = ""
    proven: str = ""
    earlier: tuple[str, ...] = ()
    granted: bool = False

    @classmethod
    def of(cls, badge_id: str, owner: Item) -> OwnedBadge:
        """Decode a badge from its item `OWNER`."""
        return cls(
            badge_id,
            text(owner, "digest"),
            (badge_id, *_texts(owner, "names")),
            created=number(owner, "created"),
            previous=text(owner, "previous"),
            proven=text(owner, "proven"),
            earlier=_texts(owner, "earlier"),
            granted=number(owner, "granted") == 1,
        )

    @property
    def aliases(self) -> list[str]:
        return sorted(set(self.names) - {self.badge_id})

    @property
    def proofs(self) -> tuple[str, ...]:
        """Return the names that the owner has proven, the latest last."""
        return (*self.earlier, self.proven) if self.proven else ()

    @property
    def is_claimed(self) -> bool:
        return bool(self.digest) and not self.deleted

    @property
    def tombstone_digest(self) -> str:
        """Return the text that a deletion by the present owner leaves in the tombstone."""
        return self.digest or OPERATOR

    @property
    def check(self) -> Check:
        """Return the write that fails if the owner, the names or what is proven have changed."""
        return Check(keys.owner(self.badge_id), self.unchanged)

    @property
    def unchanged(self) -> Condition:
        """Return the condition that the owner, the names and what is proven are as they were."""
        names: list[Value] = [*self.names[1:]]
        owner = unchanged("digest", self.digest if self.is_claimed else "")
        return owner & unchanged("names", names) & unchanged("proven", self.proven)


def _texts(owner: Item, name: str) -> tuple[str, ...]:
    given = owner.get(name)
    return tuple(map(str, given)) if isinstance(given, list) else ()


def look_up(table: Table, badge_id: str) -> OwnedBadge:
    """Return the badge of this name, whoever owns it. Raises `StorageError`."""
    summary = read(table, badge_id)
    place = summary.alias or badge_id
    if item := table.get(keys.owner(place)):
        return OwnedBadge.of(place, item)
    return OwnedBadge(place, summary.deleted, (place,), deleted=bool(summary.deleted))


def describe(table: Table, owned: OwnedBadge) -> dict[str, Any]:
    """Return everything that is set of a badge, and its count. Raises `StorageError`."""
    count = badge_count.read(table, owned.badge_id)
    summary, name = count.summary, owned.names[-1]
    names = sorted({*owned.names})
    found = milestones.read(table, owned.badge_id, owned.digest)
    return {
        "id": name,
        "names": names,
        "aliases": [one for one in names if one != name],
        "base": summary.base,
        "count": count.shown,
        "frozen": summary.frozen,
        "created": to_iso8601(owned.created * 1000) if owned.is_claimed else None,
        "reset": to_iso8601(summary.reset) if summary.reset else None,
        "proven": owned.proven or None,
        "granted": owned.granted,
        "milestones": [one.to_json() for one in found.milestones],
    }


def describe_for_log(table: Table, owned: OwnedBadge) -> dict[str, Any]:
    """Return the same without the URLs of milestones, which may have secrets."""
    described = describe(table, owned)
    return {**described, "milestones": [one["count"] for one in described["milestones"]]}


def find(table: Table, badge_id: str) -> OwnedBadge:
    """Return the badge of this name, which has an owner or was deleted.

    Raises `NotClaimedError` and `StorageError`.
    """
    owned = look_up(table, badge_id)
    if not owned.digest:
        raise unclaimed_error(badge_id)
    return owned


def authenticate(table: Table, badge_id: str, secret: str) -> OwnedBadge:
    """Return the badge of this name if the secret matches.

    The comparison takes constant time. Raises `NotClaimedError`, `WrongSecretError` and
    `StorageError`.
    """
    owned = find(table, badge_id)
    if compare_digest(owned.digest, digest(secret)):
        return owned
    if owned.deleted:
        raise unclaimed_error(badge_id)
    raise WrongSecretError(MISMATCH)


def reread(table: Table, owned: OwnedBadge) -> OwnedBadge:
    """Read the badge again, because another request may have changed it.

    Raises `NotClaimedError` if the badge was deleted, `WrongSecretError` if it has another owner.
    """
    if item := table.get(keys.owner(owned.badge_id)):
        found = OwnedBadge.of(owned.badge_id, item)
    else:
        deleted = _read_summary(table, owned).deleted
        found = OwnedBadge(owned.badge_id, deleted, owned.names, deleted=bool(deleted))
    if found.tombstone_digest == owned.tombstone_digest:
        return found
    if found.is_claimed:
        raise WrongSecretError(f"{owned.badge_id} has another owner now")
    raise deleted_error(owned.badge_id)


def _read_summary(table: Table, owned: OwnedBadge) -> Summary:
    """Return the summary of the badge. Raises `NotClaimedError` if its id is an alias now."""
    summary = read(table, owned.badge_id)
    if summary.alias:
        raise deleted_error(owned.badge_id)
    return summary


def taken_error(badge_id: str) -> TakenError:
    """Return the error of an id that has an owner, views, a base or GitHub's numbers."""
    return TakenError(
        f"{badge_id} has an owner, views, a base or GitHub's numbers: use another id, or prove that"
        " it is yours"
    )


def unclaimed_error(badge_id: str) -> NotClaimedError:
    """Return the error of an id that nobody owns."""
    return NotClaimedError(f"{badge_id} has no owner; claim it with POST /api/v1/badges")


def deleted_error(badge_id: str) -> NotClaimedError:
    """Return the error of a badge that was deleted."""
    return NotClaimedError(f"{badge_id} was deleted")


def write_again(badge_id: str, write: Callable[[], Result]) -> Result:
    """Call a function that reads and writes a badge, again while another write changes the badge.

    Raises the errors of the function, and `UnavailableError`.
    """
    for _ in range(TRIES):
        with suppress(ConditionFailedError):
            return write()
    raise UnavailableError(f"{badge_id} was changed by {TRIES} other writes; try again")


def change_again(
    table: Table, owned: OwnedBadge, change: Callable[[OwnedBadge, Summary], Result]
) -> Result:
    """Call a function that changes a badge as it is read now, again while another write does.

    Raises the errors of the function, `OwnerError` if the badge was deleted or has another owner,
    and `StorageError`.
    """

    def write() -> Result:
        found = reread(table, owned)
        if found.deleted:
            raise deleted_error(found.badge_id)
        return change(found, _read_summary(table, found))

    return write_again(owned.badge_id, write)


def keys_of_traffic(table: Table, badge_id: str) -> list[Key]:
    """Return the keys of GitHub's numbers, the oldest month first. Raises `StorageError`."""
    months = table.query(
        keys.partition(badge_id),
        first=keys.TRAFFIC,
        last=keys.VIEW,
        limit=MAX_MONTHS,
        attributes=("PK", "SK"),
    )
    return [key_of(month) for month in months]


def read_unviewed(table: Table, badge_id: str) -> Summary:
    """Return the summary of an id without views and GitHub's numbers, of no other badge.

    Raises `TakenError`.
    """
    summary = read(table, badge_id)
    is_set = summary.alias or summary.count or summary.base
    if is_set or badge_count.read(table, badge_id).live or keys_of_traffic(table, badge_id):
        raise taken_error(badge_id)
    return summary
