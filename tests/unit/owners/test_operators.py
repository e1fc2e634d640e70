"""The operator's requests for any badge, and the hand-over of a badge by its owner."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chalicelib.counting import badge_count, keys, milestones, storing
from chalicelib.counting.milestones import Milestone
from chalicelib.counting.summary import read
from chalicelib.counting.view import Counting
from chalicelib.events.webhook_schedule import EventSchedule
from chalicelib.http.tokens import digest
from chalicelib.owners import changing, claiming, finding
from chalicelib.owners.finding import NotClaimedError, OwnedBadge, TakenError, WrongSecretError
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Update
from simulation.clocks import NOON
from simulation.storage import FakeQueue, FaultyTable, once, raising
from simulation.views import BADGE, WINDOWS, days, fold, put_summary, shown, summary, view
from tests.unit.owners.owning import LATER, LOST, change, claim, delete, owner, rename, visit
from vumi.operate import kinds


def rename_id(table: Table, name: str, badge_id: str = BADGE) -> None:
    rename(table, finding.look_up(table, badge_id), name)


def delete_it(table: Table) -> None:
    delete(table, finding.look_up(table, BADGE))


STATES: dict[str, list[Callable[[Table], object]]] = {
    "unseen": [],
    "viewed": [visit],
    "counted": [visit, lambda table: fold(table, LATER)],
    "imported": [lambda table: put_summary(table, base=1_000)],
    "owned": [claim, visit],
    "renamed": [claim, lambda table: rename_id(table, "mona")],
    "released": [
        claim,
        lambda table: rename_id(table, "mona"),
        lambda table: claiming.release(table, BADGE),
    ],
    "deleted": [claim, delete_it],
}
"""The states of a badge by name, and what leads to each."""


def reach(table: Table, state: str) -> None:
    for step in STATES[state]:
        step(table)


# ---- grant


@pytest.mark.parametrize("state", STATES)
def test_the_operator_gives_any_badge_away_as_it_is(table: Table, state: str) -> None:
    reach(table, state)
    before = (shown(table), days(table), finding.look_up(table, BADGE).names)
    secret = claiming.grant(table, BADGE, LATER)
    owned = finding.authenticate(table, BADGE, secret)
    assert (owned.granted, owned.proven, owned.created, owned.deleted) == (True, "", LATER, False)
    assert (shown(table), days(table), owned.names) == before
    assert not {"deleted", "ttl"} & summary(table).keys()
    visit(table, LATER + 10)
    fold(table, LATER + 3_600)
    assert shown(table) == before[0] + 1


def test_a_grant_with_a_digest_may_be_repeated(table: Table) -> None:
    lossy = FaultyTable(table, after_write=raising(LOST))
    with pytest.raises(UnavailableError):
        claiming.grant(lossy, BADGE, NOON, digest("own"))
    before = owner(table)
    assert claiming.grant(table, BADGE, LATER, digest("own")) == ""
    assert owner(table) == before


def test_a_grant_does_not_compete_with_views(table: Table) -> None:
    """The summary of a busy badge changes at every write."""
    reach(table, "counted")
    versions = iter(range(1_000, 1_999))
    busy = FaultyTable(
        table,
        before_write=lambda _: table.write(
            Update(keys.summary(BADGE), values={"version": next(versions)})
        ),
    )
    assert claiming.grant(busy, BADGE, LATER)
    assert len(busy.written) == 1


@pytest.mark.parametrize("is_known", [False, True])
def test_a_grant_never_owns_an_alias(table: Table, *, is_known: bool) -> None:
    """The id becomes another badge's name before the write."""
    if is_known:
        claim(table)
        claiming.release(table, BADGE)
    claim(table, "other")
    overtaken = FaultyTable(table, before_write=once(lambda: rename_id(table, BADGE, "other")))
    secret = claiming.grant(overtaken, BADGE, LATER)
    assert finding.authenticate(table, BADGE, secret).badge_id == "other"
    assert owner(table) == {}


