"""The requests of an owner: claim, base, reset, freeze, rename and delete, also repeated."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chalicelib.counting import badge_count, keys
from chalicelib.counting.milestones import Milestone
from chalicelib.counting.summary import read
from chalicelib.counting.view import View
from chalicelib.http import tokens
from chalicelib.owners import changing, claiming, deleting, finding
from chalicelib.owners.changing import BadgeChange
from chalicelib.owners.claiming import ClaimedBadge
from chalicelib.owners.errors import NotClaimedError, TakenError, WrongSecretError
from chalicelib.owners.finding import MAX_NAMES, TRIES, OwnedBadge
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailedError, Delete, Put, Update, Write
from simulation.clocks import NOON
from simulation.memory_table import MemoryTable
from simulation.tables import FaultyTable, once, raising
from simulation.views import (
    AT_NOON,
    BADGE,
    DAY,
    HOUR,
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

AHEAD = 5_000
"""Milliseconds that the end of a life is after the clock."""
LATER = NOON + 3_600
OWN_SECRET = "a secret of the owner's own"  # noqa: S105  opens nothing but what is made here
OWN_DIGEST = tokens.digest(OWN_SECRET)
TOMBSTONE = WINDOWS.retention + 7 * DAY


def claim(table: Table, badge_id: str = BADGE, base: int = 0, now: float = NOON) -> str:
    return claiming.claim(table, badge_id, base, now).secret


def claimed(table: Table, badge_id: str = BADGE, base: int = 0) -> OwnedBadge:
    return finding.authenticate(table, badge_id, claim(table, badge_id, base))


def change(table: Table, owned: OwnedBadge, wanted: BadgeChange, now: float = NOON) -> None:
    changing.change(table, owned, wanted, now)


def delete(table: Table, owned: OwnedBadge, now: float = NOON) -> None:
    deleting.delete(table, owned, now, WINDOWS.retention)


def rename(table: Table, owned: OwnedBadge, *names: str) -> OwnedBadge:
    for name in names:
        change(table, owned, BadgeChange(name=name))
    return again(table, owned)


def again(table: Table, owned: OwnedBadge) -> OwnedBadge:
    """Return the badge as a request that comes now finds it."""
    item = table.get(keys.owner(owned.badge_id))
    assert item is not None
    return OwnedBadge.of(owned.badge_id, item)


def look(table: Table, now: float = NOON, badge_id: str = BADGE) -> View:
    """Return the view that a visitor's GET enqueues."""
    return badge_count.read(table, badge_id).view(WINDOWS, now)


def visit(table: Table, now: float = NOON, badge_id: str = BADGE, times: int = 1) -> None:
    """Take views that are stored immediately."""
    for _ in range(times):
        assert store(table, look(table, now, badge_id), now=now) == {}


def items(table: Table, badge_id: str = BADGE) -> list[Item]:
    return table.query(keys.partition(badge_id), limit=1000)


def state(table: Table, *names: str) -> dict[str, Any]:
    """Return all that is stored of ids, without the versions."""
    return {
        name: [{k: v for k, v in item.items() if k != "version"} for item in items(table, name)]
        for name in names
    }


def overtaking(table: Table) -> Callable[[Sequence[Write]], None]:
    """Return what writes the summary of the badge before each write of another."""
    versions = iter(range(1_000, 1_999))

    def step(_: Sequence[Write]) -> None:
        table.write(Update(keys.summary(BADGE), values={"version": next(versions)}))

    return step


# ---- claim


def test_a_claim_leaves_only_a_digest_of_its_secret(table: Table) -> None:
    done = claiming.claim(table, BADGE, 0, NOON)
    assert table.get(keys.owner(BADGE)) == {
        "PK": "USER#octocat",
        "SK": "OWNER",
        "digest": hashlib.sha256(done.secret.encode()).hexdigest(),
        "created": int(NOON),
    }
    assert done.secret not in json.dumps(items(table))
    assert done.secret not in repr(done)


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
    with pytest.raises(
        TakenError, match=r"^octocat has an owner, views, a base or GitHub's numbers: "
    ):
        claiming.claim(table, BADGE, 5, NOON)
    assert items(table) == before


