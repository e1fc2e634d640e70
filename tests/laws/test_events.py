"""The laws of events over generated histories.

An accepted event is delivered or ends in ERROR. No event is delivered before its time, after its
success or its cancellation, or by two workers concurrently. Its record has its attempts in their
order. The sweep finds an event without a message within minutes. Once there are no faults, no event
is late, whatever the clocks did.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from chalicelib.events.event import Claims, DeliveryResult, Leases
from simulation.aws_table import moto_table
from simulation.events_world import GONE, OK, REFUSED, EventsWorld
from simulation.faults import Fault
from simulation.storage import sqlite_table
from tests.profile import SHARE_OF_LAWS, cases
from vumi.workers.events import ProcessClaims

FAULTS = [fault for fault in Fault if fault is not Fault.MEANWHILE]
faults: st.SearchStrategy[list[Fault]] = st.one_of(
    st.just([]),
    st.integers(0, 4).flatmap(
        lambda calls: st.sampled_from(FAULTS).map(lambda one: [Fault.NONE] * calls + [one])
    ),
    st.lists(st.sampled_from([*FAULTS, Fault.MEANWHILE]), max_size=8),
)
CLOCK_ERRORS = [0, 61_000, 120_000, 300_000, 3_600_000, -61_000, -3_600_000]
MOMENTS = [0, 1_000, 350_000, 500_000]


def at_place(place: int | None) -> list[Fault]:
    """Return faults that let others act before this storage call, or none for None."""
    return [] if place is None else [Fault.NONE] * place + [Fault.MEANWHILE]


class HistoryOver(RuleBasedStateMachine):
    """Any history over a table of an engine, in a world that judges it at its end."""

    engine: ClassVar[Any] = staticmethod(sqlite_table)
    world: Any

    def __init__(self) -> None:
        super().__init__()
        self.cleanup = ExitStack()
        self.table = self.cleanup.enter_context(self.engine())

    def teardown(self) -> None:
        try:
            self.world.end()
        finally:
            self.cleanup.close()

    @classmethod
    def to_test(cls, number: int, steps: int, **other: object) -> Any:
        """Return the test with so many histories, perhaps over another `engine`."""
        history: Any = type(cls.__name__, (cls,), {**other})
        case = history.TestCase
        case.settings = settings(max_examples=number, stateful_step_count=steps)
        return case


class AnyHistory(HistoryOver):
    """Requests, sweeps, messages and crashes in any order; processes share only the table."""

    world: EventsWorld
    claims: ClassVar[type[Claims]] = Leases
    delivering: ClassVar[set[int | None]] = {None, 2}
    sweeps_ahead: ClassVar = [0, 100_000, -100_000]

    def __init__(self) -> None:
        super().__init__()
        self.world = EventsWorld(self.table, self.claims())
        self.asked: list[int] = []

    def others(self, does: str) -> None:
        """Do something between two storage calls, or during a delivery."""
        world = self.world
        match does:
            case "deliver":
                world.deliver_all()
            case "cancel":
                for name in sorted(world.accepted):
                    world.cancel(name)
            case "deliver and fail":
                world.answers, answers = [REFUSED] * 9, world.answers
                world.deliver_all()
                world.answers = answers
            case "late":
                world.pass_time(45_000)
            case "too late":
                world.pass_time(61_000)
                world.deliver_all()

    @rule(ahead=st.sampled_from(MOMENTS), faults=faults)
    def accept(self, ahead: int, faults: list[Fault]) -> None:
        """Accept a new event that is due this far ahead of now."""
        self.world.accept(f"e{len(self.asked)}", self.world.now + ahead, faults)
        self.asked.append(self.world.now + ahead)

    @rule(which=st.integers(0, 99), faults=faults)
    def accept_again(self, which: int, faults: list[Fault]) -> None:
        """Repeat a request, whatever became of the first one."""
        if self.asked:
            place = which % len(self.asked)
            self.world.accept(f"e{place}", self.asked[place], faults)

    @rule(which=st.integers(0, 99), faults=faults)
    def cancel(self, which: int, faults: list[Fault]) -> None:
        if self.asked:
            self.world.cancel(f"e{which % len(self.asked)}", faults)

    @rule(which=st.integers(0, 2), faults=faults)
    def sweep(self, which: int, faults: list[Fault]) -> None:
        self.world.sweep(faults, self.sweeps_ahead[which % len(self.sweeps_ahead)])

    @rule(faults=faults)
    def distribute(self, faults: list[Fault]) -> None:
        self.world.distribute(faults)

    @rule(
        which=st.integers(0, 20),
        answer=st.sampled_from([OK, REFUSED, GONE]),
        does=st.sampled_from(["deliver", "deliver and fail", "cancel", "late", "too late"]),
        place=st.none() | st.integers(0, 2),
    )
    def deliver(self, which: int, answer: DeliveryResult, does: str, place: int | None) -> None:
        """Handle a message while others act before a storage call or during the delivery.

        Where a claim ends with its lease, no delivery takes longer than it may.
        """
        if does in {"late", "too late"} and place in self.delivering:
            does = "deliver"
        self._deliver(which, answer, lambda: self.others(does), at_place(place))

    @rule(which=st.integers(0, 20), answer=st.sampled_from([OK, REFUSED, GONE]), faults=faults)
    def deliver_with_faults(self, which: int, answer: DeliveryResult, faults: list[Fault]) -> None:
        self._deliver(which, answer, lambda: None, faults)

    def _deliver(
        self, which: int, answer: DeliveryResult, others: Callable[[], None], plan: list[Fault]
    ) -> None:
        world, times = self.world, count()

        def once() -> None:
            if next(times) == 0:
                others()

        world.faults.meanwhile = once
        world.meanwhile = lambda: None if plan else once()
        world.answers = [answer]
        world.deliver(which, plan)
        world.answers = []
        world.faults.meanwhile = world.meanwhile = lambda: None

    @rule(milliseconds=st.sampled_from([1, 1_000, 5_000, 61_000, 300_000, 600_000]))
    def pass_time(self, milliseconds: int) -> None:
        self.world.pass_time(milliseconds)

    @rule()
    def redrive(self) -> None:
        self.world.redrive()

    @invariant()
    def success_is_final(self) -> None:
        self.world.note_success()


class AnyHistoryOnOneMachine(AnyHistory):
    """The same histories in one process that knows its deliveries and whose clock jumps."""

    claims: ClassVar[type[Claims]] = ProcessClaims
    delivering: ClassVar[set[int | None]] = set()
    sweeps_ahead: ClassVar = [0]

    @rule(error=st.sampled_from(CLOCK_ERRORS))
    def set_clock(self, error: int) -> None:
        self.world.set_clock(error)

    @rule(
        which=st.integers(0, 20),
        answer=st.sampled_from([OK, REFUSED, GONE]),
        error=st.sampled_from(CLOCK_ERRORS),
        does=st.sampled_from(["deliver", "deliver and fail", "cancel"]),
        place=st.none() | st.integers(0, 3),
    )
    def fire_while_the_clock_jumps(
        self, which: int, answer: DeliveryResult, error: int, does: str, place: int | None
    ) -> None:
        """Let the clock jump, then others act, before a storage call of a delivery or during it."""

        def others() -> None:
            self.world.set_clock(error)
            self.others(does)

        self._deliver(which, answer, others, at_place(place))

    @rule(error=st.sampled_from(CLOCK_ERRORS), place=st.integers(0, 30))
    def sweep_while_the_clock_jumps(self, error: int, place: int) -> None:
        """Let the clock jump during a sweep, which continues with the time of its start."""
        self.world.faults.meanwhile = lambda: self.world.set_clock(error)
        self.world.sweep(at_place(place))
        self.world.faults.meanwhile = lambda: None


TestEvents = AnyHistory.to_test(cases(60, SHARE_OF_LAWS), 60)
TestEventsOnOneMachine = AnyHistoryOnOneMachine.to_test(cases(60, SHARE_OF_LAWS), 60)
# The first case is the simplest, which only repeats a rule, so the quick profile runs two.
TestEventsOnDynamoDB = AnyHistory.to_test(cases(8), 20, engine=staticmethod(moto_table))
