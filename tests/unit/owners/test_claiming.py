"""The claim of an id, the secret that opens its badge, and the deletion with its tombstones."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from chalicelib.counting import badge_count, keys
from chalicelib.counting.milestones import Milestone
from chalicelib.http import tokens
from chalicelib.owners import changing, claiming, finding
from chalicelib.owners.finding import (
    TRIES,
    NotClaimedError,
    OwnedBadge,
    TakenError,
    WrongSecretError,
)
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailedError, Put, Update, Write
from simulation.clocks import NOON
from simulation.storage import FaultyTable, MemoryTable, once, raising
from simulation.views import (
    AT_NOON,
    BADGE,
    DAY,
    WINDOWS,
    days,
    fold,
    put_summary,
    put_views,
    shown,
    store,
    summary,
    view,
)
from tests.unit.owners import owning
from tests.unit.owners.test_changing import CHANGES

WEEK = claiming.CLAIM_SECONDS
TAKEN = r"^octocat has an owner, views, a base or GitHub's numbers: "


def test_a_claim_leaves_only_a_digest_of_its_secret(table: Table) -> None:
    secret = claiming.claim(table, BADGE, 0, NOON)
    assert owning.owner(table) == {
        "PK": "USER#octocat",
        "SK": "OWNER",
        "digest": hashlib.sha256(secret.encode()).hexdigest(),
        "created": int(NOON),
    }
    assert secret not in json.dumps(owning.items(table))


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
    before = owning.items(table)
    with pytest.raises(TakenError, match=TAKEN):
        owning.claim(table, base=5)
    assert owning.items(table) == before


@pytest.mark.parametrize("is_folded", [False, True])
def test_a_view_that_is_folded_while_a_badge_is_claimed_keeps_it_free(
    table: Table, *, is_folded: bool
) -> None:
    reads = iter(["get"] * 3)

    def in_between(method: str) -> None:
        if method == "query" and next(reads, ""):
            owning.visit(table)
            fold(table, owning.LATER if is_folded else NOON)

    with pytest.raises(TakenError):
        owning.claim(FaultyTable(table, before_read=in_between))
    assert owning.owner(table) == {}


def test_one_of_two_concurrent_claims_succeeds(table: Table) -> None:
    secrets: list[str] = []
    first = once(lambda: secrets.append(owning.claim(table, base=7)))
    with pytest.raises(TakenError):
        owning.claim(FaultyTable(table, before_write=first), base=5)
    assert finding.authenticate(table, BADGE, *secrets).badge_id == BADGE
    assert shown(table) == 7


def test_a_repeated_claim_with_a_digest_has_the_same_answer(table: Table) -> None:
    """It has no secret, whatever became of the badge meanwhile, and however often it is asked."""
    lossy = FaultyTable(table, after_write=raising(owning.LOST))
    with pytest.raises(UnavailableError):
        claiming.claim(lossy, BADGE, 5, NOON, owning.OWN_DIGEST)
    owning.visit(table)
    before = owning.items(table)
    for _ in range(2):
        assert claiming.claim(table, BADGE, 5, NOON + 9, owning.OWN_DIGEST) == ""
    assert owning.items(table) == before
    assert (owning.again(table, finding.look_up(table, BADGE)).digest, shown(table)) == (
        owning.OWN_DIGEST,
        6,
    )
    for other in (tokens.digest("another"), ""):
        with pytest.raises(TakenError):
            claiming.claim(table, BADGE, 5, NOON, other)


def test_a_claim_that_the_table_tried_twice_still_answers_the_secret_it_made(table: Table) -> None:
    """The table lost its answer and tried again: then the claim itself is in the way."""
    retried = FaultyTable(table, after_write=raising(ConditionFailedError({0: None})))
    assert finding.authenticate(table, BADGE, owning.claim(retried, base=5)).badge_id == BADGE
    assert len(retried.written) == 1


def test_a_void_claim_is_replaced_and_its_secret_no_longer_valid(table: Table) -> None:
    first = owning.claim(table)
    with pytest.raises(TakenError):
        owning.claim(table, now=NOON + WEEK - 1)
    second = owning.claim(table, base=7, now=NOON + WEEK)
    assert finding.authenticate(table, BADGE, second).digest == tokens.digest(second)
    with pytest.raises(WrongSecretError):
        finding.authenticate(table, BADGE, first)
    assert shown(table) == 7


def test_a_claim_after_a_deletion_is_void_a_week_after_itself_too(table: Table) -> None:
    owning.delete(table, owning.claimed(table))
    owning.claim(table, now=owning.LATER)
    assert owning.claim(table, now=owning.LATER + WEEK)


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
    owning.change(table, owning.claimed(table), NOON + 1, **wanted)
    with pytest.raises(TakenError):
        owning.claim(table, now=NOON + 2 * WEEK)


def test_a_claim_between_the_reads_of_another_is_not_replaced(table: Table) -> None:
    """The other one has read the void claim before it, and the summary after it."""
    owning.claim(table)
    now, first = NOON + WEEK, list[str]()
    step = once(lambda: first.append(owning.claim(table, now=now)), after=1)
    with pytest.raises(TakenError):
        owning.claim(FaultyTable(table, before_read=step), now=now)
    assert finding.authenticate(table, BADGE, first[0]).badge_id == BADGE


def test_a_view_that_overtakes_the_next_claim_counts_for_the_new_owner(table: Table) -> None:
    owning.claim(table)
    now = NOON + WEEK
    secret = owning.claim(
        FaultyTable(table, before_write=once(lambda: owning.visit(table, now))), now=now
    )
    assert finding.authenticate(table, BADGE, secret).badge_id == BADGE
    assert shown(table) == 1


def test_a_claim_that_is_always_overtaken_gives_up(table: Table) -> None:
    def overtake(_: Sequence[Write]) -> None:
        table.write(Update(keys.summary(BADGE), add={"version": 1}))

    raced = FaultyTable(table, before_write=overtake)
    with pytest.raises(UnavailableError, match=f"^octocat was changed by {TRIES} other writes"):
        owning.claim(raced)
    assert len(raced.written) == TRIES
    assert owning.owner(table) == {}


# ---- authenticate


@pytest.mark.parametrize("wrong", [lambda _: "", lambda secret: secret[:-1], tokens.digest])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_any_other_secret_is_wrong(
    table: Table, wrong: Callable[[str], str], *, is_deleted: bool
) -> None:
    secret = owning.claim(table)
    owned = owning.rename(table, finding.authenticate(table, BADGE, secret), "mona")
    if is_deleted:
        owning.delete(table, owned)
    for name in (BADGE, "mona"):
        expected = NotClaimedError if is_deleted else WrongSecretError
        says = f"^{name} has no owner; " if is_deleted else "^this is not the secret of the badge$"
        with pytest.raises(expected, match=says):
            finding.authenticate(table, name, wrong(secret))


def test_digests_are_compared_in_constant_time() -> None:
    for function in (finding.authenticate, changing.hand_over, claiming.claim):
        tree = ast.parse(inspect.getsource(function))
        calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        assert "compare_digest" in calls
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]


# ---- the deletion

TOMBSTONE = WINDOWS.retention + 7 * DAY
RENEWED = {"version", "watermark", "reset", "ttl"}
"""What another request of the same kind sets again."""


def state(table: Table, *names: str) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in item.items() if name not in RENEWED}
        for badge_id in names
        for item in owning.items(table, badge_id)
    ]


def test_a_deleted_badge_leaves_a_tombstone_for_a_retention_and_a_week(table: Table) -> None:
    secret = owning.claim(table, base=10)
    owned = owning.rename(table, finding.authenticate(table, BADGE, secret), "mona")
    owning.put_day(table, "2026-03-12", views=4)
    owning.visit(table)
    fold(table, owning.LATER)
    assert store(table, view(AT_NOON + 9_000, hot=True), now=owning.LATER) == {}
    owning.change(table, owned, frozen=True)
    owning.delete(table, owned, owning.LATER)
    ended = int(owning.LATER * 1000) + owning.AHEAD
    for name in (BADGE, "mona"):
        tombstone = summary(table, name)
        assert tombstone.pop("version")
        assert tombstone == {
            "count": 0,
            "watermark": ended,
            "reset": ended,
            "deleted": tokens.digest(secret),
            "created": int(NOON),
            "ttl": ended // 1000 + TOMBSTONE,
        }
    assert (days(table), owning.owner(table)) == ({}, {})
    count = badge_count.read(table, BADGE)
    assert (count.shown, count.summary.frozen) == (0, False)


def test_a_tombstone_ends_only_after_the_days_are_deleted(table: Table) -> None:
    """Otherwise a new life could have the days of this one."""
    secret = owning.claim(table)
    owning.put_day(table, "2026-03-12", views=4)
    broken = FaultyTable(table, before_write=raising(None, UnavailableError("throttled")))
    with pytest.raises(UnavailableError):
        owning.delete(broken, finding.authenticate(table, BADGE, secret))
    assert "ttl" not in summary(table)
    assert list(days(table)) == ["2026-03-12"]
    owning.delete(table, finding.authenticate(table, BADGE, secret))
    assert "ttl" in summary(table)
    assert days(table) == {}


def test_a_repeated_deletion_does_not_change_the_new_life(table: Table) -> None:
    """Views have come, counted or live, before the same request is asked again."""
    secret = owning.claim(table)
    owning.delete(table, finding.authenticate(table, BADGE, secret))
    owning.visit(table, owning.LATER)
    for now in (owning.LATER, owning.LATER + 5_000):
        owning.delete(table, finding.authenticate(table, BADGE, secret), now)
        assert shown(table) == 1
        fold(table, owning.LATER + 5_000)
    assert "ttl" not in summary(table)


# ---- what comes in between


def test_a_new_life_that_begins_while_a_tombstone_is_written_stays(table: Table) -> None:
    owned = owning.claimed(table)

    def live_again(writes: Sequence[Write]) -> None:
        if "ttl" in getattr(writes[0], "values", {}):
            owning.visit(table, owning.LATER)
            fold(table, owning.LATER + 1_000)

    owning.delete(FaultyTable(table, before_write=live_again), owned)
    assert ("ttl" in summary(table), shown(table)) == (False, 1)


@pytest.mark.parametrize("is_claimed", [False, True])
def test_of_two_deletions_the_second_finds_it_done_unless_somebody_else_has_the_badge(
    table: Table, *, is_claimed: bool
) -> None:
    owned = owning.claimed(table)
    raced = owning.deleted_meanwhile(table, owned, is_claimed=is_claimed)
    if is_claimed:
        with pytest.raises(WrongSecretError, match="octocat has another owner now"):
            owning.delete(raced, owned)
    else:
        owning.delete(raced, owned)
    assert shown(table) == 3 * is_claimed
    assert bool(owning.owner(table)) == is_claimed


@pytest.mark.parametrize("step", ["before_write", "before_read"])
def test_a_badge_that_is_renamed_while_it_is_deleted_is_deleted_by_every_name(
    table: Table, step: str
) -> None:
    """The new name would lead nowhere, and could never be claimed."""
    owned = owning.claimed(table)
    owning.delete(owning.renamed_meanwhile(table, owned, step), owned)
    assert owning.owner(table) == {}
    assert "ttl" in summary(table)
    assert "ttl" in summary(table, "mona")
    owning.claimed(table, "mona")


def test_tombstones_that_another_deletion_left_unended_are_ended_by_every_name(
    table: Table,
) -> None:
    owned = owning.rename(table, owning.claimed(table), "mona")

    def dies() -> None:
        with pytest.raises(UnavailableError):
            owning.delete(FaultyTable(table, after_write=raising(owning.LOST)), owned)

    owning.delete(FaultyTable(table, before_write=once(dies)), owned)
    assert "ttl" in summary(table)
    assert "ttl" in summary(table, "mona")


def test_a_concurrent_claim_of_a_name_does_not_keep_the_other_tombstones(table: Table) -> None:
    owned = owning.rename(table, owning.claimed(table), "mona")
    owning.delete(FaultyTable(table, after_write=once(lambda: owning.claim(table))), owned)
    assert "ttl" not in summary(table)
    assert "ttl" in summary(table, "mona")


# ---- lost answers


def fill(table: Table, owned: OwnedBadge) -> None:
    """Give a badge a count, a finished day, a live view and another name."""
    owning.rename(table, owned, "lisa")
    put_views(table, AT_NOON - DAY * 1000, AT_NOON)
    put_summary(
        table, base=2, count=3, today={"day": "2026-03-13", "h12": 3}, watermark=1, version=9
    )
    owning.put_day(table, "2026-03-12", views=3)


def do(table: Table, secret: str, wanted: dict[str, Any] | None) -> None:
    owned = finding.authenticate(table, BADGE, secret)
    if wanted is None:
        owning.delete(table, owned)
    else:
        owning.change(table, owned, **wanted)


@pytest.mark.parametrize("wanted", [*CHANGES, None], ids=str)
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_request_whose_answer_is_lost_is_done_and_has_the_same_answer_again(
    table: Table, wanted: dict[str, Any] | None, place: int
) -> None:
    """At any of its writes; the same request, asked again by its secret, leaves the same."""
    secret, twin = tokens.new_token(), MemoryTable()
    for one in (table, twin):
        claiming.claim(one, BADGE, 2, NOON, tokens.digest(secret))
        fill(one, finding.authenticate(one, BADGE, secret))
    failures: list[Exception | None] = [None] * place + [owning.LOST]
    try:
        do(FaultyTable(table, after_write=raising(*failures)), secret, wanted)
    except UnavailableError:
        do(table, secret, wanted)
    do(twin, secret, wanted)
    names = (BADGE, "lisa", "mona")
    assert [shown(table, name) for name in names] == [shown(twin, name) for name in names]
    assert state(table, *names) == state(twin, *names)