def test_a_badge_with_a_count_of_0_and_views_of_an_earlier_life_can_be_claimed(
    table: Table,
) -> None:
    put_summary(table, count=0, base=0, created=17, watermark=AT_NOON, reset=AT_NOON)
    put_views(table, AT_NOON)
    claimed(table)
    assert summary(table)["created"] == 17
    assert shown(table) == 0


@pytest.mark.parametrize("is_folded", [False, True])
def test_a_view_that_is_folded_while_a_badge_is_claimed_keeps_it_free(
    table: Table, *, is_folded: bool
) -> None:
    def other() -> None:
        visit(table)
        fold(table, LATER if is_folded else NOON)

    reads = iter(["get"] * 3)

    def in_between(method: str) -> None:
        if method == "query" and next(reads, ""):
            other()

    with pytest.raises(TakenError):
        claiming.claim(FaultyTable(table, before_read=in_between), BADGE, 0, NOON)
    assert table.get(keys.owner(BADGE)) is None


def test_one_of_two_concurrent_claims_succeeds(table: Table) -> None:
    secrets: list[str] = []
    first = once(lambda: secrets.append(claim(table, base=7)))
    with pytest.raises(TakenError):
        claiming.claim(FaultyTable(table, before_write=first), BADGE, 5, NOON)
    assert finding.authenticate(table, BADGE, *secrets).badge_id == BADGE
    assert shown(table) == 7


def test_a_claim_with_a_digest_returns_no_secret_and_the_owners_own_opens_the_badge(
    table: Table,
) -> None:
    assert claiming.claim(table, BADGE, 5, NOON, OWN_DIGEST) == ClaimedBadge(BADGE, "")
    assert finding.authenticate(table, BADGE, OWN_SECRET).badge_id == BADGE
    assert shown(table) == 5


def test_a_repeated_claim_with_a_digest_has_the_same_answer(table: Table) -> None:
    """Whatever became of the badge meanwhile, and however often it is asked."""
    lossy = FaultyTable(table, after_write=raising(UnavailableError("no answer")))
    with pytest.raises(UnavailableError):
        claiming.claim(lossy, BADGE, 5, NOON, OWN_DIGEST)
    visit(table)
    before = items(table)
    for _ in range(2):
        assert claiming.claim(table, BADGE, 5, NOON + 9, OWN_DIGEST) == ClaimedBadge(BADGE, "")
    assert items(table) == before
    for other in (tokens.digest("another"), ""):
        with pytest.raises(TakenError):
            claiming.claim(table, BADGE, 5, NOON, other)


def test_a_claim_that_the_table_tried_twice_still_answers_the_secret_it_made(
    table: Table,
) -> None:
    """The table lost its answer and tried again: then the claim itself is in the way."""
    retried = FaultyTable(table, after_write=raising(ConditionFailedError({0: None})))
    secret = claiming.claim(retried, BADGE, 5, NOON).secret
    assert finding.authenticate(table, BADGE, secret).badge_id == BADGE
    assert len(retried.written) == 1


WEEK = claiming.CLAIM_SECONDS


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
        BadgeChange(base=1),
        BadgeChange(frozen=True),
        BadgeChange(name="mona"),
        BadgeChange(reset=True),
        BadgeChange(milestones=(Milestone(1_000, "https://hooks.example/"),)),
    ],
    ids=["base", "frozen", "renamed", "reset", "milestones"],
)
def test_a_badge_that_has_a_setting_keeps_its_owner(table: Table, wanted: BadgeChange) -> None:
    change(table, claimed(table), wanted, now=NOON + 1)
    with pytest.raises(TakenError):
        claim(table, now=NOON + 2 * WEEK)


@pytest.mark.parametrize(
    "wanted", [BadgeChange(base=1), BadgeChange(name="mona")], ids=["summary", "owner"]
)
def test_a_change_that_overtakes_the_next_claim_keeps_the_badge(
    table: Table, wanted: BadgeChange
) -> None:
    owned = claimed(table)
    now = NOON + WEEK
    overtaken = FaultyTable(table, before_write=once(lambda: change(table, owned, wanted, now)))
    with pytest.raises(TakenError):
        claim(overtaken, now=now)
    assert again(table, owned).digest == owned.digest