def test_a_grant_of_a_badge_that_is_deleted_meanwhile_begins_a_new_one(table: Table) -> None:
    reach(table, "counted")
    free = finding.look_up(table, BADGE)
    step = once(lambda: delete(table, free, LATER))
    secret = claiming.grant(FaultyTable(table, before_write=step), BADGE, LATER)
    assert finding.authenticate(table, BADGE, secret).is_claimed
    assert not {"deleted", "ttl"} & summary(table).keys()


def test_a_granted_badge_has_a_summary_before_its_first_view(table: Table) -> None:
    """So it is listed, and its first view needs no room among the new ids of a client."""
    claiming.grant(table, BADGE, NOON)
    assert summary(table) == {"version": 1, "created": int(NOON)}
    assert not badge_count.read(table, BADGE).is_new


# ---- release


@pytest.mark.parametrize("state", STATES)
def test_a_release_removes_the_owner_alone(table: Table, state: str) -> None:
    reach(table, state)
    was_claimed = finding.look_up(table, BADGE).is_claimed
    before = (shown(table), days(table), finding.look_up(table, BADGE).names, summary(table))
    assert [claiming.release(table, BADGE) for _ in range(2)] == [was_claimed, False]
    after = (shown(table), days(table), finding.look_up(table, BADGE).names, summary(table))
    assert after == before
    for secret in ("any", ""):
        with pytest.raises(NotClaimedError):
            finding.authenticate(table, BADGE, secret)


def test_a_released_badge_with_names_keeps_them_for_the_next_owner(table: Table) -> None:
    reach(table, "released")
    assert owner(table) == {"PK": f"USER#{BADGE}", "SK": "OWNER", "names": ["mona"]}
    assert kinds.check(owner(table)) is kinds.OWNER
    with pytest.raises(TakenError):
        claim(table)
    secret = claiming.grant(table, "mona", LATER)
    owned = finding.authenticate(table, "mona", secret)
    delete(table, owned, LATER)
    assert "deleted" in summary(table, "mona")


def test_a_release_keeps_a_name_that_the_badge_gets_meanwhile(table: Table) -> None:
    claim(table)
    raced = FaultyTable(table, before_write=once(lambda: rename_id(table, "mona")))
    assert claiming.release(raced, BADGE)
    owned = finding.look_up(table, "mona")
    assert (owned.names[-1], owned.is_claimed) == ("mona", False)


def test_a_release_leaves_nothing_of_a_badge_that_is_deleted_meanwhile(table: Table) -> None:
    secret = claim(table)
    rename_id(table, "mona")
    owned = finding.authenticate(table, "mona", secret)
    step = once(lambda: delete(table, owned, LATER))
    assert not claiming.release(FaultyTable(table, before_write=step), "mona")
    assert owner(table) == {}


# ---- change and delete without an owner


@pytest.mark.parametrize("state", ["unseen", "viewed", "counted", "imported", "released"])
def test_the_operator_changes_a_badge_that_nobody_owns(table: Table, state: str) -> None:
    reach(table, state)
    views = shown(table) - read(table, BADGE).base
    assert not finding.look_up(table, BADGE).is_claimed
    change(table, finding.look_up(table, BADGE), base=7, frozen=True, name="lisa")
    assert (shown(table), shown(table, "lisa")) == (7 + views, 7 + views)
    assert read(table, BADGE).frozen
    assert finding.look_up(table, "lisa").names[-1] == "lisa"
    assert not finding.look_up(table, "lisa").is_claimed
    assert kinds.check(owner(table)) is kinds.OWNER
    change(table, finding.look_up(table, "lisa"), reset=True)
    assert shown(table) == 0


