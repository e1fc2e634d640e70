"""The five laws over random histories on one machine."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from chalicelib import resources
from chalicelib.views import counting
from chalicelib.views.owner import Change
from tests.laws.faults import Fault
from tests.laws.machine_world import BADGES, MachineWorld
from tests.laws.owning import CHANGES, OTHER_NAME, OWNED

ALL = [*BADGES, OWNED, OTHER_NAME]
HOT = 4
"""Live views from which a badge is hot here: some are and some are not."""
badges = st.sampled_from(ALL)
changes = st.sampled_from(CHANGES)
faults: st.SearchStrategy[list[Fault]] = st.one_of(
    st.just([]),
    st.sampled_from([[fault] for fault in Fault if fault is not Fault.PARTLY]),
    st.lists(st.sampled_from([fault for fault in Fault if fault is not Fault.PARTLY]), max_size=8),
    st.integers(0, 6).map(lambda calls: [Fault.NONE] * calls + [Fault.THROTTLED] * 20),
)


class AnyHistory(RuleBasedStateMachine):
    """Visits and steps of the loops in any order, with any faults and any clock."""

    def __init__(self) -> None:
        super().__init__()
        self.cleanup = ExitStack()
        self.cleanup.callback(resources.use, None)
        self.cleanup.enter_context(patch.object(counting, "HOT", HOT))
        folder = self.cleanup.enter_context(tempfile.TemporaryDirectory())
        self.world = MachineWorld(Path(folder))
        self.cleanup.callback(self.world.close)
        self.world.faults.meanwhile = self.everybody_else
        self.owner_does: list[Change] = []

    def everybody_else(self) -> None:
        """Who can come between any two writes; nobody sees what is not committed, or writes."""
        if self.world.database.in_commit:
            return
        self.world.note_change()
        self.visitors()
        for change in self.owner_does:
            self.world.change(change)

    def visitors(self) -> None:
        for badge_id in ALL:
            self.world.get(badge_id, peek=True)

    @rule(badge_id=badges, faults=faults)
    def view(self, badge_id: str, faults: list[Fault]) -> None:
        self.world.get(badge_id, peek=False, faults=faults)

    @rule(badge_id=badges, visitors=st.integers(2, 12))
    def views_at_once(self, badge_id: str, visitors: int) -> None:
        for _ in range(visitors):
            self.world.get(badge_id, peek=False)

    @rule(names=st.lists(badges, min_size=1, max_size=8), faults=faults)
    def views_in_one_commit(self, names: list[str], faults: list[Fault]) -> None:
        self.world.get_together(names, faults)

    @rule(body=st.sampled_from(["", "{", '{"id": 1}']))
    def malformed(self, body: str) -> None:
        self.world.malformed(body)

    @rule(faults=faults)
    def put(self, faults: list[Fault]) -> None:
        self.world.step(faults, self.world.put.step)

    @rule(faults=faults)
    def expire(self, faults: list[Fault]) -> None:
        self.world.step(faults, self.world.removals.step)

    @rule(faults=faults)
    def fold(self, faults: list[Fault]) -> None:
        self.world.step(faults, self.world.fold.step)

    @rule(faults=faults)
    def all_loops(self, faults: list[Fault]) -> None:
        world = self.world
        world.step(faults, world.put.step, world.removals.step, world.fold.step)

    @rule(badge_id=badges, faulty=st.integers(0, 2), faults=faults)
    def the_whole_way(self, badge_id: str, faulty: int, faults: list[Fault]) -> None:
        """Views that get as far as the fold, with faults on one of its stages."""
        world = self.world
        world.get(badge_id, peek=False)
        for stage in range(3):
            loop = (world.put.step, world.removals.step, world.fold.step)[stage]
            world.step(faults if stage == faulty else [], loop)
            world.set_clock(3)

    @rule()
    def claim(self) -> None:
        self.world.claim()

    @rule(wanted=changes, faults=faults)
    def change(self, wanted: Change, faults: list[Fault]) -> None:
        self.world.change(wanted, faults)

    @rule(thawed=st.booleans(), faults=faults)
    def view_while_frozen(self, faults: list[Fault], *, thawed: bool) -> None:
        """A visitor comes between the freezing and, maybe, the thawing."""
        self.world.claim()
        self.world.change(Change(frozen=True))
        self.world.get(OWNED, peek=False, faults=faults)
        if thawed:
            self.world.change(Change(frozen=False))

    @rule(wanted=st.lists(changes, max_size=1))
    def change_meanwhile(self, wanted: list[Change]) -> None:
        """From now on the owner does this whenever somebody comes in between."""
        self.owner_does = wanted

    @rule(faults=faults)
    def delete(self, faults: list[Fault]) -> None:
        self.world.delete(faults)

    @rule()
    def kill(self) -> None:
        self.world.restart()

    @rule(seconds=st.sampled_from([0.5, 3, 31, 86_400, -0.5, -40, -86_400]))
    def set_clock(self, seconds: float) -> None:
        self.world.set_clock(seconds)

    @invariant()
    def every_badge_is_right(self) -> None:
        self.visitors()

    def teardown(self) -> None:
        try:
            self.world.end()
        finally:
            self.cleanup.close()


TestOnOneMachine = AnyHistory.TestCase
TestOnOneMachine.settings = settings(max_examples=50, stateful_step_count=200)


def test_a_view_stored_directly_counts_once_though_the_queue_had_taken_it(tmp_path: Path) -> None:
    """The queue's answer is lost, and its message comes only after the view has expired."""
    world = MachineWorld(tmp_path)
    try:
        world.get("a", peek=False, faults=[Fault.ANSWER_LOST])
        for _ in range(3):
            world.set_clock(10)
            world.step([], world.removals.step, world.fold.step)
        world.step([], world.put.step)
        world.end()
        assert len(world.ledger.taken["a"]) == 1
    finally:
        world.close()
        resources.use(None)


def test_a_view_of_a_name_that_leads_elsewhere_now_counts_once_however_late_it_comes_again(
    tmp_path: Path,
) -> None:
    """Stored under the badge, its message not deleted; the view expires before that comes again."""
    world = MachineWorld(tmp_path)
    try:
        world.claim()
        world.get(OTHER_NAME, peek=False)
        world.change(Change(name=OTHER_NAME))
        world.step([Fault.NONE] * 5 + [Fault.THROTTLED], world.put.step)
        for _ in range(3):
            world.set_clock(10)
            world.step([], world.removals.step, world.fold.step)
        world.set_clock(31)
        world.step([], world.put.step)
        world.end()
        assert len(world.ledger.taken[OWNED]) == 1
    finally:
        world.close()
        resources.use(None)