def test_a_claim_between_the_reads_of_another_is_not_replaced(table: Table) -> None:
    """The other one has read the void claim before it, and the summary after it."""
    claim(table)
    now, reads, first = NOON + WEEK, list[str](), list[str]()

    def step(kind: str) -> None:
        reads.append(kind)
        if len(reads) == 2:
            first.append(claim(table, now=now))

    with pytest.raises(TakenError):
        claim(FaultyTable(table, before_read=step), now=now)
    assert finding.authenticate(table, BADGE, first[0]).badge_id == BADGE


def test_a_view_that_overtakes_the_next_claim_counts_for_the_new_owner(table: Table) -> None:
    claim(table)
    now = NOON + WEEK
    step = once(lambda: visit(table, now))
    secret = claim(FaultyTable(table, before_write=step), now=now)
    assert finding.authenticate(table, BADGE, secret).badge_id == BADGE
    assert shown(table) == 1


def test_a_claim_that_is_always_overtaken_gives_up(table: Table) -> None:
    raced = FaultyTable(table, before_write=overtaking(table))
    with pytest.raises(UnavailableError, match=f"^octocat was changed by {TRIES} other writes"):
        claiming.claim(raced, BADGE, 0, NOON)
    assert len(raced.written) == TRIES
    assert table.get(keys.owner(BADGE)) is None


# ---- authenticate


def test_the_secret_of_the_claim_opens_the_badge_by_each_of_its_names(table: Table) -> None:
    secret = claim(table)
    rename(table, finding.authenticate(table, BADGE, secret), "mona", "lisa")
    for name in (BADGE, "mona", "lisa"):
        owned = finding.authenticate(table, name, secret)
        assert (owned.badge_id, owned.names) == (BADGE, (BADGE, "mona", "lisa"))
        assert not owned.deleted


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


def test_a_badge_without_an_owner_has_no_secret(table: Table) -> None:
    visit(table)
    for badge_id in (BADGE, "unseen"):
        with pytest.raises(NotClaimedError, match=f"{badge_id} has no owner"):
            finding.authenticate(table, badge_id, "any")


def test_digests_are_compared_in_constant_time() -> None:
    assert "return hmac.compare_digest(one, other)" in inspect.getsource(finding.is_same)
    for function in (finding.authenticate, changing.hand_over, claiming.claim):
        tree = ast.parse(inspect.getsource(function))
        calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        assert "is_same" in calls
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]


# ---- base and freeze


def test_all_is_changed_in_one_transaction(table: Table) -> None:
    owned = claimed(table)
    visit(table, times=3)
    watched = FaultyTable(table)
    change(watched, owned, BadgeChange(base=40, reset=True, frozen=True, name="mona"))
    assert len(watched.written) == 1
    for name in (BADGE, "mona"):
        count = badge_count.read(table, name)
        assert (count.shown, count.summary.frozen) == (40, True)


# ---- reset


def test_a_reset_sets_watermark_and_reset_to_5_seconds_after_the_clock(table: Table) -> None:
    owned = claimed(table, base=10)
    put_summary(
        table,
        count=4,
        base=10,
        watermark=AT_NOON,
        hot=int(NOON) + 9,
        today={"day": "2026-03-14", "h11": 4},
        version=7,
        created=9,
    )
    change(table, owned, BadgeChange(reset=True))
    assert summary(table) == {
        "base": 0,
        "count": 0,
        "watermark": AT_NOON + AHEAD,
        "reset": AT_NOON + AHEAD,
        "version": 8,
        "created": 9,
    }


@pytest.mark.parametrize(
    ("watermark", "reset"),
    [
        (AHEAD - 1_001, AHEAD),
        (AHEAD - 1_000, AHEAD),
        (AHEAD - 999, AHEAD + 1),
        (10**9, 10**9 + 1_000),
    ],
)
@pytest.mark.parametrize("what", ["reset", "delete", "rename"])
def test_a_life_ends_a_second_after_the_watermark_at_least(
    table: Table, watermark: int, reset: int, what: str
) -> None:
    """All times are in milliseconds after noon, where the clock is: so two ends of lives differ."""
    owned = claimed(table)
    name = "mona" if what == "rename" else BADGE
    put_summary(table, name, watermark=AT_NOON + watermark, version=1)
    if what == "delete":
        delete(table, owned)
    else:
        change(table, owned, BadgeChange(reset=True) if what == "reset" else BadgeChange(name=name))
    ended = summary(table, name)
    assert ended["reset"] == ended["watermark"] == AT_NOON + reset


