"""The names that a proof takes, and the badges that keep the rest.

A proof takes its name from a badge whose owner has not proven it: the name becomes a badge of its
own. If the badge is stored under this name, the proof takes the badge, and the names that its owner
has proven become badges of their own. A badge without an owner, or that was last proven by this
name, or of which the requester has the secret, is taken with all names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chalicelib.counting.summary import read
from chalicelib.owners.claiming import owner_item, prepare_replacement, update_owner
from chalicelib.owners.errors import TakenError
from chalicelib.owners.finding import OwnedBadge, is_same
from chalicelib.storage.conditions import attr
from chalicelib.storage.items import Item, Value
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put, Write
from chalicelib.units import Seconds


def prepare_taking(
    table: Table, owned: OwnedBadge, name: str, own_digest: str, now: Seconds
) -> Iterator[Write]:
    """Give a name to whoever has proven it; nothing is left to write if they have it already.

    The lives of detached names go on, so that no view is lost that was stored under an alias and is
    not folded. Raises `TakenError`.
    """
    is_holder = owned.is_claimed and is_same(owned.digest, own_digest)
    if is_holder and name in owned.proofs:
        return
    detached = {} if is_holder else _find_detached(owned, name, own_digest)
    names: list[Value] = [one for one in owned.names[1:] if one not in detached]
    earlier: list[Value] = [one for one in owned.proofs if one not in {name, *detached}]
    if name in detached:
        yield update_owner(owned, {"names": names})
    else:
        owner: Item = {"digest": own_digest, "proven": name, "names": names, "earlier": earlier}
        yield from prepare_replacement(table, owned, owner, now)
    for one, digest in detached.items():
        yield read(table, one).update(now, {}, remove=("alias",))
        yield Put({**owner_item(one, digest, now), "proven": one}, attr("SK").missing())


def _find_detached(owned: OwnedBadge, name: str, own_digest: str) -> Mapping[str, str]:
    """Return the aliases that leave a badge of another owner, with the digests of their owners."""
    if name in owned.proofs[:-1]:
        raise TakenError(
            f"the owner of {name} has proven a later name of the badge: ask the operator"
        )
    if name in owned.proofs or not owned.is_claimed:
        return {}
    if name == owned.badge_id:
        return dict.fromkeys(owned.proofs, owned.digest)
    return {name: own_digest}
