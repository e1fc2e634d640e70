"""The bodies of owners' requests: claims, proofs and changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chalicelib.badges.options import MAX_BASE
from chalicelib.counting import ids
from chalicelib.counting.milestones import MAX_MILESTONES, Milestone
from chalicelib.http.bodies import read_fields
from chalicelib.http.errors import BadRequestError
from chalicelib.http.tokens import new_token
from chalicelib.owners.changing import BadgeChange
from chalicelib.owners.proving import KEY, Proof
from chalicelib.settings import DIGEST

CLAIM = {"id", "base", "digest", "proof"}
CHANGE = {"base", "reset", "frozen", "rename", "milestones", "digest"}
MAX_COUNT = MAX_BASE
"""The highest count of a milestone."""
MAX_BODY_BYTES = 16_384
"""More than any claim or change has; a claim is read before its caller is known."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of an id without views; `own_digest` is empty if the owner chose no secret."""

    badge_id: str
    base: int = 0
    own_digest: str = ""


@dataclass(frozen=True, slots=True)
class NewProof:
    """A request for a challenge, with a new key."""

    proof: Proof


@dataclass(frozen=True, slots=True)
class HandOver:
    """A request to give the badge to the holder of the secret with this digest."""

    new_digest: str = field(repr=False)


def read_claim(body: bytes) -> Claim | NewProof | Proof:
    """Return the claim, or the step of a proof, in a body. Raises `BadRequestError`."""
    fields = read_fields(body, CLAIM, MAX_BODY_BYTES)
    badge_id = _id(fields.get("id"), "id")
    own_digest = _digest(fields["digest"]) if "digest" in fields else ""
    if "proof" not in fields:
        return Claim(badge_id, _base(fields.get("base", 0)), own_digest)
    if "base" in fields:
        raise BadRequestError("base: leave it out of a proof, which keeps the base of the badge")
    if fields["proof"] is not True:
        return Proof(badge_id, _key(fields["proof"]), own_digest)
    if own_digest:
        raise BadRequestError("digest: give it in the second request, with the key in proof")
    return NewProof(Proof(badge_id, new_token()))


def read_change(body: bytes) -> BadgeChange | HandOver:
    """Return the changes in a body. Raises `BadRequestError`."""
    fields = read_fields(body, CHANGE, MAX_BODY_BYTES)
    if "digest" in fields:
        return _read_hand_over(fields)
    wanted = BadgeChange(
        base=_base(fields["base"]) if "base" in fields else None,
        reset=_flag(fields.get("reset", False), "reset"),
        frozen=_flag(fields["frozen"], "frozen") if "frozen" in fields else None,
        name=_id(fields["rename"], "rename") if "rename" in fields else None,
        milestones=_milestones(fields["milestones"]) if "milestones" in fields else None,
    )
    if wanted == BadgeChange():
        raise BadRequestError(f"give at least one of {', '.join(sorted(CHANGE))}")
    return wanted


def _read_hand_over(fields: Mapping[str, Any]) -> HandOver:
    """Return a hand-over, which stands alone, so that its repetition needs no other change."""
    if len(fields) > 1:
        raise BadRequestError("digest: give it alone, and the other changes before it")
    return HandOver(_digest(fields["digest"]))


def _id(given: object, name: str) -> str:
    if not isinstance(given, str):
        raise BadRequestError(f"{name}: give an id, a text of 1 to {ids.MAX_CHARACTERS} characters")
    return ids.normalise(given)


def _base(given: object) -> int:
    return _whole(given, 0, MAX_BASE, "base")


def _whole(given: object, least: int, most: int, name: str) -> int:
    """Return a whole number; 5.0 is 5, too (JSON Schema, "Numeric Types")."""
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    if type(given) is not int or not least <= given <= most:
        raise BadRequestError(f"{name}: give a whole number from {least} to {most}")
    return given


def _milestones(given: object) -> tuple[Milestone, ...]:
    """Return milestones in the order of their counts, each with another count."""
    if not isinstance(given, list) or len(given) > MAX_MILESTONES:
        raise BadRequestError(f"milestones: give a list of at most {MAX_MILESTONES}, or []")
    found = {milestone.count: milestone for milestone in map(_milestone, given)}
    if len(found) < len(given):
        raise BadRequestError("milestones: give each count once")
    return tuple(found[count] for count in sorted(found))


def _milestone(given: object) -> Milestone:
    match given:
        case {"count": count, "url": str(url), **rest} if not rest:
            return Milestone(_whole(count, 1, MAX_COUNT, "milestones: count"), url)
    raise BadRequestError('milestones: give each as {"count": 1000, "url": "https://…"}')


def _digest(given: object) -> str:
    if not isinstance(given, str) or DIGEST.fullmatch(given) is None:
        raise BadRequestError(
            "digest: give the SHA-256 digest of a secret of yours, 64 hex digits in lower case"
        )
    return given


def _key(given: object) -> str:
    """Return the key of a proof. A shorter one could be guessed from its challenge."""
    if not isinstance(given, str) or KEY.fullmatch(given) is None:
        raise BadRequestError(
            "proof: give true for a challenge, then the key that was answered with it:"
            " 43 letters, digits, - and _"
        )
    return given


def _flag(given: object, name: str) -> bool:
    if not isinstance(given, bool):
        raise BadRequestError(f"{name}: give true or false")
    return given