@pytest.mark.parametrize("what", ["reset", "delete"])
@pytest.mark.parametrize("name", [BADGE, "mona"])
def test_a_life_ends_after_the_newest_view_of_every_name(
    table: Table, what: str, name: str
) -> None:
    """A clock that was two hours ahead took the view under a name of the badge."""
    newest = AT_NOON + 2 * HOUR * 1000
    owned = rename(table, claimed(table), "mona")
    put_views(table, AT_NOON, newest, badge_id=name)
    if what == "delete":
        delete(table, owned)
    else:
        change(table, owned, BadgeChange(reset=True))
    assert read(table, name if what == "delete" else BADGE).reset > newest
    assert fold(table, NOON + DAY, name) == 0
    assert shown(table) == shown(table, "mona") == 0


def test_a_rename_begins_a_life_after_the_newest_view_of_the_new_name(table: Table) -> None:
    """It is stored after the id was found to have no views."""
    newest = AT_NOON + 2 * HOUR * 1000
    queries: list[str] = []

    def take(method: str) -> None:
        queries.extend([method] if method == "query" else [])
        if len(queries) == 2:
            put_views(table, newest, badge_id="mona")

    change(FaultyTable(table, before_read=take), claimed(table), BadgeChange(name="mona"))
    assert read(table, "mona").reset > newest


def test_a_reset_deletes_the_earlier_days(table: Table) -> None:
    """250 days are more than two transactions of 100; the days of the new life stay."""
    owned = claimed(table)
    noon = datetime.fromtimestamp(NOON, UTC)
    places = [keys.day(BADGE, f"{noon - timedelta(days=ago):%Y-%m-%d}") for ago in range(250)]
    table.put_all([{"PK": pk, "SK": sk, "views": 9, "h12": 9} for pk, sk in places])
    change(table, owned, BadgeChange(reset=True))
    assert days(table) == {}
    assert table.get(keys.owner(BADGE)) is not None


def test_a_reset_deletes_no_day_of_the_new_life(table: Table) -> None:
    """Somebody resets again while the days are deleted, and a view of the new life has come."""
    owned = claimed(table)
    place = keys.day(BADGE, "2026-03-14")
    first: Item = {"PK": place.pk, "SK": place.sk, "views": 9}

    def new_life(writes: Sequence[Write]) -> None:
        if writes[0].key == keys.summary(BADGE):
            table.put_all([{**first, "reset": AT_NOON + AHEAD}])

    change(FaultyTable(table, after_write=new_life), owned, BadgeChange(reset=True))
    assert days(table) == {"2026-03-14": {"views": 9, "reset": AT_NOON + AHEAD}}
    change(table, owned, BadgeChange(reset=True))
    assert days(table) == {}


def test_a_day_that_the_new_life_has_meanwhile_is_not_deleted(table: Table) -> None:
    """A fold puts it after it was read as a day of the earlier life."""
    owned = claimed(table)
    place = keys.day(BADGE, "2026-03-14")
    day: Item = {"PK": place.pk, "SK": place.sk, "views": 9}
    table.put_all([day])

    def new_life(writes: Sequence[Write]) -> None:
        if isinstance(writes[0], Delete):
            table.put_all([{**day, "reset": AT_NOON + AHEAD}])

    change(FaultyTable(table, before_write=new_life), owned, BadgeChange(reset=True))
    assert days(table) == {"2026-03-14": {"views": 9, "reset": AT_NOON + AHEAD}}


def test_a_reset_whose_days_can_not_be_deleted_is_done(table: Table) -> None:
    """No reader sees the days of an earlier life, and the next reset deletes them."""
    owned = claimed(table)
    place = keys.day(BADGE, "2026-03-13")
    table.put_all([{"PK": place.pk, "SK": place.sk, "views": 9}])
    broken = FaultyTable(table, before_write=raising(None, UnavailableError("throttled")))
    change(broken, owned, BadgeChange(reset=True))
    assert len(broken.written) == 2
    assert list(days(table)) == ["2026-03-13"]
    change(table, owned, BadgeChange(reset=True))
    assert days(table) == {}


