"""The laws of events over random histories.

An accepted event is delivered or ends in ERROR; none is delivered before its time, after its
success or its cancellation, or by two workers at once; the order of its attempts is in its record.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from moto import mock_aws

from chalicelib.dynamodb import DynamoTable
from chalicelib.ports import Table
from chalicelib.resources import aws_client
from tests.aws import create_table
from tests.laws.faults import Fault
from tests.laws.timers_world import GONE, OK, REFUSED, TimersWorld
from tests.unit.fakes import sqlite_table

NAMES = ["a", "b", "c"]
names = st.sampled_from(NAMES)
FAULTS = [Fault.NONE, Fault.THROTTLED, Fault.ANSWER_LOST, Fault.CRASH_BEFORE, Fault.CRASH_AFTER]
faults: st.SearchStrategy[list[Fault]] = st.one_of(
    st.just([]),
    st.integers(0, 4).flatmap(
        lambda calls: st.sampled_from(FAULTS).map(lambda one: [Fault.NONE] * calls + [one])
    ),
    st.lists(st.sampled_from([*FAULTS, Fault.MEANWHILE]), max_size=8),
)
MOMENTS = [
    -1_000,
    0,
    1,
    999,
    1_000,
    59_999,
    299_000,
    300_000,
    419_999,
    420_001,
    500_000,
    90_000_000,
]


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
        self.world.faults.meanwhile = self.others
        self.does = "nothing"

    def others(self) -> None:
        """What happens between any two storage calls, and while a delivery is under way."""
        world = self.world
        world.faults.meanwhile = lambda: None
        if self.does == "fire":
            world.fire_all()
        if self.does == "cancel":
            for name in NAMES:
                world.cancel(name)
        if self.does == "late":
            world.pass_time(45_000)
        world.faults.meanwhile = self.others

    @rule(name=names, ahead=st.sampled_from(MOMENTS), faults=faults)
    def accept(self, name: str, ahead: int, faults: list[Fault]) -> None:
        self.world.accept(name, ahead, faults)

    @rule(name=names, faults=faults)
    def cancel(self, name: str, faults: list[Fault]) -> None:
        self.world.cancel(name, faults)

    @rule(faults=faults)
    def sweep(self, faults: list[Fault]) -> None:
        self.world.sweep(faults)

    @rule(faults=faults)
    def distribute(self, faults: list[Fault]) -> None:
        self.world.distribute(faults)

    @rule(
        which=st.integers(0, 20),
        faults=faults,
        answers=st.lists(st.sampled_from([OK, REFUSED, GONE]), max_size=2),
    )
    def fire(self, which: int, faults: list[Fault], answers: list[object]) -> None:
        self.world.answers = list(answers)  # type: ignore[arg-type]
        self.world.fire(which, faults)
        self.world.answers = []

    @rule(does=st.sampled_from(["nothing", "fire", "cancel", "late"]))
    def meanwhile(self, does: str) -> None:
        self.does = does
        self.world.meanwhile = self.others if does in {"fire", "cancel"} else lambda: None

    @rule(milliseconds=st.sampled_from([1, 1_000, 5_000, 61_000, 300_000, 3_600_000]))
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
