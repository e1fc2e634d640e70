"""The claim of an id, also repeated and overtaken, and the secret that opens its badge."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from chalicelib.counting import keys
from chalicelib.counting.milestones import Milestone
from chalicelib.http import tokens
from chalicelib.owners import changing, claiming, finding
from chalicelib.owners.finding import TRIES, NotClaimedError, TakenError, WrongSecretError
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailedError, Put, Update, Write
from simulation.clocks import NOON
from simulation.storage import FaultyTable, once, raising
from simulation.views import BADGE, fold, shown, view
from tests.unit.owners.owning import (
    LATER,
    LOST,
    OWN_DIGEST,
    again,
    change,
    claim,
    claimed,
    delete,
    items,
    owner,
    rename,
    visit,
)

WEEK = claiming.CLAIM_SECONDS
TAKEN = r"^octocat has an owner, views, a base or GitHub's numbers: "


def test_a_claim_leaves_only_a_digest_of_its_secret(table: Table) -> None:
    secret = claiming.claim(table, BADGE, 0, NOON)
    assert owner(table) == {
        "PK": "USER#octocat",
        "SK": "OWNER",
        "digest": hashlib.sha256(secret.encode()).hexdigest(),
        "created": int(NOON),
    }
    assert secret not in json.dumps(items(table))


@pytest.mark.parametrize(
    "item",
    [
        {"SK": keys.view(BADGE, view().ulid).sk, "ttl": 1},
        {"SK": "VIEWS", "count": 1},
        {"SK": "VIEWS", "base": 1},
        {"SK": "VIEWS", "alias": "another"},
        {"SK": "OWNER", "digest": "somebody's", "created": int(NOON)},
    ],
    ids=["live view", "count", "imported base", "name of another", "owner"],
)
def test_an_id_that_is_not_new_cannot_be_claimed_and_stays_as_it_is(
    table: Table, item: Item
) -> None:
    table.write(Put({"PK": "USER#octocat", **item}))
    before = items(table)
    with pytest.raises(TakenError, match=TAKEN):
        claim(table, base=5)
    assert items(table) == before


@pytest.mark.parametrize("is_folded", [False, True])
def test_a_view_that_is_folded_while_a_badge_is_claimed_keeps_it_free(
    table: Table, *, is_folded: bool
) -> None:
    reads = iter(["get"] * 3)

    def in_between(method: str) -> None:
        if method == "query" and next(reads, ""):
            visit(table)
            fold(table, LATER if is_folded else NOON)

    with pytest.raises(TakenError):
        claim(FaultyTable(table, before_read=in_between))
    assert owner(table) == {}


def test_one_of_two_concurrent_claims_succeeds(table: Table) -> None:
    secrets: list[str] = []
    first = once(lambda: secrets.append(claim(table, base=7)))
    with pytest.raises(TakenError):
        claim(FaultyTable(table, before_write=first), base=5)
    assert finding.authenticate(table, BADGE, *secrets).badge_id == BADGE
    assert shown(table) == 7


def test_a_repeated_claim_with_a_digest_has_the_same_answer(table: Table) -> None:
    """It has no secret, whatever became of the badge meanwhile, and however often it is asked."""
    lossy = FaultyTable(table, after_write=raising(LOST))
    with pytest.raises(UnavailableError):
        claiming.claim(lossy, BADGE, 5, NOON, OWN_DIGEST)
    visit(table)
    before = items(table)
    for _ in range(2):
        assert claiming.claim(table, BADGE, 5, NOON + 9, OWN_DIGEST) == ""
    assert items(table) == before
    assert (again(table, finding.look_up(table, BADGE)).digest, shown(table)) == (OWN_DIGEST, 6)
    for other in (tokens.digest("another"), ""):
        with pytest.raises(TakenError):
            claiming.claim(table, BADGE, 5, NOON, other)


def test_a_claim_that_the_table_tried_twice_still_answers_the_secret_it_made(table: Table) -> None:
    """The table lost its answer and tried again: then the claim itself is in the way."""
    retried = FaultyTable(table, after_write=raising(ConditionFailedError({0: None})))
    assert finding.authenticate(table, BADGE, claim(retried, base=5)).badge_id == BADGE
    assert len(retried.written) == 1


def test_a_void_claim_is_replaced_and_its_secret_no_longer_valid(table: Table) -> None:
    first = claim(table)
    with pytest.raises(TakenError):
        claim(table, now=NOON + WEEK - 1)
    second = claim(table, base=7, now=NOON + WEEK)
    assert finding.authenticate(table, BADGE, second).digest == tokens.digest(second)
    with pytest.raises(WrongSecretError):
        finding.authenticate(table, BADGE, first)
    assert shown(table) == 7


def test_a_claim_after_a_deletion_is_void_a_week_after_itself_too(table: Table) -> None:
    delete(table, claimed(table))
    claim(table, now=LATER)
    assert claim(table, now=LATER + WEEK)


@pytest.mark.parametrize(
    "wanted",
    [
        {"base": 1},
        {"frozen": True},
        {"name": "mona"},
        {"reset": True},
        {"milestones": (Milestone(1_000, "https://hooks.example/"),)},
    ],
    ids=str,
)
def test_a_badge_that_has_a_setting_keeps_its_owner(table: Table, wanted: dict[str, Any]) -> None:
    change(table, claimed(table), NOON + 1, **wanted)
    with pytest.raises(TakenError):
        claim(table, now=NOON + 2 * WEEK)


def test_a_claim_between_the_reads_of_another_is_not_replaced(table: Table) -> None:
    """The other one has read the void claim before it, and the summary after it."""
    claim(table)
    now, first = NOON + WEEK, list[str]()
    step = once(lambda: first.append(claim(table, now=now)), after=1)
    with pytest.raises(TakenError):
        claim(FaultyTable(table, before_read=step), now=now)
    assert finding.authenticate(table, BADGE, first[0]).badge_id == BADGE


def test_a_view_that_overtakes_the_next_claim_counts_for_the_new_owner(table: Table) -> None:
    claim(table)
    now = NOON + WEEK
    secret = claim(FaultyTable(table, before_write=once(lambda: visit(table, now))), now=now)
    assert finding.authenticate(table, BADGE, secret).badge_id == BADGE
    assert shown(table) == 1


def test_a_claim_that_is_always_overtaken_gives_up(table: Table) -> None:
    def overtake(_: Sequence[Write]) -> None:
        table.write(Update(keys.summary(BADGE), add={"version": 1}))

    raced = FaultyTable(table, before_write=overtake)
    with pytest.raises(UnavailableError, match=f"^octocat was changed by {TRIES} other writes"):
        claim(raced)
    assert len(raced.written) == TRIES
    assert owner(table) == {}


# ---- authenticate


@pytest.mark.parametrize("wrong", [lambda _: "", lambda secret: secret[:-1], tokens.digest])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_any_other_secret_is_wrong(
    table: Table, wrong: Callable[[str], str], *, is_deleted: bool
) -> None:
    secret = claim(table)
    owned = rename(table, finding.authenticate(table, BADGE, secret), "mona")
    if is_deleted:
        delete(table, owned)
    for name in (BADGE, "mona"):
        expected = NotClaimedError if is_deleted else WrongSecretError
        says = f"^{name} has no owner; " if is_deleted else "^this is not the secret of the badge$"
        with pytest.raises(expected, match=says):
            finding.authenticate(table, name, wrong(secret))


def test_digests_are_compared_in_constant_time() -> None:
    assert "return hmac.compare_digest(one, other)" in inspect.getsource(finding.is_same)
    for function in (finding.authenticate, changing.hand_over, claiming.claim):
        tree = ast.parse(inspect.getsource(function))
        calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        assert "is_same" in calls
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