# ---- rename


def test_both_names_show_and_count_the_same_badge(table: Table) -> None:
    """2 views before, then 3 by the old name and 4 by the new one."""
    owned = claimed(table)
    visit(table, times=2)
    rename(table, owned, "mona")
    visit(table, times=3)
    visit(table, badge_id="mona", times=4)
    assert [shown(table, name) for name in (BADGE, "mona")] == [9, 9]
    assert items(table, "mona") == [
        {
            "PK": "USER#mona",
            "SK": "VIEWS",
            "alias": BADGE,
            "count": 0,
            "watermark": AT_NOON + AHEAD,
            "reset": AT_NOON + AHEAD,
            "version": 1,
            "created": int(NOON),
        }
    ]


def test_a_name_that_is_taken_changes_nothing(table: Table) -> None:
    """It has views, an owner without views, a base, or is the name of another badge."""
    owned = claimed(table)
    visit(table, badge_id="viewed")
    claimed(table, "owned")
    put_summary(table, "imported", base=5)
    rename(table, claimed(table, "other"), "alias")
    visit(table, times=2)
    before = items(table)
    for name in ("viewed", "owned", "imported", "other", "alias"):
        with pytest.raises(
            TakenError, match=f"^{name} has an owner, views, a base or GitHub's numbers: "
        ):
            change(table, owned, BadgeChange(name=name, reset=True, base=9))
        assert items(table) == before
        assert badge_count.read(table, name).summary.badge_id != BADGE


def test_a_badge_has_20_names_and_can_always_go_back_to_each(table: Table) -> None:
    names = [f"name-{place}" for place in range(1, MAX_NAMES)]
    owned = rename(table, claimed(table), *names)
    assert len(owned.names) == MAX_NAMES == 20
    refusal = "^a badge can have 20 names, with its earlier names; use one of those$"
    with pytest.raises(TakenError, match=refusal):
        change(table, owned, BadgeChange(name="one too many"))
    assert summary(table, "one too many") == {}
    owned = rename(table, owned, names[0], BADGE, names[5])
    assert set(owned.names) == {BADGE, *names}
    with pytest.raises(TakenError, match=refusal):
        change(table, owned, BadgeChange(name="one too many"))
    delete(table, owned)
    for name in (BADGE, *names):
        assert "alias" not in summary(table, name)


def test_a_name_of_a_deleted_badge_can_be_given_to_another(table: Table) -> None:
    delete(table, rename(table, claimed(table), "mona"))
    secret = claim(table, "hubot")
    other = rename(table, finding.authenticate(table, "hubot", secret), "mona", BADGE)
    assert "deleted" not in summary(table, "mona")
    assert finding.authenticate(table, "mona", secret).names == other.names
    visit(table, LATER, BADGE)
    assert [shown(table, name) for name in ("hubot", "mona", BADGE)] == [1, 1, 1]


# ---- delete


def test_a_deleted_badge_leaves_a_tombstone_for_a_retention_and_a_week(table: Table) -> None:
    secret = claim(table, base=10)
    owned = rename(table, finding.authenticate(table, BADGE, secret), "mona")
    place = keys.day(BADGE, "2026-03-12")
    table.put_all([{"PK": place.pk, "SK": place.sk, "views": 4}])
    visit(table)
    fold(table, LATER)
    assert store(table, view(AT_NOON + 9_000, hot=True), now=LATER) == {}
    change(table, owned, BadgeChange(frozen=True))
    delete(table, owned, LATER)
    ended = int(LATER * 1000) + AHEAD
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
    assert days(table) == {}
    assert table.get(keys.owner(BADGE)) is None
    count = badge_count.read(table, BADGE)
    assert (count.shown, count.summary.frozen) == (0, False)


