"""The ways to an owner: the claim of an id without views, a new owner for any badge, a release.

A claim is void after a week if its badge has neither views nor settings. Nothing removes it: it
stands until somebody else claims the id, in a write that requires the state that was read. So an
owner's request that comes before that write keeps the claim. A view counts for its id, whoever owns
it, and no claim removes views.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from hmac import compare_digest

from chalicelib.counting import keys
from chalicelib.counting.summary import Summary, read
from chalicelib.http.tokens import digest
from chalicelib.owners.finding import OwnedBadge, look_up, read_unviewed, taken_error, write_again
from chalicelib.storage.conditions import attr
from chalicelib.storage.items import Item, Value, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Check, ConditionFailedError, Delete, Put, Update, Write
from chalicelib.units import Seconds

SECRET_BYTES = 24
CLAIM_SECONDS = 7 * 86_400
"""After this time, a claim without views and settings is void."""
TITLES = ("previous", "proven", "earlier", "granted")
"""The attributes of `OWNER` that say how the present owner came to the badge."""


def claim(table: Table, badge_id: str, base: int, now: Seconds, secret_digest: str = "") -> str:
    """Give a badge without views to an owner; return its secret, empty if the owner chose it.

    With the digest of a secret that the owner chose, the claim may be repeated and has the same
    response. Without one, a secret is generated, which can't be retrieved later. A void claim of
    another owner is replaced. Raises `TakenError` and `StorageError`.
    """
    secret, own_digest = _choose_secret(secret_digest)

    def write() -> str:
        owned = OwnedBadge.of(badge_id, table.get(keys.owner(badge_id)) or {})
        if not compare_digest(owned.digest, own_digest):
            summary = read_unviewed(table, badge_id)
            if not _is_free(owned, summary, now):
                raise taken_error(badge_id)
            table.write(
                summary.update(now, {"base": base} if base else {}, ("deleted", "milestone")),
                Put(owner_item(badge_id, own_digest, now), owned.unchanged),
                Delete(keys.milestones(badge_id)),  # of an owner before
                *move_key(owned, own_digest),
            )
        return secret

    return write_again(badge_id, write)


def grant(table: Table, badge_id: str, now: Seconds, secret_digest: str = "") -> str:
    """Give any badge to the holder of a new secret, as the operator wants; return it as `claim`.

    The badge may have views, another owner or no visitor yet, and the id may be any of its names.
    It keeps its count, names, base and history. With the digest of a secret of the owner's, the
    grant may be repeated and has the same response. Raises `StorageError`.
    """
    secret, own_digest = _choose_secret(secret_digest)

    def prepare(owned: OwnedBadge) -> Iterable[Write]:
        if owned.is_claimed and compare_digest(owned.digest, own_digest):
            return ()
        return prepare_replacement(table, owned, {"digest": own_digest, "granted": 1}, now)

    replace_owner(table, badge_id, prepare)
    return secret


def replace_owner(
    table: Table, badge_id: str, prepare: Callable[[OwnedBadge], Iterable[Write]]
) -> OwnedBadge:
    """Write what `prepare` returns for a badge as it was read; nothing if that is done already.

    Returns the badge as it was before. Raises the errors of `prepare`, and `StorageError`.
    """

    def write() -> OwnedBadge:
        owned = look_up(table, badge_id)
        if badge_id not in owned.names:  # it was deleted between two reads
            raise ConditionFailedError({})
        if writes := tuple(prepare(owned)):
            table.write(*writes)
        return owned

    return write_again(badge_id, write)


def release(table: Table, badge_id: str) -> bool:
    """Remove the owner of a badge, and keep the badge; return whether it had one.

    A badge with several names keeps them. Raises `StorageError`.
    """

    def prepare(owned: OwnedBadge) -> Iterable[Write]:
        if not owned.is_claimed:
            return
        key = keys.owner(owned.badge_id)
        if owned.names[1:]:
            gone = ("digest", "created", *TITLES)
            yield Update(key, remove=gone, condition=owned.unchanged)
        else:
            yield Delete(key, owned.unchanged)
        yield from move_key(owned)

    return replace_owner(table, badge_id, prepare).is_claimed


def _choose_secret(secret_digest: str) -> tuple[str, str]:
    """Return a new secret and its digest, or no secret and the digest of the owner's own."""
    if secret_digest:
        return "", secret_digest
    secret = secrets.token_urlsafe(SECRET_BYTES)
    return secret, digest(secret)


def prepare_replacement(
    table: Table, owned: OwnedBadge, owner: Mapping[str, Value], now: Seconds
) -> Iterator[Write]:
    """Write the owner, and check that the id is no alias and not deleted meanwhile.

    The summary of a badge with views is not written, because its views write it all the time.
    """
    yield update_owner(owned, {**dict.fromkeys(TITLES, 0), "created": int(now), **owner})
    yield from move_key(owned, text(owner, "digest"))
    summary = read(table, owned.badge_id)
    if summary.deleted or not summary.version:
        yield summary.update(now, {}, remove=("deleted",))
    else:
        own = attr("alias").missing() & attr("deleted").missing()
        yield Check(keys.summary(owned.badge_id), own)


def update_owner(owned: OwnedBadge, values: Mapping[str, Value]) -> Write:
    """Return the write of attributes of `OWNER`, which removes those that are empty."""
    return Update(
        keys.owner(owned.badge_id),
        values={name: value for name, value in values.items() if value},
        remove=tuple(name for name, value in values.items() if not value),
        condition=owned.unchanged,
    )


def move_key(owned: OwnedBadge, new_digest: str = "") -> Iterator[Write]:
    """Write the items by which the badges of a secret are found: a badge leaves its old secret.

    They have only keys, so putting one again changes nothing.
    """
    old_digest = owned.digest if owned.is_claimed else ""
    if old_digest == new_digest:
        return
    if old_digest:
        yield Delete(keys.owned(old_digest, owned.badge_id))
    if new_digest:
        yield Put(keys.owned(new_digest, owned.badge_id).item())


def owner_item(badge_id: str, secret_digest: str, now: Seconds) -> Item:
    """Return the item `OWNER` of a badge with one name."""
    return keys.owner(badge_id).item(digest=secret_digest, created=int(now))


def _is_free(owned: OwnedBadge, summary: Summary, now: Seconds) -> bool:
    """Return whether a badge without views and base has no owner, or one whose claim is void.

    A badge that its owner has reset may have had views.
    """
    if owned.aliases:
        return False
    is_set = summary.frozen or summary.milestone or summary.reset > owned.created * 1000
    is_kept = is_set or owned.proven or owned.granted
    return not owned.digest or (not is_kept and owned.created + CLAIM_SECONDS <= now)