@pytest.mark.parametrize("state", ["viewed", "counted", "imported", "released"])
def test_the_operator_deletes_a_badge_that_nobody_owns(table: Table, state: str) -> None:
    reach(table, state)
    names = finding.look_up(table, BADGE).names
    for _ in range(2):
        delete_it(table)
    assert (shown(table), days(table), owner(table)) == (0, {}, {})
    for name in names:
        assert summary(table, name)["deleted"] == finding.OPERATOR
        assert "ttl" in summary(table, name)
        with pytest.raises(NotClaimedError):
            finding.authenticate(table, name, finding.OPERATOR)
    assert finding.authenticate(table, BADGE, claim(table)).is_claimed


def test_an_id_that_becomes_the_name_of_another_badge_is_left_alone(table: Table) -> None:
    free = finding.look_up(table, BADGE)
    claim(table, "other")
    rename_id(table, BADGE, "other")
    before = summary(table)
    with pytest.raises(NotClaimedError):
        delete(table, free, NOON)
    with pytest.raises(NotClaimedError):
        change(table, free, base=5)
    assert summary(table) == before


def test_a_badge_that_is_claimed_meanwhile_is_left_to_its_owner(table: Table) -> None:
    free = finding.look_up(table, BADGE)
    assert free == OwnedBadge(BADGE, names=(BADGE,))
    raced = FaultyTable(table, before_write=once(lambda: claim(table)))
    with pytest.raises(WrongSecretError, match="octocat has another owner now"):
        change(raced, free, base=5)
    assert shown(table) == 0


# ---- hand over


def hand_over(table: Table, secret: str, to: str, badge_id: str = BADGE) -> OwnedBadge:
    return changing.hand_over(table, badge_id, secret, digest(to), NOON)


def test_a_repeated_hand_over_has_the_same_answer(table: Table) -> None:
    secret = claim(table)
    lossy = FaultyTable(table, after_write=raising(LOST))
    with pytest.raises(UnavailableError):
        hand_over(lossy, secret, "theirs")
    before = owner(table)
    for _ in range(2):
        assert hand_over(table, secret, "theirs").badge_id == BADGE
    assert owner(table) == before
    for to in ("mine again", secret):
        with pytest.raises(WrongSecretError):
            hand_over(table, secret, to)


@pytest.mark.parametrize("reads", range(4))
def test_a_milestone_that_is_reached_during_a_hand_over_stays_reached(
    table: Table, reads: int
) -> None:
    secret = claim(table)
    wanted = tuple(Milestone(count, "https://hooks.example/") for count in (1, 9))
    change(table, finding.authenticate(table, BADGE, secret), milestones=wanted)
    webhooks = EventSchedule(FakeQueue, lambda: NOON)
    counting = Counting(table, WINDOWS, lambda: NOON, webhooks=webhooks)
    reach = once(lambda: storing.store(counting, [view(hot=True)]), after=reads)
    hand_over(FaultyTable(table, before_read=reach), secret, "theirs")
    kept = milestones.read(table, BADGE, digest("theirs"))
    assert [bool(one.reached) for one in kept.milestones] == [True, False]
    assert read(table, BADGE).milestone == kept.next


def test_a_stranger_hands_nothing_over(table: Table) -> None:
    """Neither do the owner of a badge that was granted to another, nor that of a deleted one."""
    secret = claim(table)
    for wrong in ("", "any", digest(secret)):
        with pytest.raises(WrongSecretError):
            hand_over(table, wrong, "theirs")
    with pytest.raises(NotClaimedError, match="unseen has no owner"):
        hand_over(table, secret, "theirs", "unseen")
    claiming.grant(table, BADGE, NOON)
    with pytest.raises(WrongSecretError):
        hand_over(table, secret, "theirs")
    delete_it(table)
    with pytest.raises(NotClaimedError, match="octocat was deleted"):
        hand_over(table, secret, "theirs")


def test_of_two_concurrent_hand_overs_one_succeeds(table: Table) -> None:
    secret = claim(table)
    raced = FaultyTable(table, before_write=once(lambda: hand_over(table, secret, "first")))
    with pytest.raises(WrongSecretError):
        hand_over(raced, secret, "second")
    assert finding.authenticate(table, BADGE, "first").is_claimed