def test_a_tombstone_ends_only_after_the_days_are_deleted(table: Table) -> None:
    """Otherwise a new life could have the days of this one."""
    secret = claim(table)
    owned = finding.authenticate(table, BADGE, secret)
    place = keys.day(BADGE, "2026-03-12")
    table.put_all([{"PK": place.pk, "SK": place.sk, "views": 4}])
    broken = FaultyTable(table, before_write=raising(None, UnavailableError("throttled")))
    with pytest.raises(UnavailableError):
        delete(broken, owned)
    assert "ttl" not in summary(table)
    assert list(days(table)) == ["2026-03-12"]
    delete(table, finding.authenticate(table, BADGE, secret))
    assert "ttl" in summary(table)
    assert days(table) == {}


@pytest.mark.parametrize("what", ["fold", "count", "claim", "rename"])
def test_the_next_write_of_a_tombstone_makes_it_stay(table: Table, what: str) -> None:
    """A new life began: its count must not end with the old one."""
    delete(table, claimed(table))
    if what == "fold":
        visit(table, LATER)
        assert fold(table, LATER + 1_000) == 1
    elif what == "count":
        assert store(table, view(int(LATER * 1000), hot=True), now=LATER) == {}
    elif what == "claim":
        claim(table, now=LATER)
    else:
        rename(table, claimed(table, "hubot"), BADGE)
    assert "ttl" not in summary(table)
    assert summary(table)["reset"]


@pytest.mark.parametrize("name", [BADGE, "mona"])
def test_a_deleted_badge_can_be_claimed_by_another_owner(table: Table, name: str) -> None:
    secret = claim(table, base=5)
    owned = rename(table, finding.authenticate(table, BADGE, secret), "mona")
    visit(table, times=3)
    delete(table, owned)
    other = claim(table, name, now=NOON + 1)
    assert other != secret
    assert shown(table, name) == 0
    with pytest.raises(WrongSecretError):
        finding.authenticate(table, name, secret)
    assert finding.authenticate(table, name, other).names == (name,)
    visit(table, NOON + 2, name)
    assert shown(table, name) == 1


@pytest.mark.parametrize("name", [BADGE, "mona"])
def test_a_repeated_deletion_has_the_same_answer_by_every_name(table: Table, name: str) -> None:
    secret = claim(table)
    delete(table, rename(table, finding.authenticate(table, BADGE, secret), "mona"))
    before = state(table, BADGE, "mona")
    owned = finding.authenticate(table, name, secret)
    assert owned == OwnedBadge(name, tokens.digest(secret), (name,), deleted=True)
    delete(table, owned)
    assert state(table, BADGE, "mona") == before
    with pytest.raises(NotClaimedError, match=f"^{name} was deleted$"):
        change(table, owned, BadgeChange(base=5))


def test_a_repeated_deletion_does_not_change_the_new_life(table: Table) -> None:
    """Views have come, counted or live, before the same request is asked again."""
    secret = claim(table)
    delete(table, finding.authenticate(table, BADGE, secret))
    visit(table, LATER)
    for now in (LATER, LATER + 5_000):
        delete(table, finding.authenticate(table, BADGE, secret), now)
        assert shown(table) == 1
        fold(table, LATER + 5_000)
    assert "ttl" not in summary(table)


def test_a_new_life_that_begins_while_a_tombstone_is_written_stays(table: Table) -> None:
    owned = claimed(table)

    def live_again(writes: Sequence[Write]) -> None:
        if "ttl" in getattr(writes[0], "values", {}):
            visit(table, LATER)
            fold(table, LATER + 1_000)

    delete(FaultyTable(table, before_write=live_again), owned)
    assert ("ttl" in summary(table), shown(table)) == (False, 1)


# ---- what comes in between


def do(table: Table, owned: OwnedBadge, wanted: BadgeChange | None) -> None:
    """Do a change, or without one the deletion."""
    if wanted is None:
        delete(table, owned)
    else:
        change(table, owned, wanted)


CHANGES = [
    BadgeChange(base=5),
    BadgeChange(reset=True),
    BadgeChange(frozen=True),
    BadgeChange(name="mona"),
    BadgeChange(base=5, reset=True, frozen=True, name="mona"),
]


