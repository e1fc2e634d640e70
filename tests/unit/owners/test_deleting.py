"""The deletion of a badge, its tombstones, what comes in between, and lost answers of requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chalicelib.counting import badge_count
from chalicelib.http import tokens
from chalicelib.owners import claiming, finding
from chalicelib.owners.finding import OwnedBadge, WrongSecretError
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Write
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
from tests.unit.owners.owning import (
    AHEAD,
    LATER,
    LOST,
    change,
    claim,
    claimed,
    delete,
    deleted_meanwhile,
    items,
    owner,
    put_day,
    rename,
    renamed_meanwhile,
    visit,
)
from tests.unit.owners.test_changing import CHANGES

TOMBSTONE = WINDOWS.retention + 7 * DAY
TIMES = {"watermark", "reset", "ttl"}


def state(table: Table, *names: str, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return all that is stored of ids, without the versions."""
    return {
        name: [
            {k: v for k, v in item.items() if k not in {"version", *without}}
            for item in items(table, name)
        ]
        for name in names
    }


def test_a_deleted_badge_leaves_a_tombstone_for_a_retention_and_a_week(table: Table) -> None:
    secret = claim(table, base=10)
    owned = rename(table, finding.authenticate(table, BADGE, secret), "mona")
    put_day(table, "2026-03-12", views=4)
    visit(table)
    fold(table, LATER)
    assert store(table, view(AT_NOON + 9_000, hot=True), now=LATER) == {}
    change(table, owned, frozen=True)
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
    assert (days(table), owner(table)) == ({}, {})
    count = badge_count.read(table, BADGE)
    assert (count.shown, count.summary.frozen) == (0, False)


def test_a_tombstone_ends_only_after_the_days_are_deleted(table: Table) -> None:
    """Otherwise a new life could have the days of this one."""
    secret = claim(table)
    put_day(table, "2026-03-12", views=4)
    broken = FaultyTable(table, before_write=raising(None, UnavailableError("throttled")))
    with pytest.raises(UnavailableError):
        delete(broken, finding.authenticate(table, BADGE, secret))
    assert "ttl" not in summary(table)
    assert list(days(table)) == ["2026-03-12"]
    delete(table, finding.authenticate(table, BADGE, secret))
    assert "ttl" in summary(table)
    assert days(table) == {}


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


# ---- what comes in between


def test_a_new_life_that_begins_while_a_tombstone_is_written_stays(table: Table) -> None:
    owned = claimed(table)

    def live_again(writes: Sequence[Write]) -> None:
        if "ttl" in getattr(writes[0], "values", {}):
            visit(table, LATER)
            fold(table, LATER + 1_000)

    delete(FaultyTable(table, before_write=live_again), owned)
    assert ("ttl" in summary(table), shown(table)) == (False, 1)


@pytest.mark.parametrize("is_claimed", [False, True])
def test_of_two_deletions_the_second_finds_it_done_unless_somebody_else_has_the_badge(
    table: Table, *, is_claimed: bool
) -> None:
    owned = claimed(table)
    raced = deleted_meanwhile(table, owned, is_claimed=is_claimed)
    if is_claimed:
        with pytest.raises(WrongSecretError, match="octocat has another owner now"):
            delete(raced, owned)
    else:
        delete(raced, owned)
    assert shown(table) == 3 * is_claimed
    assert bool(owner(table)) == is_claimed


@pytest.mark.parametrize("step", ["before_write", "before_read"])
def test_a_badge_that_is_renamed_while_it_is_deleted_is_deleted_by_every_name(
    table: Table, step: str
) -> None:
    """The new name would lead nowhere, and could never be claimed."""
    owned = claimed(table)
    delete(renamed_meanwhile(table, owned, step), owned)
    assert owner(table) == {}
    assert "ttl" in summary(table)
    assert "ttl" in summary(table, "mona")
    claimed(table, "mona")


def test_tombstones_that_another_deletion_left_unended_are_ended_by_every_name(
    table: Table,
) -> None:
    owned = rename(table, claimed(table), "mona")

    def dies() -> None:
        with pytest.raises(UnavailableError):
            delete(FaultyTable(table, after_write=raising(LOST)), owned)

    delete(FaultyTable(table, before_write=once(dies)), owned)
    assert "ttl" in summary(table)
    assert "ttl" in summary(table, "mona")


def test_a_concurrent_claim_of_a_name_does_not_keep_the_other_tombstones(table: Table) -> None:
    owned = rename(table, claimed(table), "mona")
    delete(FaultyTable(table, after_write=once(lambda: claim(table))), owned)
    assert "ttl" not in summary(table)
    assert "ttl" in summary(table, "mona")


# ---- lost answers


def fill(table: Table, owned: OwnedBadge) -> None:
    """Give a badge a count, a finished day, a live view and another name."""
    rename(table, owned, "lisa")
    put_views(table, AT_NOON - DAY * 1000, AT_NOON)
    put_summary(
        table, base=2, count=3, today={"day": "2026-03-13", "h12": 3}, watermark=1, version=9
    )
    put_day(table, "2026-03-12", views=3)


def do(table: Table, secret: str, wanted: dict[str, Any] | None) -> None:
    """Do a change by a secret, or without one the deletion."""
    owned = finding.authenticate(table, BADGE, secret)
    if wanted is None:
        delete(table, owned)
    else:
        change(table, owned, **wanted)


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
    failures: list[Exception | None] = [None] * place + [LOST]
    try:
        do(FaultyTable(table, after_write=raising(*failures)), secret, wanted)
    except UnavailableError:
        do(table, secret, wanted)
    do(twin, secret, wanted)
    names = (BADGE, "lisa", "mona")
    assert [shown(table, name) for name in names] == [shown(twin, name) for name in names]
    # A reset that is asked again sets its times again.
    assert state(table, *names, without=[*TIMES]) == state(twin, *names, without=[*TIMES])
