"""Owning a badge, over both engines: claim, base, begin anew, freeze, rename, delete."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count as counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moto import mock_aws

from chalicelib import tokens
from chalicelib.dynamodb import DynamoTable
from chalicelib.ports import Delete, Item, Put, Refused, StorageError, Table, Unavailable, Write
from chalicelib.resources import aws_client
from chalicelib.views import counting, folding, keys, owner, storing
from chalicelib.views.owner import (
    MAX_NAMES,
    TRIES,
    Change,
    NotClaimedError,
    Owned,
    TakenError,
    WrongSecretError,
)
from chalicelib.views.removals import Removal, position
from chalicelib.views.storing import Lifetime
from chalicelib.views.view import View, taken_at
from tests.aws import create_table
from tests.unit.fakes import LABEL, NOON, FakeQueue, FaultyTable, raising, sqlite_table, ulid_of

LIFETIME = Lifetime(window=300, redelivery=300)
HOUR = 3600.0
DAY = 24 * HOUR
BADGE = "octocat"
TODAY = keys.day(BADGE, datetime.fromtimestamp(NOON, UTC))
AT_NOON = int(NOON * 1000)
SEQUENCES = counter(1)

Hook = Callable[[Sequence[Write]], None]


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[Any]:
    with mock_aws():
        client = aws_client("dynamodb")
        yield client
        client.close()


ON_SQLITE = pytest.mark.parametrize("table", ["sqlite"], indirect=True)
"""For what is asked many times over: moto takes a hundred times as long."""


@pytest.fixture(params=["sqlite", "moto"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Table]:
    if request.param == "sqlite":
        with sqlite_table(tmp_path) as opened:
            yield opened
        return
    client = request.getfixturevalue("dynamodb")
    create_table(client, "owner")
    yield DynamoTable(client, "owner")
    client.delete_table(TableName="owner")


def claimed(table: Table, badge_id: str = BADGE, base: int = 0) -> Owned:
    return owner.authenticate(table, badge_id, owner.claim(table, badge_id, base, NOON))


def again(table: Table, owned: Owned) -> Owned:
    """The same owner, as a request that comes now finds him."""
    item = table.get(keys.owner(owned.badge_id))
    assert item is not None
    return Owned(owned.badge_id, item)


def renamed(table: Table, owned: Owned, *names: str) -> Owned:
    for name in names:
        owner.change(table, again(table, owned), Change(name=name), NOON)
    return again(table, owned)


def shown(table: Table, badge_id: str = BADGE) -> int:
    return counting.read(table, badge_id).shown


def look(table: Table, now: float, badge_id: str = BADGE) -> View:
    """What a visitor's GET enqueues."""
    count = counting.read(table, badge_id)
    return View.taken(count.badge_id, count.counted, now, count.reset)


def put(table: Table, *views: View) -> None:
    assert storing.store(views, table, LIFETIME, NOON, map) == {}


def visit(table: Table, now: float = NOON, badge_id: str = BADGE, times: int = 1) -> None:
    """Visitors whose views arrive at once."""
    for _ in range(times):
        put(table, look(table, now, badge_id))


def removals(*views: View) -> list[Removal]:
    """The stream's next records, of views that TTL removes."""
    sequences = [str(next(SEQUENCES)) for _ in views]
    return [
        Removal(position(LABEL, sequence), view.badge_id, taken_at(view.ulid), sequence)
        for sequence, view in zip(sequences, views, strict=True)
    ]


def fold(table: Table, *views: View) -> folding.Folded:
    outcome = folding.fold(removals(*views), table, NOON)
    assert outcome.failed == ()
    return outcome


def folded(table: Table, now: float, times: int) -> None:
    """Views of the past, in the count and in the history of their day."""
    fold(table, *(View(BADGE, ulid_of(now, f"{place:016}"), 0) for place in range(times)))


def items(table: Table, badge_id: str = BADGE) -> list[Item]:
    return table.query(keys.partition(badge_id), limit=1000)


def user(table: Table, badge_id: str = BADGE) -> Item:
    return table.get(keys.user(badge_id)) or {}


def do(table: Table, owned: Owned, wanted: Change | None) -> None:
    """A change, or without one the deletion."""
    if wanted is None:
        owner.delete(table, owned, NOON)
    else:
        owner.change(table, owned, wanted, NOON)


