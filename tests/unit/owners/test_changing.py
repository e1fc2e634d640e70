"""The changes of a badge: reset and rename, in one transaction, and what comes in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chalicelib.counting import badge_count, keys
from chalicelib.counting.summary import read
from chalicelib.owners import claiming, finding
from chalicelib.owners.finding import MAX_NAMES, NotClaimedError, TakenError, WrongSecretError
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Value
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Delete, Write
from simulation.clocks import NOON
from simulation.storage import FaultyTable, once, raising
from simulation.views import (
    AT_NOON,
    BADGE,
    DAY,
    HOUR,
    days,
    fold,
    put_summary,
    put_views,
    shown,
    summary,
)
from tests.unit.owners import owning

CHANGES = [
    {"base": 5},
    {"reset": True},
    {"frozen": True},
    {"name": "mona"},
    {"base": 5, "reset": True, "frozen": True, "name": "mona"},
]


@pytest.mark.parametrize("wanted", CHANGES, ids=str)
@pytest.mark.parametrize("is_claimed", [False, True])
def test_nothing_of_a_badge_that_was_deleted_meanwhile_is_changed(
    table: Table, wanted: dict[str, Any], *, is_claimed: bool
) -> None:
    """The same holds for one that another owner has claimed since then."""
    owned = owning.claimed(table)
    owning.visit(table, times=2)
    expected = WrongSecretError if is_claimed else NotClaimedError
    says = "octocat has another owner now" if is_claimed else "octocat was deleted"
    with pytest.raises(expected, match=f"^{says}$"):
        owning.change(
            owning.deleted_meanwhile(table, owned, is_claimed=is_claimed), owned, **wanted
        )
    assert shown(table) == 3 * is_claimed
    assert not badge_count.read(table, BADGE).summary.frozen
    assert summary(table, "mona") == {}


def test_a_change_of_an_owner_who_is_replaced_meanwhile_changes_nothing(table: Table) -> None:
    owned = owning.claimed(table)
    grant = once(lambda: claiming.grant(table, BADGE, NOON, owning.OWN_DIGEST))
    with pytest.raises(WrongSecretError):
        owning.change(FaultyTable(table, before_write=grant), owned, base=7)
    assert shown(table) == 0


# ---- reset


def test_a_reset_sets_watermark_and_reset_to_5_seconds_after_the_clock(table: Table) -> None:
    owned = owning.claimed(table, base=10)
    today: Value = {"day": "2026-03-14", "h11": 4}
    numbers: dict[str, Any] = {"count": 4, "base": 10, "watermark": AT_NOON, "hot": int(NOON) + 9}
    put_summary(table, today=today, version=7, created=9, **numbers)
    owning.change(table, owned, reset=True)
    assert summary(table) == {
        "base": 0,
        "count": 0,
        "watermark": AT_NOON + owning.AHEAD,
        "reset": AT_NOON + owning.AHEAD,
        "version": 8,
        "created": 9,
    }


def end_life(table: Table, what: str, name: str = BADGE, first: str = BADGE) -> None:
    """End the life of a name: of a badge that is reset or deleted, or of a new name."""
    owned = finding.look_up(table, first)
    if what == "delete":
        owning.delete(table, owned)
    else:
        owning.change(table, owned, **({"reset": True} if what == "reset" else {"name": name}))


@pytest.mark.parametrize(
    ("watermark", "reset"),
    [
        (owning.AHEAD - 1_001, owning.AHEAD),
        (owning.AHEAD - 1_000, owning.AHEAD),
        (owning.AHEAD - 999, owning.AHEAD + 1),
        (10**9, 10**9 + 1_000),
    ],
)
@pytest.mark.parametrize("what", ["reset", "delete", "rename"])
def test_a_life_ends_a_second_after_the_watermark_at_least(
    table: Table, watermark: int, reset: int, what: str
) -> None:
    """All times are in milliseconds after noon, where the clock is: so two ends of lives differ."""
    owning.claim(table)
    name = "mona" if what == "rename" else BADGE
    put_summary(table, name, watermark=AT_NOON + watermark, version=1)
    end_life(table, what, name)
    ended = summary(table, name)
    assert ended["reset"] == ended["watermark"] == AT_NOON + reset


@pytest.mark.parametrize("what", ["reset", "delete"])
@pytest.mark.parametrize("name", [BADGE, "mona"])
def test_a_life_ends_after_the_newest_view_of_every_name(
    table: Table, what: str, name: str
) -> None:
    """A clock that was two hours ahead took the view under a name of the badge."""
    newest = AT_NOON + 2 * HOUR * 1000
    owning.rename(table, owning.claimed(table), "mona")
    put_views(table, AT_NOON, newest, badge_id=name)
    end_life(table, what)
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

    owning.change(FaultyTable(table, before_read=take), owning.claimed(table), name="mona")
    assert read(table, "mona").reset > newest


def test_a_reset_deletes_the_earlier_days(table: Table) -> None:
    """250 days are more than two transactions of 100; the days of the new life stay."""
    owned, noon = owning.claimed(table), datetime.fromtimestamp(NOON, UTC)
    for ago in range(250):
        owning.put_day(table, f"{noon - timedelta(days=ago):%Y-%m-%d}", views=9, h12=9)
    owning.change(table, owned, reset=True)
    assert days(table) == {}
    assert owning.again(table, owned).is_claimed


@pytest.mark.parametrize("is_read", [False, True], ids=["before it is read", "after it is read"])
def test_a_reset_deletes_no_day_of_the_new_life(table: Table, *, is_read: bool) -> None:
    """A fold puts the day again, or somebody resets again while the days are deleted."""
    owned, new = owning.claimed(table), {"views": 9, "reset": AT_NOON + owning.AHEAD}
    if is_read:
        owning.put_day(table, "2026-03-14", views=9)

    def new_life(writes: Sequence[Write]) -> None:
        if isinstance(writes[0], Delete) if is_read else writes[0].key == keys.summary(BADGE):
            owning.put_day(table, "2026-03-14", **new)

    step: dict[str, Any] = {"before_write" if is_read else "after_write": new_life}
    owning.change(FaultyTable(table, **step), owned, reset=True)
    assert days(table) == {"2026-03-14": new}
    owning.change(table, owned, reset=True)
    assert days(table) == {}


def test_a_reset_whose_days_can_not_be_deleted_is_done(table: Table) -> None:
    """No reader sees the days of an earlier life, and the next reset deletes them."""
    owned = owning.claimed(table)
    owning.put_day(table, "2026-03-13", views=9)
    broken = FaultyTable(table, before_write=raising(None, UnavailableError("throttled")))
    owning.change(broken, owned, reset=True)
    assert len(broken.written) == 2
    assert list(days(table)) == ["2026-03-13"]
    owning.change(table, owned, reset=True)
    assert days(table) == {}


# ---- rename


def test_a_name_that_is_taken_changes_nothing(table: Table) -> None:
    """It has views, an owner without views, a base, or is the name of another badge."""
    owned = owning.claimed(table)
    owning.visit(table, badge_id="viewed")
    owning.claimed(table, "owned")
    put_summary(table, "imported", base=5)
    owning.rename(table, owning.claimed(table, "other"), "alias")
    owning.visit(table, times=2)
    before = owning.items(table)
    for name in ("viewed", "owned", "imported", "other", "alias"):
        said = f"^{name} has an owner, views, a base or GitHub's numbers: "
        with pytest.raises(TakenError, match=said):
            owning.change(table, owned, name=name, reset=True, base=9)
        assert owning.items(table) == before
        assert badge_count.read(table, name).summary.badge_id != BADGE


@pytest.mark.parametrize(
    ("take", "shows"),
    [
        (lambda table: put_summary(table, "mona", count=1, version=9), 1),
        (lambda table: owning.claim(table, "mona"), 0),
        (lambda table: claiming.grant(table, "mona", NOON, owning.OWN_DIGEST), 0),
    ],
    ids=["viewed", "claimed", "granted"],
)
def test_a_name_that_is_taken_meanwhile_is_not_given(
    table: Table, take: Callable[[Table], object], shows: int
) -> None:
    """A grant of an id that had an owner writes no summary."""
    owned = owning.claimed(table)
    owning.claim(table, "mona")
    claiming.release(table, "mona")
    raced = FaultyTable(table, before_write=once(lambda: take(table)))
    with pytest.raises(TakenError, match="mona has an owner, views, a base or GitHub's numbers"):
        owning.change(raced, owned, name="mona")
    assert owning.again(table, owned).names == (BADGE,)
    assert badge_count.read(table, "mona").summary.badge_id == "mona"
    assert [shown(table, name) for name in (BADGE, "mona")] == [0, shows]


def test_a_badge_has_20_names_and_can_always_go_back_to_each(table: Table) -> None:
    names = [f"name-{place}" for place in range(1, MAX_NAMES)]
    owned = owning.rename(table, owning.claimed(table), *names)
    assert len(owned.names) == MAX_NAMES == 20
    refusal = "^a badge can have 20 names, with its earlier names; use one of those$"
    with pytest.raises(TakenError, match=refusal):
        owning.change(table, owned, name="one too many")
    assert summary(table, "one too many") == {}
    owned = owning.rename(table, owned, names[0], BADGE, names[5])
    assert set(owned.names) == {BADGE, *names}
    with pytest.raises(TakenError, match=refusal):
        owning.change(table, owned, name="one too many")
    owning.delete(table, owned)
    for name in (BADGE, *names):
        assert "alias" not in summary(table, name)


def test_a_name_of_a_deleted_badge_can_be_given_to_another(table: Table) -> None:
    owning.delete(table, owning.rename(table, owning.claimed(table), "mona"))
    secret = owning.claim(table, "hubot")
    other = owning.rename(table, finding.authenticate(table, "hubot", secret), "mona", BADGE)
    assert "deleted" not in summary(table, "mona")
    assert finding.authenticate(table, "mona", secret).names == other.names
    owning.visit(table, owning.LATER, BADGE)
    assert [shown(table, name) for name in ("hubot", "mona", BADGE)] == [1, 1, 1]


@pytest.mark.parametrize("first", [(), ("lisa",)])
@pytest.mark.parametrize("step", ["before_write", "before_read"])
def test_of_two_renames_no_name_is_lost(table: Table, first: tuple[str, ...], step: str) -> None:
    """The names are checked: the version of the summary tells nothing of one before its read.

    Otherwise the badge would not know of the other name, which would outlive it.
    """
    owned = owning.rename(table, owning.claimed(table), *first)
    owning.change(owning.renamed_meanwhile(table, owned, step), owned, name="late")
    assert owning.again(table, owned).names == (BADGE, *first, "mona", "late")
    assert shown(table, "late") == 0
