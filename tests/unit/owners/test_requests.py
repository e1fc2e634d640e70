"""The bodies of owners' requests: what is wrong is refused with the fix."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.badges.options import MAX_BASE
from chalicelib.http.errors import BadRequestError, TooLargeError
from chalicelib.http.fields import Body
from chalicelib.owners.requests import ChangeBody, ClaimBody

CHANGES = "base, digest, frozen, milestones, remove, rename, reset"
GOAL = {"count": 1000, "url": "https://example.com/"}
MILESTONE = 'milestones: give each as {"count": 1000, "url": "https://…"}'
REMOVED = {"from": "2026-03-13T08:00Z", "to": "2026-03-13T10:00Z"}
NO_HOUR = "remove: give a whole hour in UTC like 2026-11-21T08:00Z, not 'now'"
HOURS = 'remove: give {"from": "2026-11-21T08:00Z", "to": "2026-11-21T10:00Z"}'
MILESTONE_COUNT = f"milestones: count: give a whole number from 1 to {MAX_BASE}"
ID = "id: give an id, a text of 1 to 200 characters"
DIGEST = "digest: give the SHA-256 digest of a secret of yours, 64 hex digits in lower case"
BASE = f"base: give a whole number from 0 to {MAX_BASE}"
PROOF = "proof: give true for a challenge, then the key that was answered with it: 43 letters,"
LATER = "digest: give it in the second request, with the key in proof"
FIELDS = "there are base, digest, id, proof"


def refusal(kind: type[Body], fields: dict[str, Any]) -> str:
    with pytest.raises(BadRequestError) as refused:
        kind(json.dumps(fields).encode())
    return str(refused.value)


@pytest.mark.parametrize("kind", [ClaimBody, ChangeBody])
def test_a_body_of_more_than_16_kib_is_refused_before_it_is_read(kind: type[Body]) -> None:
    """Anybody may send one, and JSON of a few hundred KB stops all others for a tenth of a second.

    The longest id with each character escaped fits.
    """
    escaped = '"\\u00e9' + "\\u00e9" * 199 + '"'
    fits = f'{{"id": {escaped}}}' if kind is ClaimBody else f'{{"rename": {escaped}}}'
    assert kind(fits.ljust(16_384).encode()).given
    with pytest.raises(TooLargeError, match="the body has 16385 bytes: give at most 16384"):
        kind(fits.ljust(16_385).encode())


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"id": None}, ID),
        ({"id": ""}, "the id is empty: give one like owner/name"),
        ({"id": "x" * 201}, "the id has 201 characters and 201 bytes: give at most 200 and 400"),
        *(
            ({"base": wrong}, BASE)
            for wrong in (-1, MAX_BASE + 1, 1.5, 1e15 + 1, float("inf"), "1", True)
        ),
        *(({"digest": wrong}, DIGEST) for wrong in (5, "a" * 63, "a" * 65, "A" * 64)),
        ({"reset": True}, f"no field 'reset': {FIELDS}"),
        ({"\ud800": 1}, f"no field '\\ud800': {FIELDS}"),
        *(({"proof": wrong}, PROOF) for wrong in (False, "x" * 42, "x" * 44)),
        ({"proof": True, "base": 5}, "base: leave it out of a proof, which keeps the base"),
        ({"proof": True, "digest": "0" * 64}, LATER),
        ({"proof": "x" * 43, "digest": "0"}, DIGEST),
    ],
)
def test_a_malformed_claim_is_refused_with_the_fix(fields: dict[str, Any], says: str) -> None:
    assert refusal(ClaimBody, {"id": "octocat/hello"} | fields).startswith(says)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, f"give at least one of {CHANGES}"),
        ({"reset": False}, f"give at least one of {CHANGES}"),
        ({"base": 10**40}, BASE),
        ({"reset": 1}, "reset: give true or false"),
        ({"frozen": 0}, "frozen: give true or false"),
        ({"remove": {"from": "2026-11-20T08:00Z"}}, HOURS),
        ({"remove": {"from": "2026-11-21T08:00Z", "to": "now"}}, NO_HOUR),
        ({"remove": REMOVED, "base": 1}, "remove: give it alone, and the other changes before it"),
        ({"rename": None}, "rename: give an id, a text of 1 to 200 characters"),
        ({"rename": 5}, "rename: give an id, a text of 1 to 200 characters"),
        ({"id": "mona"}, f"no field 'id': there are {CHANGES}"),
        ({"milestones": None}, "milestones: give a list of at most 5, or []"),
        ({"milestones": [GOAL] * 6}, "milestones: give a list of at most 5, or []"),
        ({"milestones": [GOAL] * 2}, "milestones: give each count once"),
        ({"milestones": [GOAL | {"at": 1}]}, MILESTONE),
        ({"milestones": [{"count": 1000}]}, MILESTONE),
        ({"milestones": [GOAL | {"count": 0}]}, MILESTONE_COUNT),
        ({"milestones": [GOAL | {"count": MAX_BASE + 1}]}, MILESTONE_COUNT),
    ],
)
def test_a_malformed_change_is_refused_with_the_fix(fields: dict[str, Any], says: str) -> None:
    assert refusal(ChangeBody, fields) == says