@pytest.mark.parametrize("wanted", CHANGES, ids=str)
@pytest.mark.parametrize("is_claimed", [False, True])
def test_nothing_of_a_badge_that_was_deleted_meanwhile_is_changed(
    table: Table, wanted: BadgeChange, *, is_claimed: bool
) -> None:
    """The same holds for one that another owner has claimed since then."""
    owned = claimed(table)
    visit(table, times=2)

    def deleted() -> None:
        delete(table, owned)
        if is_claimed:
            claim(table, base=3)

    raced = FaultyTable(table, before_write=once(deleted))
    expected = WrongSecretError if is_claimed else NotClaimedError
    says = "octocat has another owner now" if is_claimed else "octocat was deleted"
    with pytest.raises(expected, match=f"^{says}$"):
        change(raced, owned, wanted)
    assert shown(table) == 3 * is_claimed
    assert not badge_count.read(table, BADGE).summary.frozen
    assert summary(table, "mona") == {}


@pytest.mark.parametrize("is_claimed", [False, True])
def test_of_two_deletions_the_second_finds_it_done_unless_somebody_else_has_the_badge(
    table: Table, *, is_claimed: bool
) -> None:
    owned = claimed(table)

    def deleted() -> None:
        delete(table, owned)
        if is_claimed:
            claim(table, base=3)

    raced = FaultyTable(table, before_write=once(deleted))
    if is_claimed:
        with pytest.raises(WrongSecretError, match="octocat has another owner now"):
            delete(raced, owned)
    else:
        delete(raced, owned)
    assert shown(table) == 3 * is_claimed
    assert (table.get(keys.owner(BADGE)) is not None) == is_claimed


def after_the_owner_is_read(table: Table, act: Callable[[], object]) -> FaultyTable:
    """Return a table in which something happens between the first two reads."""
    steps: Iterator[Callable[[], object]] = iter([lambda: None, act])

    def before_read(_: str) -> None:
        next(steps, lambda: None)()

    return FaultyTable(table, before_read=before_read)


def test_a_name_that_is_given_before_the_summary_is_read_is_not_lost(table: Table) -> None:
    """The version of the summary does not tell of it: the names themselves are checked."""
    owned = claimed(table)
    raced = after_the_owner_is_read(table, lambda: change(table, owned, BadgeChange(name="mona")))
    change(raced, owned, BadgeChange(name="late"))
    assert again(table, owned).names == (BADGE, "mona", "late")
    raced = after_the_owner_is_read(table, lambda: change(table, owned, BadgeChange(name="later")))
    delete(raced, again(table, owned))
    for name in (BADGE, "mona", "late", "later"):
        assert "ttl" in summary(table, name)


def test_tombstones_that_another_deletion_left_unended_are_ended_by_every_name(
    table: Table,
) -> None:
    owned = rename(table, claimed(table), "mona")

    def dies() -> None:
        with pytest.raises(UnavailableError):
            delete(FaultyTable(table, after_write=raising(UnavailableError("no answer"))), owned)

    delete(FaultyTable(table, before_write=once(dies)), owned)
    assert "ttl" in summary(table)
    assert "ttl" in summary(table, "mona")


def test_a_concurrent_claim_of_a_name_does_not_keep_the_other_tombstones(table: Table) -> None:
    owned = rename(table, claimed(table), "mona")
    delete(FaultyTable(table, after_write=once(lambda: claim(table))), owned)
    assert "ttl" not in summary(table)
    assert "ttl" in summary(table, "mona")


@pytest.mark.parametrize("first", [(), ("lisa",)])
def test_of_two_renames_no_name_is_lost(table: Table, first: tuple[str, ...]) -> None:
    """Otherwise the badge would not know of the other name, which would outlive it."""
    owned = rename(table, claimed(table), *first)
    other = once(lambda: change(table, owned, BadgeChange(name="mona")))
    change(FaultyTable(table, before_write=other), owned, BadgeChange(name="late"))
    assert again(table, owned).names == (BADGE, *first, "mona", "late")
    assert shown(table, "late") == 0


def test_a_badge_that_is_renamed_while_it_is_deleted_is_deleted_by_every_name(
    table: Table,
) -> None:
    """The new name would lead nowhere, and could never be claimed."""
    owned = claimed(table)
    rename = once(lambda: change(table, owned, BadgeChange(name="mona")))
    delete(FaultyTable(table, before_write=rename), owned)
    assert table.get(keys.owner(BADGE)) is None
    assert "ttl" in summary(table)
    assert "ttl" in summary(table, "mona")
    claimed(table, "mona")


