"""The proof of ownership: whoever can put a line into a public file owns the badge of its id.

The requester has a random key, and the file has a digest of it, the challenge. So readers of the
file can't use the proof, and nothing is stored until it is found. The owner's secret is derived
from the key, so a repeated request has the same response.

A proof takes its name from a badge whose owner has not proven it: the name becomes a badge of its
own. If the badge is stored under this name, the proof takes the badge, and the names that its owner
has proven become badges of their own. A badge without an owner, or that was last proven by this
name, or of which the requester has the secret, is taken with all names.

An id is looked for at most once in `LOOK_SECONDS`, and everybody shares what was found. So a
stranger who asks all the time delays the owner by this time at most, and can't lock them out.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from chalicelib.counting.summary import read
from chalicelib.http.errors import ClientError
from chalicelib.http.tokens import digest
from chalicelib.lazy import lazy
from chalicelib.owners.claiming import (
    SECRET_BYTES,
    move_key,
    owner_item,
    prepare_replacement,
    replace_owner,
    update_owner,
)
from chalicelib.owners.finding import OwnedBadge, OwnerError, TakenError, is_same, look_up
from chalicelib.owners.places import Place
from chalicelib.storage.conditions import attr, unchanged
from chalicelib.storage.items import Item, Key, Value, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailedError, Put, Write
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from chalicelib.outgoing import fetching
    from chalicelib.outgoing.fetching import Fetcher
else:
    fetching = lazy("chalicelib.outgoing.fetching")

PARTITION = "PROOF#"
SORT = "PROOF"
LOOK_SECONDS = 10
"""The shortest time between two fetches for one id."""
KEEP_SECONDS = 3_600
"""The time after which TTL removes what was found."""
MAX_CHALLENGES = 100
"""Challenges of a file that are kept for the requests of others."""
KEY = re.compile("[A-Za-z0-9_-]{43}")
"""A key as `new_token` makes it."""
CHALLENGE = re.compile("vu-mi-[0-9a-f]{64}")
MISSING = "the file does not have this line"


class NotProvenError(OwnerError):
    """The file of a proof does not have the challenge."""

    status = 409
    code = "not_proven"

    def __init__(self, challenge: str, url: str, found: str) -> None:
        super().__init__(
            f"the proof was not found: {found}. Add the line {challenge} to the file at {url}, and"
            " send the same request again"
        )
        self.details = {"challenge": challenge, "url": url, "found": found}


class TooSoonError(ClientError):
    """The proof of this id was looked for a moment ago."""

    status = 429
    code = "too_many_requests"

    def __init__(self, seconds: int, found: str) -> None:
        super().__init__(
            f"the proof of this id was looked for a moment ago ({found}): try again in {seconds} s"
        )
        self.headers = {"Retry-After": str(seconds)}


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof that is asked for: the id, the requester's key, and their own digest or none."""

    badge_id: str
    key: str = field(repr=False)
    own_digest: str = ""

    @property
    def challenge(self) -> str:
        """Return the line that the file must have; it does not tell the key."""
        text = f"vu-mi proof 1\n{self.badge_id}\n{self.key}"
        return "vu-mi-" + hashlib.sha256(text.encode()).hexdigest()

    @property
    def secret(self) -> str:
        """Return the secret of the badge, or an empty text if the owner has a digest."""
        if self.own_digest:
            return ""
        message = f"vu-mi secret 1\n{self.badge_id}"
        derived = hmac.digest(self.key.encode(), message.encode(), "sha256")
        return base64.urlsafe_b64encode(derived[:SECRET_BYTES]).decode()

    @property
    def digest(self) -> str:
        return self.own_digest or digest(self.secret)


@dataclass(frozen=True, slots=True)
class ProofSearch:
    """The search for proofs, with what it needs: the clocks of this process, and the network."""

    table: Table
    fetcher: Callable[[], Fetcher]
    clock: Callable[[], Seconds]

    def prove(self, proof: Proof, place: Place, now: Seconds) -> None:
        """Give an id to whoever has proven it, or the badge that has it.

        A repeated request of the owner has the same response, without a search. Raises
        `OwnerError`, `TooSoonError`, `BusyError` and `StorageError`.
        """
        name, table = proof.badge_id, self.table
        prepare = partial(prepare_taking, table, name=name, own_digest=proof.digest, now=now)
        if any(prepare(look_up(table, name))):
            self._find(proof, place)
            replace_owner(table, name, prepare)

    def _find(self, proof: Proof, place: Place) -> None:
        """Return if the proof is there. Raises `NotProvenError` and `TooSoonError`."""
        key, now = Key(PARTITION + proof.badge_id, SORT), int(self.clock())
        earlier = self.table.get(key) or {}
        wait = LOOK_SECONDS - abs(now - number(earlier, "at"))
        if wait > 0:
            challenges = earlier.get("challenges")
            if isinstance(challenges, list) and proof.challenge in challenges:
                return
            raise TooSoonError(wait, text(earlier, "found") or "it is being looked for")
        fetcher = self.fetcher()
        look = key.item(at=now, ttl=now + KEEP_SECONDS)
        try:
            self.table.write(Put(look, unchanged("at", number(earlier, "at"))))
        except ConditionFailedError:
            raise TooSoonError(LOOK_SECONDS, "it is being looked for") from None
        lines, found = _fetch(fetcher, place)
        self.table.write(Put({**look, "found": found, "challenges": [*lines[:MAX_CHALLENGES]]}))
        if proof.challenge not in lines:
            raise NotProvenError(proof.challenge, place.url, found)


def _fetch(fetcher: Fetcher, place: Place) -> tuple[Sequence[str], str]:
    """Return the challenges in the file at a place, and a description of what was found."""
    try:
        body = fetcher.fetch(place.url, is_listed=place.is_listed)
    except fetching.FetchError as failure:
        return (), str(failure)
    lines = (line.strip() for line in body.decode(errors="replace").splitlines())
    return [line for line in lines if CHALLENGE.fullmatch(line)], MISSING


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
    for one, its_digest in detached.items():
        yield read(table, one).update(now, {}, remove=("alias",))
        yield Put({**owner_item(one, its_digest, now), "proven": one}, attr("SK").missing())
        yield from move_key(OwnedBadge(one), its_digest)


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
