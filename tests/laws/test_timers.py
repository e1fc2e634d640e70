"""The laws of events over random histories.

An accepted event is delivered or ends in ERROR; none is delivered before its time, after its
success or its cancellation, or by two workers at once; the order of its attempts is in its record.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from moto import mock_aws

from chalicelib.dynamodb import DynamoTable
from chalicelib.ports import Table
from chalicelib.resources import aws_client
from chalicelib.timers.firing import Delivery
from tests.aws import create_table
from tests.laws.faults import Fault
from tests.laws.timers_world import GONE, OK, REFUSED, TimersWorld
from tests.unit.fakes import sqlite_table

FAULTS = [Fault.NONE, Fault.THROTTLED, Fault.ANSWER_LOST, Fault.CRASH_BEFORE, Fault.CRASH_AFTER]
faults: st.SearchStrategy[list[Fault]] = st.one_of(
    st.just([]),
    st.integers(0, 4).flatmap(
        lambda calls: st.sampled_from(FAULTS).map(lambda one: [Fault.NONE] * calls + [one])
    ),
    st.lists(st.sampled_from([*FAULTS, Fault.MEANWHILE]), max_size=8),
)
MOMENTS = [0, 1_000, 350_000, 500_000]


@contextmanager
def on_sqlite() -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder, sqlite_table(Path(folder)) as table:
        yield table


@contextmanager
def on_dynamodb() -> Iterator[Table]:
    with mock_aws():
        client = aws_client("dynamodb")
        create_table(client, "timers")
        yield DynamoTable(client, "timers")
        client.close()


class AnyHistory(RuleBasedStateMachine):
    """Requests, sweeps, messages and deaths in any order."""

    engine: ClassVar = staticmethod(on_sqlite)

    def __init__(self) -> None:
        super().__init__()
        self.cleanup = ExitStack()
        self.world = TimersWorld(self.cleanup.enter_context(self.engine()))
        self.asked: list[int] = []

    def others(self, does: str) -> None:
        """What happens between two storage calls, or while a delivery is under way."""
        world = self.world
        match does:
            case "fire":
                world.fire_all()
            case "cancel":
                for name in sorted(world.accepted):
                    world.cancel(name)
            case "fire and fail":
                world.answers, answers = [REFUSED] * 9, world.answers
                world.fire_all()
                world.answers = answers
            case "late":
                world.pass_time(45_000)
            case "too late":
                world.pass_time(61_000)
                world.fire_all()

    @rule(ahead=st.sampled_from(MOMENTS), faults=faults)
    def accept(self, ahead: int, faults: list[Fault]) -> None:
        """A new event, so far ahead of now."""
        self.world.accept(f"e{len(self.asked)}", self.world.now + ahead, faults)
        self.asked.append(self.world.now + ahead)

    @rule(which=st.integers(0, 99), faults=faults)
    def accept_again(self, which: int, faults: list[Fault]) -> None:
        """The same request once more, whatever became of the first."""
        if self.asked:
            place = which % len(self.asked)
            self.world.accept(f"e{place}", self.asked[place], faults)

    @rule(which=st.integers(0, 99), faults=faults)
    def cancel(self, which: int, faults: list[Fault]) -> None:
        if self.asked:
            self.world.cancel(f"e{which % len(self.asked)}", faults)

    @rule(faults=faults)
    def sweep(self, faults: list[Fault]) -> None:
        self.world.sweep(faults)

    @rule(faults=faults)
    def distribute(self, faults: list[Fault]) -> None:
        self.world.distribute(faults)

    @rule(
        which=st.integers(0, 20),
        answer=st.sampled_from([OK, REFUSED, GONE]),
        does=st.sampled_from(["fire", "fire and fail", "cancel", "late", "too late"]),
        place=st.none() | st.integers(0, 2),
    )
    def fire(self, which: int, answer: Delivery, does: str, place: int | None) -> None:
        """A message comes; others come before one of the storage calls, or during the delivery.

        But no delivery takes longer than it may.
        """
        if does in {"late", "too late"} and place in {None, 2}:
            does = "fire"
        plan = [] if place is None else [Fault.NONE] * place + [Fault.MEANWHILE]
        self._fire(which, answer, does, plan)

    @rule(which=st.integers(0, 20), answer=st.sampled_from([OK, REFUSED, GONE]), faults=faults)
    def fire_with_faults(self, which: int, answer: Delivery, faults: list[Fault]) -> None:
        self._fire(which, answer, "nothing", faults)

    def _fire(self, which: int, answer: Delivery, does: str, plan: list[Fault]) -> None:
        world, times = self.world, count()

        def others() -> None:
            if next(times) == 0:
                self.others(does)

        world.faults.meanwhile = others
        world.meanwhile = lambda: None if plan else others()
        world.answers = [answer]
        world.fire(which, plan)
        world.answers = []
        world.faults.meanwhile = world.meanwhile = lambda: None

    @rule(milliseconds=st.sampled_from([1, 1_000, 5_000, 61_000, 300_000, 600_000]))
    def pass_time(self, milliseconds: int) -> None:
        self.world.pass_time(milliseconds)

    @rule()
    def redrive(self) -> None:
        self.world.redrive()

    @invariant()
    def success_is_for_good(self) -> None:
        self.world.note_success()

    def teardown(self) -> None:
        try:
            self.world.pass_time(max(MOMENTS))
            self.world.end()
        finally:
            self.cleanup.close()


class AnyHistoryOnDynamoDB(AnyHistory):
    """The same over DynamoDB, where it runs on moto."""

    engine: ClassVar = staticmethod(on_dynamodb)


TestEvents = AnyHistory.TestCase
TestEvents.settings = settings(max_examples=60, stateful_step_count=60)
TestEventsOnDynamoDB = AnyHistoryOnDynamoDB.TestCase
TestEventsOnDynamoDB.settings = settings(max_examples=4, stateful_step_count=40)