def once(step: Callable[[], object]) -> Hook:
    """What happens before the first write, and before no other."""
    left = iter([step])

    def come_between(_: Sequence[Write]) -> None:
        for act in left:
            act()

    return come_between


# claim


def test_a_claim_leaves_only_a_digest_of_its_secret(table: Table) -> None:
    secret = owner.claim(table, BADGE, 0, NOON)
    assert table.get(keys.owner(BADGE)) == {
        "PK": "USER#octocat",
        "SK": "OWNER",
        "digest": hashlib.sha256(secret.encode()).hexdigest(),
        "created": int(NOON),
    }
    assert secret not in json.dumps(items(table))


def test_every_claim_has_a_secret_of_its_own(table: Table) -> None:
    secrets = {owner.claim(table, f"badge-{place}", 0, NOON) for place in range(20)}
    assert len(secrets) == 20
    assert {len(secret) for secret in secrets} == {24 * 4 // 3}  # 24 bytes as base64


def test_a_claimed_badge_counts_from_its_base_on(table: Table) -> None:
    claimed(table, base=1_000)
    assert shown(table) == 1_000
    visit(table, times=2)
    assert shown(table) == 1_000 + 2
    assert counting.read(table, BADGE).counted == 2


def test_a_badge_claimed_without_a_base_shows_0(table: Table) -> None:
    claimed(table)
    assert shown(table) == 0
    assert user(table) == {"PK": "USER#octocat", "SK": "USER", "created": int(NOON)}


@ON_SQLITE
@pytest.mark.parametrize(
    "item",
    [
        {"SK": f"VIEW#{ulid_of(NOON)}", "ttl": 1},
        {"SK": "USER", "count": 1},
        {"SK": "USER", "floor": 1},
        {"SK": "USER", "base": 1},
        {"SK": "USER", "alias": "another"},
        {"SK": "OWNER", "digest": "somebody's"},
    ],
    ids=["live view", "count", "floor", "imported base", "name of another", "owner"],
)
def test_what_is_not_new_cannot_be_claimed_and_stays_as_it_is(table: Table, item: Item) -> None:
    table.write(Put({"PK": "USER#octocat", **item}))
    before = items(table)
    with pytest.raises(TakenError, match="octocat"):
        owner.claim(table, BADGE, 5, NOON)
    assert items(table) == before


def test_a_badge_that_was_only_looked_at_or_has_a_count_of_0_can_be_claimed(table: Table) -> None:
    table.write(Put({"PK": "USER#octocat", "SK": "USER", "count": 0, "base": 0, "created": 17}))
    claimed(table)
    assert user(table)["created"] == 17


def test_a_view_that_is_put_while_a_badge_is_claimed_keeps_it_free(table: Table) -> None:
    raced = FaultyTable(table, before_write=once(lambda: visit(table)))
    with pytest.raises(TakenError):
        owner.claim(raced, BADGE, 0, NOON)
    assert table.get(keys.owner(BADGE)) is None
    assert shown(table) == 1


def test_of_two_who_claim_at_once_one_has_it(table: Table) -> None:
    secrets: list[str] = []
    first = once(lambda: secrets.append(owner.claim(table, BADGE, 7, NOON)))
    with pytest.raises(TakenError):
        owner.claim(FaultyTable(table, before_write=first), BADGE, 5, NOON)
    assert owner.authenticate(table, BADGE, *secrets).badge_id == BADGE
    assert shown(table) == 7


@pytest.mark.parametrize("failure", [Unavailable("throttled"), Refused("no right")])
def test_a_claim_that_fails_leaves_nothing(table: Table, failure: StorageError) -> None:
    with pytest.raises(type(failure)):
        owner.claim(FaultyTable(table, before_write=raising(failure)), BADGE, 5, NOON)
    assert items(table) == []


# authenticate


def test_the_secret_of_the_claim_opens_the_badge_by_each_of_its_names(table: Table) -> None:
    secret = owner.claim(table, BADGE, 0, NOON)
    renamed(table, owner.authenticate(table, BADGE, secret), "mona", "lisa")
    for name in (BADGE, "mona", "lisa"):
        owned = owner.authenticate(table, name, secret)
        assert (owned.badge_id, owned.names) == (BADGE, [BADGE, "mona", "lisa"])


@ON_SQLITE
@pytest.mark.parametrize(
    "wrong",
    [
        lambda _: "",
        lambda secret: secret[:-1],
        lambda secret: secret + "A",
        lambda secret: secret.swapcase(),
        tokens.digest,
        lambda _: "ü€🦆",
    ],
)
def test_any_other_secret_is_wrong(table: Table, wrong: Callable[[str], str]) -> None:
    secret = owner.claim(table, BADGE, 0, NOON)
    renamed(table, owner.authenticate(table, BADGE, secret), "mona")
    for name in (BADGE, "mona"):
        with pytest.raises(WrongSecretError) as refusal:
            owner.authenticate(table, name, wrong(secret))
        assert secret not in str(refusal.value)


def test_the_secret_of_one_badge_opens_no_other(table: Table) -> None:
    owner.claim(table, BADGE, 0, NOON)
    with pytest.raises(WrongSecretError):
        owner.authenticate(table, BADGE, owner.claim(table, "mona", 0, NOON))


def test_a_badge_without_an_owner_has_no_secret(table: Table) -> None:
    visit(table)
    for badge_id in (BADGE, "unseen"):
        with pytest.raises(NotClaimedError, match=f"{badge_id} has no owner"):
            owner.authenticate(table, badge_id, "any")


def test_digests_are_compared_in_a_time_that_tells_nothing() -> None:
    tree = ast.parse(inspect.getsource(owner.authenticate))
    calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert calls.count("hmac.compare_digest") == 1
    comparisons = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    assert [ast.unparse(node) for node in comparisons] == ["owner is None"]


# base


def test_a_base_is_set_and_set_again_and_the_views_stay(table: Table) -> None:
    owned = claimed(table, base=10)
    visit(table, times=3)
    for base in (500, 0, 10**15):
        owner.change(table, owned, Change(base=base), NOON)
        assert shown(table) == base + 3


def test_a_base_raises_no_floor(table: Table) -> None:
    """3 visitors see 1000, 1001 and 1002: without the base 0, 1 and 2, so the floor is 3."""
    owned = claimed(table, base=1_000)
    visit(table, times=3)
    assert user(table)["floor"] == 3
    owner.change(table, owned, Change(base=0), NOON)
    assert shown(table) == 3


# begin anew


def test_a_reset_badge_shows_0_and_counts_from_there(table: Table) -> None:
    """4 in the count, 2 live, a base of 10: all gone; then 3 come."""
    owned = claimed(table, base=10)
    folded(table, NOON - 2 * DAY, 4)
    visit(table, times=2)
    assert shown(table) == 10 + 4 + 2
    owner.change(table, owned, Change(reset=True), NOON)
    assert shown(table) == 0
    assert {"count", "floor"}.isdisjoint(user(table))
    visit(table, NOON + 1, times=3)
    assert shown(table) == 3


def test_a_reset_empties_today_and_forgets_every_day_before(table: Table) -> None:
    """Today and 130 days before: more than go in one transaction of 100."""
    owned = claimed(table)
    noon = datetime.fromtimestamp(NOON, UTC)
    days = [keys.day(BADGE, noon - timedelta(days=ago)) for ago in range(131)]
    table.put_all([{"PK": day.pk, "SK": day.sk, "views": 9, "h12": 9} for day in days])
    owner.change(table, owned, Change(reset=True), NOON)
    history = table.query(keys.partition(BADGE), first="DAY#", last="DAY#9", limit=1000)
    assert history == [{"PK": TODAY.pk, "SK": TODAY.sk, "views": 0, "reset": AT_NOON + 1}]


def test_a_reset_keeps_the_place_in_the_stream(table: Table) -> None:
    """A removal of after the reset that is delivered twice counts once."""
    owned = claimed(table)
    folded(table, NOON - DAY, 2)
    place = user(table)["folded"]
    owner.change(table, owned, Change(reset=True), NOON)
    assert user(table)["folded"] == place
    batch = removals(look(table, NOON + 1))
    for new in (1, 0):
        assert folding.fold(batch, table, NOON).folded == new
    assert shown(table) == 1


def test_views_of_before_a_reset_count_nowhere_wherever_they_are(table: Table) -> None:
    """Live, in the queue and in the stream, all of the very millisecond of the reset."""
    owned = claimed(table)
    live, queued, removed = (look(table, NOON) for _ in range(3))
    put(table, live)
    owner.change(table, owned, Change(reset=True), NOON)
    put(table, queued)
    assert shown(table) == 0
    assert fold(table, removed, live, queued) == folding.Folded(dropped=3)
    assert shown(table) == 0
    assert table.get(TODAY) == {
        "PK": TODAY.pk,
        "SK": TODAY.sk,
        "views": 0,
        "reset": AT_NOON + 1,
    }


def test_a_view_of_after_a_reset_counts_in_the_badge_and_in_its_day(table: Table) -> None:
    owned = claimed(table)
    visit(table, times=5)
    owner.change(table, owned, Change(reset=True), NOON)
    late = look(table, NOON)  # the same millisecond, but this visitor saw a 0
    put(table, late)
    assert shown(table) == 1
    assert user(table)["floor"] == 1
    assert fold(table, late).folded == 1
    day = table.get(TODAY) or {}
    assert (user(table)["count"], day["views"], day["h12"]) == (1, 1, 1)


def test_a_high_floor_of_before_does_not_come_back_with_a_late_view(table: Table) -> None:
    """Somebody saw 99 before the reset; put after it, his view raises no floor to 100."""
    owned = claimed(table)
    late = View.taken(BADGE, 99, NOON)
    owner.change(table, owned, Change(reset=True), NOON)
    put(table, late)
    assert shown(table) == 0
    storing.store_one(late, table, LIFETIME, NOON)
    assert shown(table) == 0


def test_a_reset_while_a_batch_is_folded_takes_its_day_too(table: Table) -> None:
    owned = claimed(table)
    view = look(table, NOON)
    put(table, view)

    def begin_anew(writes: Sequence[Write]) -> None:
        if writes[0].key == TODAY:
            owner.change(table, owned, Change(reset=True), NOON)

    raced = FaultyTable(table, before_write=begin_anew)
    assert folding.fold(removals(view), raced, NOON).folded == 1
    assert shown(table) == 0
    assert (table.get(TODAY) or {})["views"] == 0


def test_after_a_clock_is_set_back_a_reset_is_still_later_and_new_views_count(
    table: Table,
) -> None:
    """The second reset is an hour before the first by the clock, and 1 ms after it in the table."""
    owned = claimed(table)
    visit(table, times=4)
    owner.change(table, owned, Change(reset=True), NOON)
    before = look(table, NOON - HOUR)
    visit(table, NOON - HOUR, times=2)
    assert shown(table) == 2
    owner.change(table, owned, Change(reset=True), NOON - HOUR)
    assert user(table)["reset"] == AT_NOON + 2
    put(table, before)
    assert shown(table) == 0
    visit(table, NOON - HOUR, times=3)
    assert shown(table) == 3


def test_each_of_two_resets_begins_anew(table: Table) -> None:
    owned = claimed(table)
    resets = []
    between = look(table, NOON)
    for views in (3, 2):
        visit(table, times=views)
        between = look(table, NOON)
        owner.change(table, owned, Change(reset=True), NOON)
        resets.append(user(table)["reset"])
        assert shown(table) == 0
    put(table, between)
    assert shown(table) == 0
    assert resets == [AT_NOON + 1, AT_NOON + 2]


def test_a_reset_forgets_the_base_unless_it_gives_one(table: Table) -> None:
    owned = claimed(table, base=10)
    visit(table, times=2)
    owner.change(table, owned, Change(reset=True, base=70), NOON)
    assert shown(table) == 70
    visit(table)
    assert shown(table) == 70 + 1
    owner.change(table, owned, Change(reset=True), NOON)
    assert shown(table) == 0


# freeze


def test_a_badge_is_frozen_and_thawed_and_shows_what_it_has(table: Table) -> None:
    owned = claimed(table)
    visit(table, times=2)
    for frozen in (True, True, False, False):
        owner.change(table, owned, Change(frozen=frozen), NOON)
        count = counting.read(table, BADGE)
        assert (count.frozen, count.shown) == (frozen, 2)


def test_a_change_of_one_thing_leaves_the_others(table: Table) -> None:
    owned = claimed(table, base=10)
    visit(table)
    owner.change(table, owned, Change(frozen=True), NOON)
    owner.change(table, owned, Change(base=20), NOON)
    owner.change(table, owned, Change(name="mona"), NOON)
    count = counting.read(table, "mona")
    assert (count.frozen, count.shown, count.badge_id) == (True, 21, BADGE)
    owner.change(table, again(table, owned), Change(reset=True), NOON)
    assert counting.read(table, "mona").frozen


def test_all_is_changed_at_once(table: Table) -> None:
    owned = claimed(table)
    visit(table, times=3)
    wanted = Change(base=40, reset=True, frozen=True, name="mona")
    owner.change(table, owned, wanted, NOON)
    for name in (BADGE, "mona"):
        count = counting.read(table, name)
        assert (count.shown, count.frozen) == (40, True)


# rename


def test_both_names_show_and_count_the_same_badge(table: Table) -> None:
    """2 views before, then 3 by the old name and 4 by the new one."""
    owned = claimed(table)
    visit(table, times=2)
    renamed(table, owned, "mona")
    visit(table, times=3)
    visit(table, badge_id="mona", times=4)
    assert [shown(table, name) for name in (BADGE, "mona")] == [9, 9]
    [alias] = items(table, "mona")
    assert alias == {
        "PK": "USER#mona",
        "SK": "USER",
        "alias": BADGE,
        "created": int(NOON),
    }


def test_a_view_on_its_way_under_a_name_that_is_now_an_alias_counts_for_the_badge(
    table: Table,
) -> None:
    """By the queue, or directly: then it is stored under both, and counted under one."""
    owned = claimed(table)
    queued, direct = (look(table, NOON, "mona") for _ in range(2))
    renamed(table, owned, "mona")
    put(table, queued)
    storing.store_one(direct, table, LIFETIME, NOON)
    assert [shown(table, name) for name in (BADGE, "mona")] == [2, 2]


def test_a_view_that_the_queue_fails_is_stored_under_the_badge(table: Table) -> None:
    renamed(table, claimed(table), "mona")
    view = look(table, NOON, "mona")
    counting.take(view, FakeQueue(Unavailable("throttled")), table, LIFETIME, NOON)
    assert [shown(table, name) for name in (BADGE, "mona")] == [1, 1]


def test_a_badge_is_renamed_again_and_back_and_keeps_every_name(table: Table) -> None:
    owned = renamed(table, claimed(table), "mona", "lisa")
    assert owned.names == [BADGE, "mona", "lisa"]
    owned = renamed(table, owned, "mona")
    assert owned.names == [BADGE, "lisa", "mona"]
    owned = renamed(table, owned, BADGE)
    assert owned.names[-1] == BADGE
    visit(table, badge_id="lisa")
    assert [shown(table, name) for name in (BADGE, "mona", "lisa")] == [1, 1, 1]


def test_the_name_it_has_can_be_given_again(table: Table) -> None:
    assert renamed(table, claimed(table), BADGE).names[-1] == BADGE
    assert shown(table) == 0


def test_a_name_that_is_taken_changes_nothing(table: Table) -> None:
    """It has views, an owner without views, a base, or is the name of another badge."""
    owned = claimed(table)
    visit(table, badge_id="viewed")
    claimed(table, "owned")
    table.write(Put({"PK": "USER#imported", "SK": "USER", "base": 5}))
    renamed(table, claimed(table, "other"), "alias")
    visit(table, times=2)
    before = items(table)
    for name in ("viewed", "owned", "imported", "other", "alias"):
        with pytest.raises(TakenError, match=f"{name} has an owner or views"):
            owner.change(table, owned, Change(name=name, reset=True, base=9), NOON)
        assert items(table) == before
        assert counting.read(table, name).badge_id != BADGE


def test_a_name_with_a_view_that_was_stored_and_left_no_floor_is_not_given(table: Table) -> None:
    """The queue and then the floor had failed: under a badge's name nobody would count it."""
    owned = claimed(table)
    table.put_all([storing.to_item(View("viewed", ulid_of(NOON), 0), "viewed", 1)])
    with pytest.raises(TakenError, match="viewed has an owner or views already"):
        owner.change(table, owned, Change(name="viewed", base=9), NOON)
    assert (shown(table), shown(table, "viewed")) == (0, 1)


def test_a_badge_has_20_names_and_can_always_go_back_to_each(table: Table) -> None:
    names = [f"name-{place}" for place in range(1, MAX_NAMES)]
    owned = renamed(table, claimed(table), *names)
    assert len(owned.names) == MAX_NAMES == 20
    with pytest.raises(TakenError, match="20 names"):
        owner.change(table, owned, Change(name="one too many"), NOON)
    assert user(table, "one too many") == {}
    owned = renamed(table, owned, names[0], BADGE, names[5])
    assert set(owned.names) == {BADGE, *names}
    with pytest.raises(TakenError, match="20 names"):
        owner.change(table, owned, Change(name="one too many"), NOON)
    owner.delete(table, owned, NOON)
    for name in (BADGE, *names):
        assert "alias" not in user(table, name)


# delete


def test_of_a_deleted_badge_only_the_time_and_the_place_in_the_stream_stay(table: Table) -> None:
    owned = claimed(table, base=10)
    folded(table, NOON - 2 * DAY, 4)
    folded(table, NOON, 1)
    place = user(table)["folded"]
    owner.change(table, owned, Change(frozen=True), NOON)
    owner.delete(table, owned, NOON)
    reset = AT_NOON + 1
    assert items(table) == [
        {"PK": TODAY.pk, "SK": TODAY.sk, "views": 0, "folded": place, "reset": reset},
        {
            "PK": "USER#octocat",
            "SK": "USER",
            "created": int(NOON),
            "folded": place,
            "reset": reset,
        },
    ]
    count = counting.read(table, BADGE)
    assert (count.shown, count.frozen) == (0, False)


def test_a_deleted_badge_has_no_secret_and_its_names_are_free(table: Table) -> None:
    secret = owner.claim(table, BADGE, 0, NOON)
    owned = renamed(table, owner.authenticate(table, BADGE, secret), "mona", "lisa")
    visit(table, times=3)
    owner.delete(table, owned, NOON)
    for name in (BADGE, "mona", "lisa"):
        with pytest.raises(NotClaimedError):
            owner.authenticate(table, name, secret)
        count = counting.read(table, name)
        assert (count.shown, count.badge_id) == (0, name)
    visit(table, NOON + 1, badge_id="mona")
    assert [shown(table, name) for name in (BADGE, "mona", "lisa")] == [0, 1, 0]


def test_views_on_their_way_do_not_bring_a_deleted_badge_back(table: Table) -> None:
    """Live, queued and removed; one was taken by the other name while the count was unreadable."""
    owned = renamed(table, claimed(table), "mona")
    live, queued, removed = (look(table, NOON) for _ in range(3))
    unread = View.taken("mona", 0, NOON)
    put(table, live)
    owner.delete(table, owned, NOON)
    put(table, queued, unread)
    assert fold(table, removed, queued, live) == folding.Folded(dropped=3)
    assert fold(table, unread) == folding.Folded(dropped=1)
    assert [shown(table, name) for name in (BADGE, "mona")] == [0, 0]
    visit(table, NOON + 1, times=2)
    assert shown(table) == 2


def test_a_view_that_was_stored_under_both_names_does_not_come_back_with_the_other(
    table: Table,
) -> None:
    """Stored directly under the alias too, it was folded there: where nobody looked till now."""
    owned = renamed(table, claimed(table), "mona")
    direct = View.taken("mona", 0, NOON)
    storing.store_one(direct, table, LIFETIME, NOON)
    fold(table, direct)
    owner.delete(table, owned, NOON)
    assert shown(table, "mona") == 0
    claimed(table, "mona")


@pytest.mark.parametrize("name", [BADGE, "mona"])
def test_a_deleted_badge_can_be_claimed_anew_by_somebody_else(table: Table, name: str) -> None:
    secret = owner.claim(table, BADGE, 5, NOON)
    owned = renamed(table, owner.authenticate(table, BADGE, secret), "mona")
    visit(table, times=3)
    owner.delete(table, owned, NOON)
    other = owner.claim(table, name, 0, NOON + 1)
    assert other != secret
    assert shown(table, name) == 0
    with pytest.raises(WrongSecretError):
        owner.authenticate(table, name, secret)
    assert owner.authenticate(table, name, other).names == [name]
    visit(table, NOON + 2, name)
    assert shown(table, name) == 1


def test_a_deleted_badge_that_has_views_again_cannot_be_claimed(table: Table) -> None:
    owner.delete(table, claimed(table), NOON)
    visit(table, NOON + 1)
    with pytest.raises(TakenError):
        owner.claim(table, BADGE, 0, NOON + 2)


def test_a_free_name_of_a_deleted_badge_can_be_the_name_of_another(table: Table) -> None:
    owner.delete(table, renamed(table, claimed(table), "mona"), NOON)
    other = claimed(table, "hubot")
    renamed(table, other, "mona", BADGE)
    visit(table, NOON + 1, BADGE)
    assert [shown(table, name) for name in ("hubot", "mona", BADGE)] == [1, 1, 1]


# what comes in between


def test_of_two_resets_at_once_the_later_counts(table: Table) -> None:
    """The other reset comes between reading and writing, and has a base and a view already."""
    owned = claimed(table)

    def other() -> None:
        owner.change(table, owned, Change(reset=True, base=7), NOON)
        visit(table)

    raced = FaultyTable(table, before_write=once(other))
    owner.change(raced, owned, Change(reset=True), NOON)
    assert (user(table)["reset"], shown(table)) == (AT_NOON + 2, 0)


def test_a_base_that_meets_a_reset_is_the_base_of_the_new_count(table: Table) -> None:
    owned = claimed(table, base=1)
    visit(table, times=4)
    reset = once(lambda: owner.change(table, owned, Change(reset=True), NOON))
    owner.change(FaultyTable(table, before_write=reset), owned, Change(base=70), NOON)
    assert shown(table) == 70


@pytest.mark.parametrize("wanted", [Change(base=5), None], ids=str)
def test_who_always_comes_too_late_is_told_to_ask_again(
    table: Table, wanted: Change | None
) -> None:
    owned = claimed(table)

    def reset(_: Sequence[Write]) -> None:
        owner.change(table, owned, Change(reset=True, base=1), NOON)

    raced = FaultyTable(table, before_write=reset)
    with pytest.raises(Unavailable, match=f"{TRIES} other changes of octocat"):
        do(raced, owned, wanted)
    assert len(raced.written) == TRIES
    assert (user(table)["reset"], shown(table)) == (AT_NOON + TRIES, 1)


CHANGES = [
    Change(base=5),
    Change(reset=True),
    Change(frozen=True),
    Change(name="mona"),
    Change(base=5, reset=True, frozen=True, name="mona"),
]


@ON_SQLITE
@pytest.mark.parametrize("wanted", CHANGES, ids=str)
@pytest.mark.parametrize("anew", [False, True])
def test_nothing_of_a_badge_that_was_deleted_meanwhile_is_changed(
    table: Table, wanted: Change, *, anew: bool
) -> None:
    """Nor of what somebody else has claimed anew."""
    owned = claimed(table)
    visit(table, times=2)

    def deleted() -> None:
        owner.delete(table, owned, NOON)
        if anew:
            owner.claim(table, BADGE, 3, NOON)

    raced = FaultyTable(table, before_write=once(deleted))
    with pytest.raises(TakenError, match="deleted meanwhile"):
        owner.change(raced, owned, wanted, NOON)
    assert shown(table) == 3 * anew
    assert not counting.read(table, BADGE).frozen
    assert user(table, "mona") == {}


@pytest.mark.parametrize("anew", [False, True])
def test_a_badge_is_deleted_once(table: Table, *, anew: bool) -> None:
    owned = claimed(table)

    def deleted() -> None:
        owner.delete(table, owned, NOON)
        if anew:
            owner.claim(table, BADGE, 3, NOON)

    with pytest.raises(TakenError, match="deleted meanwhile"):
        owner.delete(FaultyTable(table, before_write=once(deleted)), owned, NOON)
    assert shown(table) == 3 * anew
    assert (table.get(keys.owner(BADGE)) is not None) == anew


@pytest.mark.parametrize("first", [(), ("lisa",)])
def test_of_two_renames_at_once_one_is_told_and_no_name_is_lost(
    table: Table, first: tuple[str, ...]
) -> None:
    """Else the badge would not know of the other name, which would outlive it."""
    owned = renamed(table, claimed(table), *first)
    other = once(lambda: owner.change(table, owned, Change(name="mona"), NOON))
    with pytest.raises(TakenError, match="renamed or deleted meanwhile"):
        owner.change(FaultyTable(table, before_write=other), owned, Change(name="late"), NOON)
    assert again(table, owned).names == [BADGE, *first, "mona"]
    assert user(table, "late") == {}


def test_a_badge_that_is_renamed_while_it_is_deleted_stays(table: Table) -> None:
    """The new name would lead nowhere, and could never be claimed."""
    owned = claimed(table)
    rename = once(lambda: owner.change(table, owned, Change(name="mona"), NOON))
    with pytest.raises(TakenError, match="renamed or deleted meanwhile"):
        owner.delete(FaultyTable(table, before_write=rename), owned, NOON)
    assert again(table, owned).names == [BADGE, "mona"]
    owner.delete(table, again(table, owned), NOON)
    claimed(table, "mona")


def test_a_base_can_be_set_while_the_badge_is_renamed(table: Table) -> None:
    owned = claimed(table)
    rename = once(lambda: owner.change(table, owned, Change(name="mona"), NOON))
    owner.change(FaultyTable(table, before_write=rename), owned, Change(base=5), NOON)
    assert shown(table, "mona") == 5


def test_a_view_that_is_put_under_a_name_meanwhile_keeps_it_free(table: Table) -> None:
    owned = claimed(table)
    view = once(lambda: visit(table, badge_id="mona"))
    with pytest.raises(TakenError, match="mona has an owner or views"):
        owner.change(FaultyTable(table, before_write=view), owned, Change(name="mona"), NOON)
    assert [shown(table, name) for name in (BADGE, "mona")] == [0, 1]
    assert again(table, owned).names == [BADGE]


def test_a_name_that_is_claimed_meanwhile_is_not_given(table: Table) -> None:
    owned = claimed(table)
    claim = once(lambda: owner.claim(table, "mona", 0, NOON))
    with pytest.raises(TakenError, match="mona has an owner or views"):
        owner.change(FaultyTable(table, before_write=claim), owned, Change(name="mona"), NOON)
    assert counting.read(table, "mona").badge_id == "mona"


# what fails


def state(table: Table) -> Any:
    """What anybody can see of a badge and its names."""
    counts = [counting.read(table, name) for name in (BADGE, "mona")]
    holder = table.get(keys.owner(BADGE))
    return [(count.shown, count.frozen, count.badge_id) for count in counts], holder


@ON_SQLITE
@pytest.mark.parametrize("wanted", [*CHANGES, None], ids=str)
@pytest.mark.parametrize("failure", [Unavailable("throttled"), Refused("no right")])
def test_what_fails_before_the_write_changes_nothing(
    table: Table, wanted: Change | None, failure: StorageError
) -> None:
    owned = claimed(table, base=2)
    folded(table, NOON - DAY, 3)
    before = items(table), items(table, "mona")
    broken = FaultyTable(table, before_write=raising(failure))
    with pytest.raises(type(failure)):
        do(broken, owned, wanted)
    assert (items(table), items(table, "mona")) == before


@ON_SQLITE
@pytest.mark.parametrize("wanted", [*CHANGES, None], ids=str)
@pytest.mark.parametrize("place", [0, 1])
def test_what_fails_after_the_write_has_changed_all(
    table: Table, wanted: Change | None, place: int
) -> None:
    """The answer is lost; or the days of before stay, of no count any more: that is no fault."""
    owned = claimed(table, base=2)
    folded(table, NOON - DAY, 3)
    failures: list[Exception | None] = [None] * place + [Unavailable("no answer")]
    broken = FaultyTable(table, after_write=raising(*failures))
    if place:
        do(broken, owned, wanted)
    else:
        with pytest.raises(Unavailable):
            do(broken, owned, wanted)
    after = state(table)
    with sqlite_table() as other:
        twin = claimed(other, base=2)
        folded(other, NOON - DAY, 3)
        do(other, twin, wanted)
        expected = state(other)
    assert after[0] == expected[0]
    assert (after[1] is None) == (expected[1] is None)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["look", "put", "fold", "reset", "base"]),
        st.floats(0.002, 30),
        st.booleans(),
    ),
    max_size=25,
)


@settings(max_examples=40)
@given(STEPS)
def test_what_is_shown_is_the_base_and_every_view_seen_since_the_last_reset(
    steps: list[tuple[str, float, bool]],
) -> None:
    """In the count, live, or on their way, however late they arrive; the last one in between."""
    with sqlite_table() as table:
        owned = claimed(table)
        now, base, since = NOON, 0, 0
        waiting: list[View] = []
        live: list[View] = []
        for step, seconds, newest in steps:
            now += seconds
            if step == "look":
                waiting.append(look(table, now))
                since += 1
            elif step == "put" and waiting:
                live.append(waiting.pop(-1 if newest else 0))
                put(table, live[-1])
            elif step == "fold":
                for view in live:
                    table.write(Delete(keys.view(BADGE, view.ulid)))
                fold(table, *live)
                live.clear()
            elif step == "reset":
                base, since = 3 * newest, 0
                owner.change(table, owned, Change(reset=True, base=base), now)
            elif step == "base":
                base = int(100 * seconds)
                owner.change(table, owned, Change(base=base), now)
            assert base <= shown(table) <= base + since
        put(table, *waiting)
        assert shown(table) == base + since
