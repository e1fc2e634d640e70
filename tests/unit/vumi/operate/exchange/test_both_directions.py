"""An export and its import into another engine: both give the same answer to every request."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from operator import methodcaller
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.clocks import NOON, Clock
from simulation.exchange_world import (
    ENGINES,
    EVENTS,
    IDS,
    NEW_NAMES,
    QUEUE,
    SETTINGS,
    USERS,
    ExchangeWorld,
    Surroundings,
    export,
    outcomes,
    restore,
)
from simulation.installation import MemoryInstallation
from tests.profile import cases
from vumi.operate.exchange.restoring import RestoreOutcome

Act = Callable[[ExchangeWorld], object]
PAIRS = [("file", "memory"), ("memory", "file")]
DAY = 86_400
TARGETS = ["log", QUEUE, "log", "log"]


def live(world: ExchangeWorld) -> None:
    """Make a rich world: badges of all kinds, events of all statuses, wallets."""
    for badge_id in IDS:
        world.claim(badge_id)
        for _ in range(3):
            world.visit(badge_id)
    world.wait(DAY)
    world.fold()
    for badge_id in IDS:
        world.visit(badge_id)
    world.change("a", rename=NEW_NAMES[0])
    world.visit(NEW_NAMES[0])
    world.visit(NEW_NAMES[1])
    views = {"views": [{"timestamp": "2026-03-01T00:00:00Z", "count": 3, "uniques": 2}]}
    assert world.tell(IDS[1], views={"uniques": 2, **views}).status == 200
    world.change(IDS[1], frozen=True, base=1000)
    world.change(IDS[2], reset=True)
    world.delete("d")
    world.ask("PUT", "/api/v1/bans?pattern=spammer/*", {"reason": "spam"})
    world.ask("PUT", "/api/v1/bans?pattern=spam", {})
    for name, target, seconds in zip(EVENTS, TARGETS, [60, 5, 7, 9_000_000], strict=True):
        world.schedule(name, target, seconds)
    for user in USERS[:2]:
        world.open_wallet(user)
        world.deposit(user, 100, f"deposit-{user}")
    world.transfer(USERS[0], USERS[1], 30, "transfer-once")
    world.transfer(USERS[0], USERS[1], 1_000, "transfer-too-much")
    world.publish(USERS[0])
    world.wait(3_600)
    world.fold()
    world.cancel(EVENTS[2])
    world.deliver_event(EVENTS[1])
    world.visit(IDS[2])
    world.visit("a")


def check_rich(answers: dict[str, tuple[int, bytes]]) -> None:
    """Check that the world has what it was made for."""
    found = {target.partition(" ")[0]: body for target, (status, body) in answers.items()}
    shown = [json.loads(found[f"/api/v1/views?{urlencode({'id': one})}&peek=1"]) for one in IDS]
    assert [one["message"] for one in shown] == ["6", "1004", "1", "0"]
    for status, number in {"ACTIVE": 2, "SUCCESS": 1, "CANCELLED": 1}.items():
        assert len(json.loads(found[f"/api/v1/events?status={status}"])["events"]) == number
    balances = [json.loads(body) for one, body in found.items() if one.endswith("/balance")]
    assert [int(one["balance"]) for one in balances[:2]] == [70, 130]


def test_everything_moves_to_a_stack_and_back(tmp_path: Path) -> None:
    """Both give the same answer to every request, also after the same requests to both."""
    clock = Clock(NOON)
    with ExitStack() as stack:

        def make(engine: str, name: str, known: ExchangeWorld | None = None) -> ExchangeWorld:
            (tmp_path / name).mkdir()
            made = stack.enter_context(ENGINES[engine](clock, tmp_path / name))
            return ExchangeWorld(made, clock, known.known if known else Surroundings())

        one = make("file", "one")
        live(one)
        before = one.answers()
        check_rich(before)
        exported = export(one.installation)
        other = make("stack", "other", one)
        assert outcomes(restore(other.installation, exported)) == {RestoreOutcome.IMPORTED}
        assert other.answers() == before
        restore(other.installation, exported)
        for world in (one, other):
            assert world.transfer(USERS[0], USERS[1], 30, "transfer-once").status == 204
            assert world.transfer(USERS[0], USERS[1], 1_000, "transfer-too-much").status == 409
            assert world.transfer(USERS[0], USERS[1], 31, "transfer-once").status == 422
        assert other.answers() == before
        for world in (one, other):
            world.visit("a")
            world.visit("new")
            world.change(IDS[2], base=5)
        assert other.answers() == one.answers()
        clock.now += 2 * DAY
        for world in (one, other):
            world.fold()
            world.visit("a")
            world.fold()
        at_last = one.answers()
        assert other.answers() == at_last
        back = make("file", "back", one)
        moved_back = restore(back.installation, export(other.installation))
        assert outcomes(moved_back) == {RestoreOutcome.IMPORTED}
        assert back.answers() == at_last


def test_a_reset_after_a_move_ends_the_views_of_a_clock_that_was_ahead(tmp_path: Path) -> None:
    """The clock of the first machine was two hours ahead, and was corrected before the move."""
    clock = Clock(NOON + 7_200)
    one = ExchangeWorld(MemoryInstallation(settings=SETTINGS, clock=clock), clock)
    one.claim("a")
    for _ in range(5):
        one.visit("a")
    clock.now -= 7_200
    with ENGINES["file"](clock, tmp_path) as made:
        other = ExchangeWorld(made, clock, one.known)
        restore(made, export(one.installation))
        assert made.view_clock() > NOON + 7_200
        assert other.shown("a") == 5
        other.change("a", reset=True)
        assert other.shown("a") == 0


names = st.sampled_from([*IDS, *NEW_NAMES])
users = st.sampled_from(USERS)
nonces = st.sampled_from(["nonce-01", "nonce-02", "nonce-03"])


def act(method: str, *given: Any, **options: Any) -> st.SearchStrategy[Act]:
    """Return calls of a method of the world, with arguments of these strategies."""
    return st.builds(partial(methodcaller, method), *given, **options)


clones = st.builds(
    lambda day, number: {
        "uniques": 1,
        "clones": [{"timestamp": day, "count": number, "uniques": 1}],
    },
    st.sampled_from(["2026-02-28T00:00:00Z", "2026-03-14T00:00:00Z"]),
    st.integers(0, 3),
)
acts: st.SearchStrategy[Act] = st.one_of(
    act("visit", names),
    act("hold", names),
    act("claim", names),
    act("change", names, rename=names),
    act("change", names, reset=st.just(True)),  # noqa: FBT003  a strategy
    act("change", names, frozen=st.just(True)),  # noqa: FBT003  a strategy
    act("change", names, base=st.just(7)),
    act("delete", names),
    act("tell", names, clones=clones),
    act("fold"),
    act("wait", st.sampled_from([1, 299, 601, 4_000, 90_000])),
    act("open_wallet", users),
    act("deposit", users, st.just(9), nonces),
    act("transfer", users, users, st.integers(1, 12), nonces),
    act(
        "schedule",
        st.sampled_from(EVENTS),
        st.sampled_from(["log", QUEUE]),
        st.sampled_from([0, 300, 90_000]),
    ),
    act("cancel", st.sampled_from(EVENTS)),
    act("deliver_event", st.sampled_from(EVENTS)),
)


@pytest.mark.parametrize(("source", "target"), PAIRS)
@settings(max_examples=cases(20))
@given(history=st.lists(acts, max_size=40), seconds=st.sampled_from([0, 700, 100_000]))
def test_any_history_moves_to_the_other_engine(
    source: str, target: str, history: list[Act], seconds: int
) -> None:
    """Views that are held in a queue of a stack stay there, so only the file has them here."""
    clock = Clock(NOON)
    with TemporaryDirectory() as folder, ExitStack() as stack:
        one = ExchangeWorld(stack.enter_context(ENGINES[source](clock, Path(folder))), clock)
        for one_act in history:
            one_act(one)
        exported = export(one.installation)
        other = ExchangeWorld(
            stack.enter_context(ENGINES[target](clock, Path(folder))), clock, one.known
        )
        assert outcomes(restore(other.installation, exported)) <= {RestoreOutcome.IMPORTED}
        assert lines(export(other.installation)) == lines(exported)
        assert RestoreOutcome.KEPT not in outcomes(restore(other.installation, exported))
        clock.now += seconds
        other.fold()
        clock.now += 1_000  # a view that was held is old then
        one.deliver()
        one.fold()
        other.fold()
        assert without_history(other.answers()) == without_history(one.answers())
        if not one.has_held:
            assert other.answers() == one.answers()


def without_history(answers: dict[str, tuple[int, bytes]]) -> dict[str, tuple[int, bytes]]:
    """Return the answers without histories, as a late view belongs to the hour of its count."""
    return {target: answer for target, answer in answers.items() if "history" not in target}


def lines(exported: bytes) -> list[str]:
    """Return the lines of an export without the first and the last one, in one order."""
    found = map(json.loads, exported.splitlines()[1:-1])
    return sorted(json.dumps(line, sort_keys=True) for line in found)
