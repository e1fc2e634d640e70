"""AWS as bad as its documentation allows: every fault between the GET of a view and its count.

Visitors, deliveries, folds and owners' requests are operations that interleave at every storage
call. Each call may be throttled, lose its answer, or end the process. The processes' clocks differ.
SQS delivers a message once or several times, young, in between or old. TTL removes items in any
order, some of them days late. A removal is in the stream never, once or twice, in any order, in
batches of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, ClassVar, TypeVar

from chalicelib.aws import resources
from chalicelib.aws.consumers import fold_views, put_views
from chalicelib.counting import keys
from chalicelib.counting.bans import TimedBans
from chalicelib.counting.folding import BadgeFold
from chalicelib.counting.summary import read
from chalicelib.counting.view import Counting, View, ViewMessages
from chalicelib.events.webhook_schedule import EventSchedule
from chalicelib.settings import Settings
from chalicelib.storage import ports
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Item, Key, number, text
from chalicelib.storage.ports import NotStoredError, Table
from chalicelib.storage.writes import Delete, Put, Update, Write
from chalicelib.ulids import earliest, milliseconds
from chalicelib.units import Seconds, WholeSeconds
from simulation import aws_events as events
from simulation.faults import Crash
from simulation.milestones import before_writes
from simulation.operations import Operation
from simulation.resources import GivenResources
from simulation.storage import InterceptedTable
from simulation.world import GET_SECONDS, MIDNIGHT, World

Result = TypeVar("Result")

QUEUE_RETENTION_SECONDS = 14 * 86_400
LONG_ID = "\N{DUCK}" * 100
"""One read unit reads three views of this id, so its GETs often need a second query."""
LAST = keys.VIEW + "~"
PUT_SECONDS = 60.0
"""The timeout of `put_views` on Lambda."""
MALFORMED_BODIES = ["", "{", "[]", '{"id": "x"}', '{"id": "x", "view": "y", "first": 1}', "null"]
OTHER_RECORDS: list[dict[str, Any]] = [
    {},
    {"eventName": "REMOVE"},
    {"eventName": "REMOVE", "userIdentity": events.BY_TTL, "dynamodb": {"Keys": {"PK": {}}}},
    events.removal(1, "WINDOW#x#plain", "WINDOW"),
    events.removal(1, "WINDOW#1", "WINDOW"),
    events.removal(5, *keys.view("plain", "01ARZ3NDEKTSV4RRFFQ69G5FAV")),
    events.removal(5, *keys.summary("plain")),
]
"""Records that are no removals of a marker, so they must count nothing."""


@dataclass(frozen=True)
class AwsScenario:
    """The faults of a history.

    Two clocks differ by at most `skew`, and that of TTL is at most `early` ahead. `loss` is the
    share of removals without a stream record, `faults` the share of storage calls that fail. A
    badge with `hot` live views is hot. The history begins at `start`. Views are kept for
    `retention`. Owners change their badges if `owners` is true; the share `removals` of their
    requests removes hours. `jumps` are the times that may pass in one step, `delays` those before a
    message's first delivery.
    """

    ids: tuple[str, ...] = ("plain", LONG_ID)
    skew: Seconds = 100.0
    early: Seconds = 50.0
    loss: float = 0.3
    faults: float = 0.03
    hot: int = 1_000
    start: Seconds = MIDNIGHT - 1_500
    retention: WholeSeconds = 1_296_000
    owners: bool = False
    removals: float = 0.1
    jumps: tuple[Seconds, ...] = (0.1, 1, 5, 30, 60, 100, 300, 700, 3_600)
    delays: tuple[Seconds, ...] = (0, 1, 5, 30, 200, 290, 310, 600, 900, 2_000, 90_000, 300_000)


@dataclass
class Message:
    """A message of the views queue and the earliest time of its next delivery."""

    visible_at: Seconds
    body: str
    view: View | None


class Paused(InterceptedTable):
    """A `Table`; other operations run before each call, and the call may fail."""

    def __init__(self, world: AwsWorld) -> None:
        self._world = world

    @property
    def engine(self) -> Table:
        return self._world.engine

    def read(self, _: str, operation: Callable[[], Result]) -> Result:
        looking = self._world.looking()
        try:
            result = self._world.call(operation)
        except StorageError:
            if looking:
                looking.is_unread = True
            raise
        if looking:
            looking.last_read = self._world.moment
        return result

    def write(self, *writes: Write) -> None:
        self._world.call(partial(self._world.store, writes))

    def put_all(self, items: Sequence[Item]) -> None:
        """Put a batch of items, of which DynamoDB may leave some unprocessed."""
        left = []
        for item in items:
            try:
                self.write(Put(item))
            except StorageError:
                left.append(item)
        if left:
            raise NotStoredError(left, "unprocessed")


class PausedQueue:
    """A `Queue`; other operations run before each call, and the call may fail."""

    def __init__(self, world: AwsWorld, accept: Callable[[str], None]) -> None:
        self._world, self._accept = world, accept

    def send(self, body: str, *, delay: Seconds = 0.0) -> None:
        self.send_all([ports.Message(body, delay)])

    def send_all(self, messages: Sequence[ports.Message]) -> None:
        for message in messages:
            self._world.call(partial(self._accept, message.body))


class AwsWorld(World):
    """The state of AWS, and the steps that change it."""

    def __init__(self, seed: int, scenario: AwsScenario, engine: Table) -> None:
        super().__init__(
            seed, scenario.start, scenario.skew, scenario.ids, has_owners=scenario.owners
        )
        self.scenario, self.engine, self.faults = scenario, engine, scenario.faults
        self.settings = Settings(hot_views=scenario.hot, retention_seconds=scenario.retention)
        self.owners.removals = scenario.removals
        self.messages: list[Message] = []
        self.expiring: dict[Key, WholeSeconds] = {}
        self.stream: list[dict[str, Any]] = []
        self._sequence = 10**20
        self.table = Paused(self)
        self.resources = GivenResources(
            settings=self.settings,
            clock=self.clock,
            table=self.table,
            bans=TimedBans(lambda: self.table, self.clock),
            views_queue=ViewMessages(PausedQueue(self, self.accept)),
            # The deliveries of events are forgotten, because the sweep sends them again.
            webhooks=EventSchedule(lambda: PausedQueue(self, lambda _: None), self.clock),
        )
        resources.use(self.resources)

    def clock(self) -> Seconds:
        operation = self.scheduler.current
        return self.now + (operation.skew if operation else 0.0)

    def run(self, steps: int) -> None:
        try:
            super().run(steps)
        finally:
            resources.use(None)

    def call(self, operation: Callable[[], Result]) -> Result:
        """Run a storage call after other operations have gone on."""
        self.scheduler.pause()
        return super().call(operation)

    def accept(self, body: str) -> None:
        """Accept a message, and schedule one to three deliveries of it, soon or late."""
        view = View.from_message(body)
        looking = self.looking()
        assert looking
        self.take(looking, view.ulid, view.badge_id)
        chance = self.random
        late = (
            chance.choice(self.scenario.delays) if chance.random() < 0.4 else chance.uniform(0, 3)
        )
        for _ in range(chance.choice([1, 1, 2, 3])):
            self.deliver_at(self.now + late, body, view)
            late += chance.choice([0, 1, 100, 299, 600, 86_400, 5 * 86_400])

    def deliver_at(self, at: Seconds, body: str, view: View | None) -> None:
        """Schedule a delivery, unless the queue has forgotten the message by then."""
        if view is None or at < view.milliseconds / 1000 + QUEUE_RETENTION_SECONDS - 86_400:
            self.messages.append(Message(at, body, view))

    def store(self, writes: Sequence[Write]) -> None:
        before = before_writes(self.engine, writes)
        removal = self.find_removal(writes)
        self.engine.write(*writes)
        if removal:
            self.ledger.removals[removal[0]].append(removal[1])
        if before is not None:
            self.milestones.note(self.engine, before, writes)
        for write in writes:
            self._note(write)

    def _note(self, write: Write) -> None:
        """Record which items expire, which views are taken, and which lives have ended."""
        self.note_life(write)
        item = write.item if isinstance(write, Put) else {}
        if isinstance(write, Update):
            item = dict(write.values)
        if "ttl" in item:
            self.expiring[write.key] = number(item, "ttl")
        else:
            self.expiring.pop(write.key, None)
        if write.key.sk.startswith(keys.VIEW):
            self.ledger.stored.add(write.key.sk.removeprefix(keys.VIEW))
        if looking := self.looking():
            if write.key.sk.startswith(keys.VIEW):
                under = write.key.pk.removeprefix(keys.PARTITION)
                self.take(looking, write.key.sk.removeprefix(keys.VIEW), under)
            if write.key.sk == keys.SEEN:
                self.take(looking, write.key.pk.removeprefix(keys.SEEN + "#"), text(item, "badge"))

    # operations

    def _look(self, asked: Sequence[str], operation: Operation) -> None:
        looking = operation.state = self.look(asked)
        try:
            answers = self.any_request(asked)()
        finally:
            looking.span.ended = self.moment
        self.check_answers(looking, answers)

    def deliver(self, batch: Sequence[Message]) -> None:
        """Deliver a batch of SQS to `put_views`, sometimes with a malformed message."""
        self.messages = [one for one in self.messages if one not in batch]
        bodies: dict[str, Message] = {f"m-{place}": one for place, one in enumerate(batch)}
        if self.random.random() < 0.05:
            malformed = self.random.choice(MALFORMED_BODIES)
            bodies["malformed"] = Message(0, malformed, None)
        self.start(partial(self._put, bodies), PUT_SECONDS)

    def _put(self, bodies: Mapping[str, Message], _: Operation) -> None:
        failed = set(bodies)
        again = 30.0
        try:
            event = events.sqs_event({name: one.body for name, one in bodies.items()})
            answer = put_views(event, None)
            failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
            assert failed <= set(bodies)
            assert "malformed" not in bodies or "malformed" in failed
            again = 120.0
        finally:
            for name in sorted(failed):
                if bodies[name].view:
                    self.deliver_at(self.now + again, bodies[name].body, bodies[name].view)

    def _fold(self, records: Sequence[dict[str, Any]], _: Operation) -> None:
        """Deliver a batch of the stream to `fold_views`."""
        failed: set[str] = set()
        try:
            answer = fold_views(events.stream_event(records), None)
            failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        except Crash:
            self.stream += records
        if failed:
            numbers = [one.get("dynamodb", {}).get("SequenceNumber") for one in records]
            [lowest] = failed
            self.stream += records[numbers.index(lowest) :]

    # steps

    def expire(self) -> None:
        """Let TTL remove an expired item, if any; a marker's removal may be in the stream."""
        late = self.now + self.random.uniform(0, self.scenario.early)
        gone = [key for key, ttl in self.expiring.items() if ttl < late and self.may_go(key)]
        if not gone:
            return
        key = self.random.choice(gone)
        del self.expiring[key]
        record = self.remove(key)
        if key.sk == keys.WINDOW and self.random.random() >= self.scenario.loss:
            self.stream += [record] * self.random.choice([1, 1, 2])

    def remove(self, key: Key) -> dict[str, Any]:
        """Remove an item, and return the record of its removal."""
        self.engine.write(Delete(key))
        self._sequence += 7
        return events.removal(self._sequence, *key)

    def may_go(self, key: Key) -> bool:
        """Return whether TTL may remove an item: a view only after its fold."""
        if not key.sk.startswith(keys.VIEW):
            return True
        summary = read(self.engine, key.pk.removeprefix(keys.PARTITION))
        return milliseconds(key.sk.removeprefix(keys.VIEW)) <= summary.watermark

    def disturb(self) -> None:
        """Add a record to the stream that must count nothing."""
        self.stream.append(self.random.choice(OTHER_RECORDS))

    def pass_time(self) -> None:
        """Let some time pass."""
        jump = self.random.choice(self.scenario.jumps)
        self.now += 86_400 if self.random.random() < 0.01 else jump

    def due(self) -> list[Message]:
        return [message for message in self.messages if message.visible_at <= self.now]

    def rest(self) -> None:
        """End all operations, deliver every message, and remove and fold every marker."""
        self.faults = 0.0
        while self.scheduler.under_way or self.messages or self.stream or self._next_ttl() < inf:
            if self.scheduler.under_way:
                self.scheduler.go_on(self.scheduler.under_way[-1], self.now)
            elif self.stream:
                self.something_is_folded()
            else:
                self._deliver_or_expire()

    def _deliver_or_expire(self) -> None:
        """Do the next delivery or the next removal of a marker, whichever comes first."""
        delivery = min((message.visible_at + 1 for message in self.messages), default=inf)
        removal = self._next_ttl() - self.random.uniform(0, self.scenario.early)
        self.now = max(self.now, min(delivery, removal))
        if removal < delivery:
            self.expire()
        else:
            self.deliver(self.due()[:10])

    def _next_ttl(self) -> Seconds:
        """Return the time at which the first marker expires."""
        return min(
            (ttl for key, ttl in self.expiring.items() if key.sk == keys.WINDOW), default=inf
        )

    def check(self) -> None:
        """Fold all badges as the operator does if removals were lost, and check law 1."""
        if self.scenario.loss:
            self.now += 2 * self.windows.grace + self.windows.window
            webhooks = self.resources.webhooks
            counting = Counting(self.engine, self.windows, lambda: self.now, webhooks=webhooks)
            for badge_id in self.names():
                BadgeFold(counting, badge_id).fold_all()
        for badge_id in self.names():
            summary = read(self.engine, badge_id)
            first = keys.VIEW + earliest(summary.watermark + 1)
            views = self.engine.count(keys.partition(badge_id), first=first, last=LAST, limit=9)
            assert not views, f"{badge_id[:9]} has views that no fold has counted"
        super().check()

    # further steps

    def somebody_visits(self) -> None:
        self.start(partial(self._look, self.any_ids()), GET_SECONDS)

    def something_is_delivered(self) -> None:
        if due := self.due():
            batch = self.random.sample(due, min(len(due), self.random.choice([1, 1, 2, 5, 10])))
            self.deliver(batch)

    def something_is_folded(self) -> None:
        if self.stream:
            self.random.shuffle(self.stream)
            cut = self.random.choice([1, 1, 2, 5])
            batch, self.stream = self.stream[:cut], self.stream[cut:]
            self.start(partial(self._fold, batch))

    goes_on = 0.65
    happenings: ClassVar = {
        somebody_visits: 25,
        something_is_delivered: 20,
        pass_time: 10,
        expire: 6,
        something_is_folded: 8,
        disturb: 1,
        World.an_owner_asks: 3,
    }