def test_a_view_that_is_counted_under_a_name_meanwhile_keeps_it_free(table: Table) -> None:
    owned = claimed(table)
    view = once(lambda: put_summary(table, "mona", count=1, version=1))
    with pytest.raises(TakenError, match="mona has an owner, views, a base or GitHub's numbers"):
        change(FaultyTable(table, before_write=view), owned, BadgeChange(name="mona"))
    assert [shown(table, name) for name in (BADGE, "mona")] == [0, 1]
    assert again(table, owned).names == (BADGE,)


def test_a_name_that_is_claimed_meanwhile_is_not_given(table: Table) -> None:
    owned = claimed(table)
    other = once(lambda: claim(table, "mona"))
    with pytest.raises(TakenError, match="mona has an owner, views, a base or GitHub's numbers"):
        change(FaultyTable(table, before_write=other), owned, BadgeChange(name="mona"))
    assert badge_count.read(table, "mona").summary.badge_id == "mona"


# ---- what fails


def fill(table: Table, owned: OwnedBadge) -> None:
    """Give a badge a count, a finished day, a live view and another name."""
    rename(table, owned, "lisa")
    put_views(table, AT_NOON - DAY * 1000, AT_NOON)
    put_summary(
        table, base=2, count=3, today={"day": "2026-03-13", "h12": 3}, watermark=1, version=9
    )
    place = keys.day(BADGE, "2026-03-12")
    table.put_all([{"PK": place.pk, "SK": place.sk, "views": 3}])


@pytest.mark.parametrize("wanted", [*CHANGES, None], ids=str)
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_request_whose_answer_is_lost_is_done_and_has_the_same_answer_again(
    table: Table, wanted: BadgeChange | None, place: int
) -> None:
    """At any of its writes; the same request, asked again by its secret, leaves the same."""
    secret = tokens.new_token()
    twin = MemoryTable()
    for one in (table, twin):
        claiming.claim(one, BADGE, 2, NOON, tokens.digest(secret))
        fill(one, finding.authenticate(one, BADGE, secret))
    failures: list[Exception | None] = [None] * place + [UnavailableError("no answer")]
    broken = FaultyTable(table, after_write=raising(*failures))
    try:
        do(broken, finding.authenticate(table, BADGE, secret), wanted)
    except UnavailableError:
        do(table, finding.authenticate(table, BADGE, secret), wanted)
    do(twin, finding.authenticate(twin, BADGE, secret), wanted)
    names = (BADGE, "lisa", "mona")
    assert [shown(table, name) for name in names] == [shown(twin, name) for name in names]
    assert without_times(state(table, *names)) == without_times(state(twin, *names))


def without_times(stored: dict[str, Any]) -> dict[str, Any]:
    """Leave out the times, which a reset that is asked again sets again."""
    times = {"watermark", "reset", "ttl"}
    return {
        name: [{k: v for k, v in item.items() if k not in times} for item in items]
        for name, items in stored.items()
    }


# ---- any order


def test_a_name_that_gets_an_owner_during_a_rename_is_not_taken(table: Table) -> None:
    """A grant of an id that had an owner writes no summary."""
    owned = claimed(table)
    claim(table, "mona")
    claiming.release(table, "mona")
    grant = once(lambda: claiming.grant(table, "mona", NOON, OWN_DIGEST))
    raced = FaultyTable(table, before_write=grant)
    with pytest.raises(TakenError):
        rename(raced, owned, "mona")
    assert again(table, owned).names == (BADGE,)
    assert again(table, OwnedBadge("mona")).is_claimed


def test_a_change_of_an_owner_who_is_replaced_meanwhile_changes_nothing(table: Table) -> None:
    owned = claimed(table)
    grant = once(lambda: claiming.grant(table, BADGE, NOON, OWN_DIGEST))
    with pytest.raises(WrongSecretError):
        change(FaultyTable(table, before_write=grant), owned, BadgeChange(base=7))
    assert shown(table) == 0
