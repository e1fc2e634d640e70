"""The five laws over random histories on AWS, on each engine of the table."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, closing
from itertools import product
from pathlib import Path
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from moto import mock_aws

from chalicelib import resources
from chalicelib.dynamodb import DynamoTable
from chalicelib.ports import Table
from chalicelib.resources import aws_client
from chalicelib.views import counting
from chalicelib.views.owner import Change
from local.database import Database
from local.table import SqliteTable
from tests.aws import create_table
from tests.laws.aws_world import (
    BADGES,
    MALFORMED_BODIES,
    MALFORMED_RECORDS,
    REDELIVERY,
    AwsWorld,
)
from tests.laws.faults import Fault
from tests.laws.owning import CHANGES, OTHER_NAME, OWNED

ALL = [*BADGES, OWNED, OTHER_NAME]
HOT = 4
"""Live views from which a badge is hot here: some are and some are not."""
badges = st.sampled_from(ALL)
changes = st.sampled_from(CHANGES)
plans = st.lists(st.sampled_from([Fault.NONE, *Fault]), max_size=8)
throttles = st.integers(0, 5).map(lambda calls: [Fault.NONE] * calls + [Fault.THROTTLED] * 20)
holes = st.lists(st.sampled_from([Fault.NONE, Fault.THROTTLED]), max_size=8)
first = st.sampled_from(Fault).map(lambda fault: [fault])
faults = st.one_of(st.just([]), first, plans, holes, throttles)


class AnyHistory(RuleBasedStateMachine):
    """Visits, deliveries, removals and folds in any order, with any faults."""

    def __init__(self) -> None:
        super().__init__()
        self.cleanup = ExitStack()
        self.cleanup.callback(resources.use, None)
        self.cleanup.enter_context(patch.object(counting, "HOT", HOT))
        self.world = AwsWorld(self.make_table())
        self.world.faults.meanwhile = self.everything_else
        self.owner_does: list[Change] = []

    def make_table(self) -> Table:
        folder = self.cleanup.enter_context(tempfile.TemporaryDirectory())
        database = Database(Path(folder) / "file")
        self.cleanup.callback(database.close)
        return SqliteTable(database)

    def everything_else(self) -> None:
        """What can come between any two storage calls of a request or a batch."""
        self.world.note_change()
        for badge_id in ALL:
            self.world.get(badge_id, peek=True)
        for change in self.owner_does:
            self.world.change(change)
        self.world.deliver(self.world.may_come()[:3], [], [])
        self.world.expire(self.world.expired()[:3])
        self.world.fold(0, self.world.delivered + 4)

    @rule(badge_id=badges, faults=faults)
    def view(self, badge_id: str, faults: list[Fault]) -> None:
        self.world.get(badge_id, peek=False, faults=faults)

    @rule(badge_id=badges, visitors=st.integers(2, 30))
    def views_at_once(self, badge_id: str, visitors: int) -> None:
        for _ in range(visitors):
            self.world.get(badge_id, peek=False)

    @rule(badge_id=badges)
    def peek(self, badge_id: str) -> None:
        self.world.get(badge_id, peek=True)

    @precondition(lambda self: self.world.may_come())
    @rule(
        data=st.data(),
        malformed=st.lists(st.sampled_from(MALFORMED_BODIES), max_size=2),
        faults=faults,
    )
    def deliver(self, data: st.DataObject, malformed: list[str], faults: list[Fault]) -> None:
        batch = st.lists(st.sampled_from(self.world.may_come()), max_size=10, unique=True)
        self.world.deliver(data.draw(batch), malformed, faults)

    @precondition(lambda self: self.world.expired())
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        some = st.lists(st.sampled_from(self.world.expired()), min_size=1, unique=True)
        self.world.expire(data.draw(some))

    @precondition(lambda self: self.world.expired())
    @rule()
    def expire_all(self) -> None:
        self.world.expire(self.world.expired())

    @rule(record=st.sampled_from([None, *MALFORMED_RECORDS]), badge_id=badges)
    def disturb(self, record: dict[str, object] | None, badge_id: str) -> None:
        self.world.disturb(record, badge_id)

    @precondition(lambda self: self.world.stream)
    @rule(again=st.integers(0, 20), records=st.integers(1, 30), faults=faults)
    def fold(self, again: int, records: int, faults: list[Fault]) -> None:
        start = max(0, self.world.delivered - again)
        self.world.fold(start, start + records, faults)

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
        """From now on the owner does this whenever everything else happens."""
        self.owner_does = wanted

    @rule(faults=faults)
    def delete(self, faults: list[Fault]) -> None:
        self.world.delete(faults)

    @rule(seconds=st.sampled_from([1, 60, 299, 301, 600, 3_600, 86_400, 172_800]))
    def pass_time(self, seconds: int) -> None:
        self.world.pass_time(seconds)

    @invariant()
    def every_badge_is_right(self) -> None:
        for badge_id in ALL:
            self.world.get(badge_id, peek=True)

    def teardown(self) -> None:
        try:
            self.world.end()
        finally:
            self.cleanup.close()


class AnyHistoryOnMoto(AnyHistory):
    """The same over DynamoDB's own expressions."""

    def make_table(self) -> Table:
        self.cleanup.enter_context(mock_aws())
        client = aws_client("dynamodb")
        self.cleanup.callback(client.close)
        create_table(client, "laws")
        return DynamoTable(client, "laws")


TestOnSqlite = AnyHistory.TestCase
TestOnSqlite.settings = settings(max_examples=60, stateful_step_count=200)
TestOnMoto = AnyHistoryOnMoto.TestCase
TestOnMoto.settings = settings(max_examples=4, stateful_step_count=100)


OUTCOMES = [fault for fault in Fault if fault not in (Fault.MEANWHILE, Fault.PARTLY)]


def test_a_view_may_meet_any_fault_at_any_call_of_its_get(tmp_path: Path) -> None:
    """The four calls: read, enqueue, and where that fails put and raise the floor. 5 ** 4 plans.

    Every badge has one view that was stored directly before, so that there is a count to go down.
    """
    with closing(Database(tmp_path / "file")) as database, ExitStack() as cleanup:
        cleanup.callback(resources.use, None)
        world = AwsWorld(SqliteTable(database))
        badge_ids = []
        for place, plan in enumerate(product(OUTCOMES, repeat=4)):
            badge_ids.append(f"badge-{place}")
            world.get(badge_ids[-1], peek=False, faults=[Fault.NONE, Fault.THROTTLED])
            world.get(badge_ids[-1], peek=False, faults=plan)
            world.get(badge_ids[-1], peek=True)
        world.pass_time(REDELIVERY * 2)
        world.expire(world.expired())
        for badge_id in badge_ids:
            world.get(badge_id, peek=True)
        world.end()
