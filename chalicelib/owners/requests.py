"""The bodies of owners' requests: claims, proofs and changes."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from chalicelib.badges.options import BASE, MAX_BASE
from chalicelib.counting import ids
from chalicelib.counting.milestones import MAX_MILESTONES, Milestone
from chalicelib.http.errors import BadRequestError
from chalicelib.http.fields import (
    Body,
    Field,
    array,
    boolean,
    integer,
    record,
    string,
    text_like,
    without,
)
from chalicelib.outgoing.urls import MAX_URL_CHARACTERS
from chalicelib.owners.changing import BadgeChange
from chalicelib.owners.finding import MAX_NAMES
from chalicelib.owners.proving import KEY
from chalicelib.owners.removing import MAX_DAYS, Hours, parse_hour
from chalicelib.settings import DIGEST

MILESTONE_COUNT = integer(1, MAX_BASE)
MILESTONE = record(
    "Milestone",
    {
        "count": MILESTONE_COUNT,
        "url": string(
            format="uri",
            maxLength=MAX_URL_CHARACTERS,
            description="The URL that gets a POST, like the URL of an event.",
        ),
    },
)
AN_HOUR = string(format="date-time")
REMOVED_HOURS = record("RemovedHours", {"from": AN_HOUR, "to": AN_HOUR})
MAX_BODY_BYTES = 16_384
"""More than any claim or change has; a claim is read before its caller is known."""


def _id(given: object) -> str:
    if isinstance(given, str):
        return ids.normalise(given)
    raise ValueError(f"give an id, a text of 1 to {ids.MAX_CHARACTERS} characters")


def _whole(given: object, least: int, most: int) -> int:
    """Return a whole number; 5.0 is 5, too (JSON Schema, "Numeric Types")."""
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    if type(given) is not int or not least <= given <= most:
        raise ValueError(f"give a whole number from {least} to {most}")
    return given


def _milestones(given: object) -> tuple[Milestone, ...]:
    """Return milestones in the order of their counts, each with another count."""
    if not isinstance(given, list) or len(given) > MAX_MILESTONES:
        raise ValueError(f"give a list of at most {MAX_MILESTONES}, or []")
    found = {milestone.count: milestone for milestone in map(_milestone, given)}
    if len(found) < len(given):
        raise ValueError("give each count once")
    return tuple(found[count] for count in sorted(found))


def _milestone(given: object) -> Milestone:
    match given:
        case {"count": count, "url": str(url), **rest} if not rest:
            try:
                return Milestone(_whole(count, 1, MAX_BASE), url)
            except ValueError as wrong:
                raise ValueError(f"count: {wrong}") from None
    raise ValueError('give each as {"count": 1000, "url": "https://…"}')


def _hours(given: object) -> Hours:
    match given:
        case {"from": str(first), "to": str(until), **rest} if not rest:
            return Hours(parse_hour(first), parse_hour(until))
    raise ValueError('give {"from": "2026-11-21T08:00Z", "to": "2026-11-21T10:00Z"}')


def _proof(given: object) -> str:
    """Return the key of a proof, or an empty text for a new one.

    A shorter key could be guessed from its challenge.
    """
    return "" if given is True else _key(given)


_base = partial(_whole, least=0, most=MAX_BASE)
_key = text_like(
    KEY,
    "give true for a challenge, then the key that was answered with it: 43 letters, digits, -"
    " and _",
)
_digest = text_like(
    DIGEST, "give the SHA-256 digest of a secret of yours, 64 hex digits in lower case"
)


class ClaimBody(Body):
    """A claim or a proof. A proof has no `base`, and its first request no `digest`."""

    max_bytes = MAX_BODY_BYTES
    rules: ClassVar = {
        "anyOf": [
            without("proof"),
            without("base") | {"properties": {"proof": string(KEY)}},
            without("base", "digest"),
        ]
    }
    badge_id = Field(_id, ids.ID, name="id")
    base = Field[int | None](
        _base,
        BASE | {"default": 0},
        "The count to start from.",
        default=None,
    )
    digest = Field(
        _digest,
        string(DIGEST),
        "The SHA-256 digest of a secret that the owner chose, in hex. Only the digest is stored.",
        default="",
    )
    proof = Field[str | None](
        _proof,
        {"oneOf": [{"const": True}, string(KEY)]},
        "A proof that the id is the requester's, which the badge of any id can have: `true` for a"
        " challenge, then the key that was returned with it.",
        default=None,
    )

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        if self.proof is not None and self.base is not None:
            raise BadRequestError(
                "base: leave it out of a proof, which keeps the base of the badge"
            )
        if self.proof == "" and self.digest:
            raise BadRequestError("digest: give it in the second request, with the key in proof")


ALONE = ("digest", "remove")
"""The fields whose repetition must need no other change."""


class ChangeBody(Body):
    """Changes of a badge: at least one. `digest` and `remove` stand alone; `reset` does if true."""

    max_bytes = MAX_BODY_BYTES
    rules: ClassVar = {
        "anyOf": [
            *({"required": [name], "maxProperties": 1} for name in ALONE),
            *(
                without(*ALONE) | {"required": [name]}
                for name in ("base", "frozen", "rename", "milestones")
            ),
            without(*ALONE) | {"required": ["reset"], "properties": {"reset": {"const": True}}},
        ]
    }
    base = Field[int | None](_base, BASE, "The count to start from.", default=None)
    reset = Field(
        boolean,
        {"type": "boolean"},
        "Count from 0. Earlier views do not count any more. The base becomes 0 unless it is given"
        " too. GitHub's numbers stay.",
        default=False,
    )
    digest = Field(
        _digest,
        string(DIGEST),
        "Alone: the SHA-256 digest, in hex, of the secret that replaces the present one. Whoever"
        " has it owns the badge from then on.",
        default="",
    )
    frozen = Field[bool | None](
        boolean, {"type": "boolean"}, "Stop counting, or count again.", default=None
    )
    rename = Field[str | None](
        _id,
        ids.ID,
        f"A new name. The old names stay valid, {MAX_NAMES} in all.",
        default=None,
    )
    milestones = Field[tuple[Milestone, ...] | None](
        _milestones,
        array(MILESTONE, MAX_MILESTONES),
        "All milestones, each with another count; `[]` removes them. When the count with the base"
        " reaches one, minutes after the views were taken, its URL gets one signed webhook. A new"
        " milestone must be higher than the count. It needs `EVENTS=on` and `WEBHOOK_SECRETS`.",
        default=None,
    )

    remove = Field[Hours | None](
        _hours,
        REMOVED_HOURS,
        "Alone: remove the views of whole hours (UTC, `to` excluded) from the count and the"
        f" history, at most {MAX_DAYS} days at a time. The hours must be folded, so `to` is some"
        " twenty minutes ago. A view that comes late counts in the hour in which it comes.",
        default=None,
    )

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        alone = [name for name in ALONE if name in self.given]
        if alone and len(self.given) > 1:
            raise BadRequestError(f"{alone[0]}: give it alone, and the other changes before it")
        if not alone and self.change == BadgeChange():
            raise BadRequestError(f"give at least one of {', '.join(sorted(self.fields))}")

    @property
    def change(self) -> BadgeChange:
        """Return the changes of all but the owner."""
        return BadgeChange(self.base, self.reset, self.frozen, self.rename, self.milestones)
