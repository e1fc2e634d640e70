"""AWS as bad as its documentation allows: all that a view may meet from its GET to its count.

Visitors, deliveries, folds and owners' requests are operations that interleave at every storage
call. Each may be throttled there, lose its answer, or be ended. Clocks of two processes differ.
SQS delivers a message once or several times, young, in between or old. TTL removes items in any
order, some days late; the stream carries a removal never, once or twice, in any order and cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, TypeVar

from chalicelib.aws import resources
from chalicelib.aws.consumers import fold_views, put_views
from chalicelib.settings import Settings
from chalicelib.storage import ports
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Due, Item, Key, number
from chalicelib.storage.ports import NotStored, Table
from chalicelib.storage.writes import Delete, Put, Update, Write
from chalicelib.views import keys
from chalicelib.views.folding import Folder
from chalicelib.views.summary import read
from chalicelib.views.view import View, earliest, milliseconds
from chalicelib.views.view_queue import ViewMessages
from simulation import aws_events as events
from simulation.faults import Crash
from simulation.operations import Operation
from simulation.resources import GivenResources
from simulation.world import GET_SECONDS, NOON, World

Result = TypeVar("Result")

RETENTION_OF_QUEUE = 14 * 86_400
LONG_ID = "\N{DUCK}" * 200
"""An id of which one read unit reads three views: its visitors often need a second query."""
LAST = keys.VIEW + "~"
MAX_EARLY_SECONDS = 50.0
"""How much the clock of TTL may be ahead."""
PUT_SECONDS = 60.0
"""When Lambda ends `put_views`."""
MALFORMED_BODIES = ["", "{", "[]", '{"id": "x"}', '{"id": "x", "view": "y", "first": 1}', "null"]
MALFORMED_RECORDS: list[dict[str, Any]] = [
    {},
    {"eventName": "REMOVE"},
    {"eventName": "REMOVE", "userIdentity": events.BY_TTL, "dynamodb": {"Keys": {"PK": {}}}},
    events.removal(1, "WINDOW#x#plain", "WINDOW"),
    events.removal(1, "WINDOW#1", "WINDOW"),
]


@dataclass(frozen=True)
class AwsScenario:
    """How bad a history is.

    `skew` is by how many seconds two clocks may differ, `loss` the share of removals that no
    record tells of, `faults` the share of storage calls that fail, `hot` from how many live views
    on a badge is hot, `start` the time at which the history begins. `owners` says whether owners
    change their badges. `jumps` are the seconds that may pass at once.
    """

    ids: tuple[str, ...] = ("plain", LONG_ID)
    skew: float = 100.0
    loss: float = 0.3
    faults: float = 0.03
    hot: int = 1_000
    start: float = NOON
    owners: bool = False
    jumps: tuple[float, ...] = (0.1, 1, 5, 30, 60, 100, 300, 700, 3_600)
    delays: tuple[float, ...] = (0, 1, 5, 30, 200, 290, 310, 600, 900, 2_000, 90_000, 300_000)


@dataclass
class Message:
    """A message of the views queue that is to be delivered (again) from a time on."""

    visible_at: float
    body: str
    view: View | None


class Paused:
    """A `Table` and a `Queue` whose calls let others go on first, and may meet a fault."""

    def __init__(self, world: AwsWorld) -> None:
        self._world = world

    def get(self, key: Key) -> Item | None:
        return self._world.read(lambda: self._world.engine.get(key))

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        return self._world.read(lambda: self._world.engine.get_all(keys))

    def query(self, partition: str, **how: Any) -> list[Item]:
        return self._world.read(lambda: self._world.engine.query(partition, **how))

    def query_due(self, batch: str, **how: Any) -> list[Due]:
        return self._world.engine.query_due(batch, **how)

    def count(self, partition: str, **how: Any) -> int:
        return self._world.read(lambda: self._world.engine.count(partition, **how))

    def write(self, *writes: Write) -> None:
        self._world.call(partial(self._world.written, writes))

    def put_all(self, items: Sequence[Item]) -> None:
        """A batch of items: DynamoDB may leave some of them unprocessed."""
        left = []
        for item in items:
            try:
                self.write(Put(item))
            except StorageError:
                left.append(item)
        if left:
            raise NotStored(left, "unprocessed")

    def send(self, body: str, *, delay: float = 0.0) -> None:
        assert not delay
        self._world.call(partial(self._world.accept, body))

    def send_all(self, messages: Sequence[ports.Message]) -> None:
        for message in messages:
            self.send(message.body)


class AwsWorld(World):
    """The state of the world, and what can happen in it."""

    def __init__(self, seed: int, scenario: AwsScenario, engine: Table) -> None:
        super().__init__(
            seed, scenario.start, scenario.skew, scenario.ids, has_owners=scenario.owners
        )
        self.scenario, self.engine, self.faults = scenario, engine, scenario.faults
        self.settings = Settings(hot_views=scenario.hot)
        self.messages: list[Message] = []
        self.expiring: dict[Key, int] = {}
        self.stream: list[dict[str, Any]] = []
        self._sequence = 10**20
        paused = Paused(self)
        self.table = paused
        self.resources = GivenResources(
            settings=self.settings,
            clock=self.clock,
            table=paused,
            views_queue=ViewMessages(paused),
        )
        resources.use(self.resources)

    def clock(self) -> float:
        operation = self.scheduler.current
        return self.now + (operation.skew if operation else 0.0)

    def run(self, steps: int) -> None:
        try:
            super().run(steps)
        finally:
            resources.use(None)

    def read(self, operation: Callable[[], Result]) -> Result:
        result = self.call(operation)
        if looking := self.looking():
            looking.last_read = self.moment
        return result

    def call(self, operation: Callable[[], Result]) -> Result:
        """Do what an operation asks of the storage, after others have gone on."""
        self.scheduler.pause()
        return super().call(operation)

    def accept(self, body: str) -> None:
        """The queue has a message; it delivers it one to three times, soon or late."""
        view = View.from_message(body)
        looking = self.looking()
        assert looking
        self.take(looking, view.ulid)
        chance = self.random
        late = (
            chance.choice(self.scenario.delays) if chance.random() < 0.4 else chance.uniform(0, 3)
        )
        for _ in range(chance.choice([1, 1, 2, 3])):
            self.deliver_at(self.now + late, body, view)
            late += chance.choice([0, 1, 100, 299, 600, 86_400, 5 * 86_400])

    def deliver_at(self, at: float, body: str, view: View | None) -> None:
        """Let a message be delivered, unless the queue has forgotten it by then."""
        if view is None or at < view.milliseconds / 1000 + RETENTION_OF_QUEUE - 86_400:
            self.messages.append(Message(at, body, view))

    def written(self, writes: Sequence[Write]) -> None:
        self.engine.write(*writes)
        for write in writes:
            self._note(write)

    def _note(self, write: Write) -> None:
        """Note what expires, which views are taken, and which lives have ended."""
        self.note_life(write)
        item = write.item if isinstance(write, Put) else {}
        if isinstance(write, Update):
            item = dict(write.values)
        if "ttl" in item:
            self.expiring[write.key] = number(item, "ttl")
        else:
            self.expiring.pop(write.key, None)
        if looking := self.looking():
            if write.key.sk.startswith(keys.VIEW):
                self.take(looking, write.key.sk.removeprefix(keys.VIEW))
            if write.key.sk == keys.SEEN:
                self.take(looking, write.key.pk.removeprefix(keys.SEEN + "#"))

    # operations

    def _look(self, asked: str, operation: Operation) -> None:
        looking = operation.state = self.look(asked)
        try:
            body = self.any_request(asked)()
        finally:
            looking.span.ended = self.moment
        self.check_answer(looking, body)

    def deliver(self, batch: Sequence[Message]) -> None:
        """SQS delivers a batch to `put_views`, with a malformed message now and then."""
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
            for name in failed:
                if bodies[name].view:
                    self.deliver_at(self.now + again, bodies[name].body, bodies[name].view)

    def fold(self, records: Sequence[dict[str, Any]]) -> None:
        """Lambda delivers a batch of the stream to `fold_views`."""
        self.start(partial(self._fold, records))

    def _fold(self, records: Sequence[dict[str, Any]], _: Operation) -> None:
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

    # the scenario

    def expire(self) -> None:
        """Let TTL remove an item, if one is expired; the stream may carry a marker's removal."""
        late = self.now + self.random.uniform(0, MAX_EARLY_SECONDS)
        gone = [key for key, ttl in self.expiring.items() if ttl < late and self._may_go(key)]
        if not gone:
            return
        key = self.random.choice(gone)
        del self.expiring[key]
        self.engine.write(Delete(key))
        if key.sk == keys.WINDOW and self.random.random() >= self.scenario.loss:
            self._sequence += 7
            record = events.removal(self._sequence, *key)
            self.stream += [record] * self.random.choice([1, 1, 2])

    def _may_go(self, key: Key) -> bool:
        """Folds come within the retention: a view that is not folded is not removed."""
        if not key.sk.startswith(keys.VIEW):
            return True
        summary = read(self.engine, key.pk.removeprefix(keys.PARTITION))
        return milliseconds(key.sk.removeprefix(keys.VIEW)) <= summary.watermark

    def disturb(self) -> None:
        """The stream carries what is no removal of a marker: it must count nothing."""
        some_ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
        record = self.random.choice(
            [
                *MALFORMED_RECORDS,
                events.removal(5, keys.partition("plain"), keys.VIEW + some_ulid),
                events.removal(5, *keys.summary("plain")),
            ]
        )
        self.stream.append(record)

    def pass_time(self) -> None:
        """Time passes; a message is delivered before its queue forgets it."""
        jump = self.random.choice(self.scenario.jumps)
        self.now += 86_400 if self.random.random() < 0.01 else jump

    def due(self) -> list[Message]:
        return [message for message in self.messages if message.visible_at <= self.now]

    def step(self) -> None:
        """One thing happens, mostly the next storage call of something under way."""
        chance, under_way = self.random, self.scheduler.under_way
        if under_way and chance.random() > 0.35:
            self.scheduler.step(self.now)
            return
        happens = chance.choices(list(HAPPENINGS), list(HAPPENINGS.values()))[0]
        happens(self)

    def rest(self) -> None:
        """End all that is under way, deliver every message, and remove and fold every marker."""
        self.faults = 0.0
        while self.scheduler.under_way or self.messages or self.stream or self._next_ttl() < inf:
            if self.scheduler.under_way:
                self.scheduler.go_on(self.scheduler.under_way[-1], self.now)
            elif self.stream:
                self.something_is_folded()
            else:
                self._deliver_or_expire()

    def _deliver_or_expire(self) -> None:
        """Go on to the next delivery, or to the next removal of a marker, if that comes first."""
        delivery = min((message.visible_at + 1 for message in self.messages), default=inf)
        removal = self._next_ttl() - self.random.uniform(0, MAX_EARLY_SECONDS)
        self.now = max(self.now, min(delivery, removal))
        if removal < delivery:
            self.expire()
        else:
            batch = self.due()[:10]
            self.messages = [one for one in self.messages if one not in batch]
            self.deliver(batch)

    def _next_ttl(self) -> float:
        """Return when the first marker expires."""
        return min(
            (ttl for key, ttl in self.expiring.items() if key.sk == keys.WINDOW), default=inf
        )

    def check(self) -> None:
        """Let the operator fold all badges if removals were lost, and check law 1."""
        if self.scenario.loss:
            self.now += 2 * self.windows.grace + self.windows.window
            folder = Folder(self.engine, self.windows, lambda: self.now)
            for badge_id in self.names():
                folder.fold_all(badge_id)
        for badge_id in self.names():
            summary = read(self.engine, badge_id)
            first = keys.VIEW + earliest(summary.watermark + 1)
            views = self.engine.count(keys.partition(badge_id), first=first, last=LAST, limit=9)
            assert not views, f"{badge_id[:9]} has views that no fold has counted"
        super().check()

    # what HAPPENINGS call

    def somebody_visits(self) -> None:
        asked = self.random.choice(self.owners.ids)
        self.start(partial(self._look, asked), GET_SECONDS)

    def something_is_delivered(self) -> None:
        if due := self.due():
            batch = self.random.sample(due, min(len(due), self.random.choice([1, 1, 2, 5, 10])))
            self.messages = [one for one in self.messages if one not in batch]
            self.deliver(batch)

    def something_is_folded(self) -> None:
        if self.stream:
            self.random.shuffle(self.stream)
            cut = self.random.choice([1, 1, 2, 5])
            batch, self.stream = self.stream[:cut], self.stream[cut:]
            self.fold(batch)


HAPPENINGS: Mapping[Callable[[AwsWorld], None], float] = {
    AwsWorld.somebody_visits: 25,
    AwsWorld.something_is_delivered: 20,
    AwsWorld.pass_time: 10,
    AwsWorld.expire: 6,
    AwsWorld.something_is_folded: 8,
    AwsWorld.disturb: 1,
    AwsWorld.an_owner_asks: 3,
}
