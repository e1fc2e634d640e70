"""The handlers on AWS as bad as its documentation allows, judged by the same checker.

A world is driven by a seed over thousands of views. Messages come young, in between and old, many
times, in any batches, and again at any time within two weeks. The clocks of two processes differ by
up to 100 s. TTL removes expired items in any order, days late. Removals of markers are lost, come
twice, in any order, and in batches that run in parallel. Calls are throttled, lose their answers or
are the last thing that a process does, and everything else happens in their midst. Owners reset,
freeze and delete their badges at any point.
"""

from __future__ import annotations

import json
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from moto import mock_aws

from app import app
from chalicelib.aws import resources
from chalicelib.aws.clients import aws_client
from chalicelib.aws.consumers import fold_views, put_views
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.http.tokens import digest
from chalicelib.settings import Settings
from chalicelib.storage import ports
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Key, number
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Delete, Put, Update, Write
from chalicelib.views import keys, owner
from chalicelib.views.folding import Folder
from chalicelib.views.view import View
from chalicelib.views.view_queue import ViewMessages
from chalicelib.views.windows import Windows
from chaos.checker.history import Kind, Operation, Outcome
from simulation import aws_events as events
from simulation.aws_table import create_table
from simulation.faults import Crash, Fault, Faults, FaultyQueue, FaultyTable
from simulation.resources import GivenResources
from vumi.storage.database import Database
from vumi.storage.table import SqliteTable

BADGES = ("hot", 'quo"te/ü', "hot#", *(f"badge {number}" for number in range(9)))
OWNED = BADGES[:3]
SECRET = "a secret of the owner's own"  # noqa: S105  of a badge in a simulation
DIGEST = digest(SECRET)
HOT = 40
"""Live views from which a badge is hot here: one of them is, most of the time."""
SETTINGS = Settings(hot_views=HOT)
WINDOWS = Windows.of(SETTINGS)
DELIVERIES = 5
"""How often a message comes soon, at most; every other one comes that often."""
START = 1_800_000_000.0
DAY = 86_400
DAYS = 380
"""A history of all days is read at the end, and may have 400."""
WEEK = 7 * DAY
"""At least so often all messages are delivered and all views are folded: a queue keeps messages for
two weeks, and a view is kept for 15 days."""
LATE = 14 * DAY
"""A message may come again until its view is so old."""
AT_ONCE = 20
APART = 50.0
"""A clock may be so far ahead or behind, in seconds."""
APART_OF_OWNERS = 2.0
"""That of a process that owners or their visitors ask: a life ends 5 s ahead of the clock."""
MEANWHILE_SECONDS = 2.0
LOSSES = (0.0, 0.1, 0.9)
"""This share of the removals of markers is lost in a world."""
NO_FAULTS = (Fault.NONE, Fault.PARTLY)
"""At any single call; PARTLY is one of batches."""
HOLES = (Fault.NONE, Fault.THROTTLED)
PASSING = (1, 30, 299, 301, 600, 900, 3_600, DAY, 2 * DAY)
MALFORMED_BODIES = ("", "{", "[]", '{"id": "x"}', '{"id": "x", "view": "y", "first": 0}', "null")
MALFORMED_RECORDS: tuple[dict[str, Any], ...] = (
    {},
    {"eventName": "REMOVE"},
    {"eventName": "REMOVE", "dynamodb": {"Keys": {"PK": {}}}},
    events.removal(1, "WINDOW#soon#hot", "WINDOW"),
)


class CountedFaults(Faults):
    """Counts the faults that happened."""

    def __init__(self) -> None:
        super().__init__()
        self.happened: Counter[str] = Counter()

    def take(self, fault: Fault) -> bool:
        taken = super().take(fault)
        self.happened[fault.name] += taken
        return taken

    def call(self, operation: Callable[[], Any]) -> Any:
        planned = self.put_aside()
        self.plan(planned)
        self.happened.update(fault.name for fault in planned[:1] if fault not in NO_FAULTS)
        return super().call(operation)


@dataclass(slots=True)
class Message:
    """A message of the views queue: SQS may deliver it again, whether deleted or not."""

    view: View
    came: int = 0
    done: bool = False


class World:
    """The state of a world, and what can happen in it; its time is the number of a step."""

    def __init__(self, table: Table, chance: random.Random) -> None:
        self.chance = chance
        self.now = START
        self.taken = 0
        self._faults = CountedFaults()
        self.happened = self._faults.happened
        self._engine = table
        self._ahead = 0.0
        self._use = GivenResources(
            settings=SETTINGS,
            clock=lambda: self.now + self._ahead,
            table=FaultyTable(table, self._faults, self._written),
            views_queue=ViewMessages(FaultyQueue(self, self._faults)),
        )
        self._steps = count()
        self._visits: list[tuple[Operation, str]] = []
        self._put: dict[str, float] = {}
        self.messages: dict[str, Message] = {}
        self._to_come: list[str] = []
        self._accepted = ""
        self._stored_directly = False
        self._expiring: dict[Key, int] = {}
        self._loss = chance.choice(LOSSES)
        self._sequence = 10**20
        self._removals: list[dict[str, Any]] = []
        self._read_before: list[dict[str, Any]] = []
        self._owned = list(OWNED)
        self._may_be_frozen: set[str] = set()
        self._in_bounds_at = self.now
        self._faults.meanwhile = self._everything_else
        for badge_id in OWNED:
            owner.claim(table, badge_id, 0, self.now, DIGEST)

    # what the storage does

    def send(self, body: str, *, delay: float = 0.0) -> None:
        self.send_all([ports.Message(body, delay)])

    def send_all(self, messages: Sequence[ports.Message]) -> None:
        """The queue accepts messages."""
        for message in messages:
            view = View.from_message(message.body)
            self.messages[view.ulid] = Message(view)
            self._accepted = view.ulid
            self._to_come.append(view.ulid)

    def _written(self, writes: Sequence[Write]) -> None:
        """Note which items have a time to live, and which views were stored by a GET itself."""
        for write in writes:
            match write:
                case Put():
                    self._note_put(write)
                case Update():
                    if "ttl" in write.remove:
                        self._expiring.pop(write.key, None)
                    self._note_ttl(write.key, write.values)
                case Delete():
                    self._expiring.pop(write.key, None)

    def _note_put(self, put: Put) -> None:
        self._note_ttl(put.key, put.item)
        kind, _, ulid = put.key.sk.partition("#")
        if put.key.sk == keys.SEEN:
            self.happened["counted at once"] += 1
            ulid = put.key.pk.partition("#")[2]
        elif kind + "#" != keys.VIEW:
            return
        self._stored_directly |= ulid not in self.messages

    def _note_ttl(self, key: Key, attributes: Any) -> None:
        if "ttl" in attributes:
            self._expiring[key] = number(attributes, "ttl")

    def expire(self, removed: Sequence[Key]) -> None:
        """TTL removes items; the stream carries the removals of markers, unless they are lost."""
        for key in removed:
            late = self.now - self._expiring.pop(key) > DAY
            self._engine.write(Delete(key))
            if key.sk != keys.WINDOW:
                self.happened["views and markers removed at their end"] += 1
            elif self.chance.random() < self._loss:
                self.happened["removals lost"] += 1
            else:
                self.happened["removals a day late"] += late
                self._removals.append(self._numbered(events.removal(0, *key)))

    def expired(self) -> list[Key]:
        """Return what TTL may remove, in any order; its clock may be ahead."""
        now = self.now + self.chance.uniform(0, APART)
        expired = sorted(key for key, ttl in self._expiring.items() if ttl < now)
        self.chance.shuffle(expired)
        return expired

    def _numbered(self, record: dict[str, Any]) -> dict[str, Any]:
        """Sequence numbers grow by leaps, and by a digit now and then."""
        self._sequence = self._sequence * 3 + 1 if self._sequence < 10**30 else self._sequence + 7
        if "SequenceNumber" in record.get("dynamodb", {}):
            stream = {**record["dynamodb"], "SequenceNumber": str(self._sequence)}
            record = {**record, "dynamodb": stream}
        return record

    # what happens

    def visit(
        self, badge_id: str, kind: Kind, faults: Sequence[Fault] = (), note: str = ""
    ) -> None:
        """Somebody looks; who gets no count was counted or not, and it may be known only later."""
        invoked, self._accepted, self._stored_directly = next(self._steps), "", False
        body: dict[str, Any] = {"message": "no answer", "isError": True}
        with self._process(self._apart(badge_id), faults):
            body = self._ask(badge_id, kind)
        shown = None if body.get("isError") else int(body["message"])
        note = note or (body["message"] if shown is None else "")
        completed = next(self._steps)
        outcome = self._outcome(badge_id, shown, body["message"])
        stored = shown is not None and self._stored_directly and not self._accepted
        put_by = completed if stored else None
        visit = Operation(badge_id, kind, invoked, completed, outcome, shown, put_by, note)
        self.taken += visit.attempted
        self._visits.append((visit, self._accepted))

    def _ask(self, badge_id: str, kind: Kind) -> dict[str, Any]:
        """Return the badge that a visitor is shown: to look alone they peek, or ask with HEAD."""
        query = {"id": [badge_id]}
        looks = kind is not Kind.HIT
        peeks = looks and self.chance.random() < 0.5  # noqa: PLR2004
        event = events.http_event(
            query | ({"peek": ["1"]} if peeks else {}),
            method="HEAD" if looks and not peeks else "GET",
        )
        body: dict[str, Any] = json.loads(app(event, None)["body"])
        return body

    def _outcome(self, badge_id: str, shown: int | None, said: str) -> Outcome:
        """What no storage has taken was surely not done: a frozen badge takes no views."""
        taken = self._accepted or self._stored_directly
        if not taken and (shown is None or badge_id in self._may_be_frozen):
            return Outcome.REFUSED
        if shown is not None or "view taken" in said:
            return Outcome.ACKNOWLEDGED
        return Outcome.UNKNOWN

    def deliver_some(self) -> None:
        """SQS delivers a batch: new messages, and some that came before."""
        number_ = min(len(self._to_come), self.chance.randrange(1, AT_ONCE))
        batch = self.chance.sample(self._to_come, number_)
        malformed = self.chance.choices(MALFORMED_BODIES, k=self.chance.choice((0, 0, 1)))
        self._deliver(batch, malformed, self._some_faults())

    def deliver_late(self) -> None:
        """SQS delivers messages again that were done long ago."""
        known = list(self.messages)
        batch = [u for u in self.chance.sample(known, min(len(known), 9)) if self._may_come(u)]
        self.happened["of them days later"] += sum(
            self.now - self.messages[ulid].view.milliseconds / 1000 > DAY for ulid in batch
        )
        self._deliver(batch, [], self._some_faults())

    def _may_come(self, ulid: str) -> bool:
        return self.now - self.messages[ulid].view.milliseconds / 1000 < LATE

    def _deliver(
        self, batch: Sequence[str], malformed: Sequence[str], faults: Sequence[Fault]
    ) -> None:
        bodies: dict[str, object] = {ulid: self.messages[ulid].view.to_message() for ulid in batch}
        bodies |= {f"bad-{place}": body for place, body in enumerate(malformed)}
        self.happened["messages delivered"] += len(batch)
        for ulid in batch:
            self.happened["of them again"] += self.messages[ulid].came > 0
            self.messages[ulid].came += 1
        with self._process(APART, faults):
            failed = _failed(put_views(events.sqs_event(bodies, receives=2), None))
            if not bodies.keys() - set(batch) <= failed:
                raise AssertionError(f"malformed messages were done: {malformed}")
            self.happened["of them in between"] += sum(
                not faults and ulid in failed for ulid in batch
            )
            for ulid in set(batch) - failed:
                self.messages[ulid].done = True
                self._put.setdefault(ulid, next(self._steps))
        self._to_come = [ulid for ulid in self._to_come if not self._is_over(ulid)]

    def _is_over(self, ulid: str) -> bool:
        message = self.messages[ulid]
        return message.done and message.came >= 1 + int(ulid[-1] > "G") * (DELIVERIES - 1)

    def expire_some(self) -> None:
        """TTL removes what it likes of what is expired."""
        expired = self.expired()
        self.expire(expired[: self.chance.randrange(len(expired) + 1)])

    def fold_some(self) -> None:
        """Lambda reads some removals, in any order, and some that it has read before."""
        self._fold(self.chance.randrange(1, 30), self.chance.choice((0, 0, 3)), self._some_faults())

    def _fold(self, most: int, again: int, faults: Sequence[Fault] = ()) -> None:
        self.chance.shuffle(self._removals)
        new, self._removals = self._removals[:most], self._removals[most:]
        old = self.chance.sample(self._read_before, min(again, len(self._read_before)))
        if not new + old:
            return
        self.happened["removals read again"] += len(old)
        left = new
        with self._process(APART, faults):
            [*lowest] = _failed(fold_views(events.stream_event(new + old), None))
            left = [one for one in new if lowest and _sequence(one) >= int(lowest[0])]
        self._removals += left
        self._read_before += [one for one in new if one not in left]

    def fold_all(self) -> None:
        """The operator's command folds every badge, where removals are lost."""
        for badge_id in BADGES if self._loss else ():
            Folder(self._engine, WINDOWS, lambda: self.now).fold_all(badge_id)

    def disturb_some(self) -> None:
        """The stream carries what is no removal of a marker."""
        view = keys.view(self.chance.choice(BADGES), "01ARZ3NDEKTSV4RRFFQ69G5FAV")
        own = (events.removal(0, *view), {**events.removal(0, *view), "eventName": "MODIFY"})
        self._removals.append(self._numbered(self.chance.choice((*own, *MALFORMED_RECORDS))))

    def pass_some_time(self) -> None:
        seconds = self.chance.choice(PASSING)
        if self.now + seconds - START > DAYS * DAY:
            return
        if self.now + seconds - self._in_bounds_at > WEEK:
            self._arrive()
            self._fold_everything()
            self._in_bounds_at = self.now
        self.now += seconds

    def visits(self) -> None:
        """Some visitors in a row, most of them of one badge."""
        for _ in range(self.chance.randrange(1, AT_ONCE)):
            hot = self.chance.random() < 0.4  # noqa: PLR2004
            badge_id = BADGES[0] if hot else self.chance.choice(BADGES)
            kind = self.chance.choice((Kind.HIT, Kind.HIT, Kind.HIT, Kind.READ))
            self.visit(badge_id, kind, self._some_faults())

    def visits_in_the_quiet(self) -> None:
        """Nothing is on its way, so that a count one too high is seen: a storage with holes."""
        self._arrive()
        for badge_id in BADGES:
            self.visit(badge_id, Kind.HIT, self.chance.choices(HOLES, k=6))
            self.visit(badge_id, Kind.READ)

    def change_some(self) -> None:
        """An owner resets, freezes or deletes their badge, and asks until it is done."""
        if not self._owned:
            return
        badge_id = self.chance.choice(self._owned)
        match self.chance.randrange(6):
            case 0 | 1:
                self.freeze(badge_id, frozen=True)
            case 2 | 3:
                self.freeze(badge_id, frozen=False)
            case 4:
                self._end_a_life(badge_id, owner.Change(reset=True))
            case _:
                self._end_a_life(badge_id, None)

    def freeze(self, badge_id: str, *, frozen: bool) -> None:
        """An owner freezes their badge, or lets it go on."""
        self._may_be_frozen.add(badge_id)
        self._until_done(lambda: self._change(badge_id, owner.Change(frozen=frozen)))
        if not frozen:
            self._may_be_frozen.discard(badge_id)
        self.happened["badges frozen"] += frozen

    def _end_a_life(self, badge_id: str, wanted: owner.Change | None) -> None:
        invoked = next(self._steps)
        self._until_done(lambda: self._change(badge_id, wanted))
        reset = (badge_id, Kind.RESET, invoked, next(self._steps), Outcome.ACKNOWLEDGED)
        self._visits.append((Operation(*reset, note="" if wanted else "deleted"), ""))
        if not wanted:
            self._may_be_frozen.discard(badge_id)
            self._owned.remove(badge_id)
            with suppress(owner.TakenError):  # somebody came first
                self._until_done(lambda: self._claim(badge_id))
                self._owned.append(badge_id)

    def _change(self, badge_id: str, wanted: owner.Change | None) -> None:
        table, now = self._use.table, self._use.clock()
        owned = owner.authenticate(table, badge_id, SECRET)
        if wanted:
            owner.change(table, owned, wanted, now)
        else:
            owner.delete(table, owned, now, SETTINGS.retention_seconds)

    def _claim(self, badge_id: str) -> None:
        owner.claim(self._use.table, badge_id, 0, self._use.clock(), DIGEST)

    def _until_done(self, ask: Callable[[], None]) -> None:
        done = False
        faults = self._some_faults()
        while not done:
            with self._process(APART_OF_OWNERS, faults), suppress(StorageError):
                ask()
                done = True
            faults = []

    def _everything_else(self) -> None:
        """What comes between two calls of a request or a batch; the clock goes on as well."""
        before = self._accepted, self._stored_directly
        self.now += self.chance.uniform(0, MEANWHILE_SECONDS)
        self.visit(BADGES[0], Kind.READ)
        self.visit(self.chance.choice(BADGES), Kind.HIT)
        self._deliver(self._to_come[:3], [], [])
        self.expire(self.expired()[:3])
        self._fold(3, 1)
        self._accepted, self._stored_directly = before

    def _some_faults(self) -> list[Fault]:
        """None most of the time, then some here and there, or a storage that fails for long."""
        match self.chance.randrange(12):
            case 0:
                return [self.chance.choice(list(Fault))]
            case 1:
                return self.chance.choices([Fault.NONE, *Fault], k=8)
            case 2:
                return [Fault.NONE] * self.chance.randrange(6) + [Fault.THROTTLED] * 20
        return []

    def _apart(self, badge_id: str) -> float:
        return APART_OF_OWNERS if badge_id in OWNED else APART

    @contextmanager
    def _process(self, apart: float, faults: Sequence[Fault]) -> Iterator[None]:
        """A process with a clock of its own does something, and may die of it."""
        before, self._ahead = self._ahead, self.chance.uniform(-apart, apart)
        self._faults.plan(faults)
        resources.use(self._use)
        with suppress(Crash):
            yield
        self._faults.plan([])
        self._ahead = before

    # how it ends

    def come_to_rest(self) -> None:
        """Every message handled and read; then every view folded and removed, and read again."""
        self._arrive()
        self._read_all(Kind.FINAL, "put")
        self._fold_everything()
        self._read_all(Kind.FINAL, "folded")
        self.now += 30 * DAY
        self.expire(self.expired())
        self._read_all(Kind.FINAL, "removed")
        for badge_id in BADGES:
            self._read_history(badge_id)

    def _arrive(self) -> None:
        """Nothing is on its way any more."""
        while waiting := [ulid for ulid in self._to_come if not self.messages[ulid].done]:
            for at in range(0, len(waiting), AT_ONCE):
                self._deliver(waiting[at : at + AT_ONCE], [], [])
            self.now += WINDOWS.window

    def _fold_everything(self) -> None:
        """TTL removes all markers, and each removal that is not lost is read."""
        while self._removals or any(key.sk == keys.WINDOW for key in self._expiring):
            self.expire(self.expired())
            self._fold(30, 3)
            self._read_all(Kind.READ, "while they are folded")
            self.now += WINDOWS.window
        self.fold_all()

    def _read_all(self, kind: Kind, note: str) -> None:
        for badge_id in BADGES:
            self.visit(badge_id, kind, note=note)

    def _read_history(self, badge_id: str) -> None:
        invoked = next(self._steps)
        query = {"id": [badge_id], "days": ["400"]}
        with self._process(0.0, []):
            answer = app(events.http_event(query, path="/api/v1/views/history"), None)
        views = json.loads(answer["body"])["total"]
        completed, done = next(self._steps), Outcome.ACKNOWLEDGED
        note = "all days together"
        history = Operation(badge_id, Kind.FINAL, invoked, completed, done, views, None, note)
        self._visits.append((history, ""))

    def history(self) -> list[Operation]:
        """Return what was seen."""
        return [replace(op, put_by=self._put.get(u, op.put_by)) for op, u in self._visits]


def _failed(answer: dict[str, Any]) -> set[str]:
    return {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}


def _sequence(record: dict[str, Any]) -> int:
    return int(record.get("dynamodb", {}).get("SequenceNumber", 0))


ACTIONS: tuple[tuple[Callable[[World], None], int], ...] = (
    (World.visits, 10),
    (World.deliver_some, 40),
    (World.deliver_late, 4),
    (World.expire_some, 6),
    (World.fold_some, 10),
    (World.fold_all, 1),
    (World.pass_some_time, 5),
    (World.change_some, 3),
    (World.disturb_some, 1),
    (World.visits_in_the_quiet, 1),
)


def simulate(table: Table, seed: object, views: int) -> World:
    """Return a world in which so many views were taken, and that has come to rest."""
    world = World(table, random.Random(str(seed)))
    actions, weights = zip(*ACTIONS, strict=True)
    try:
        while world.taken < views:
            [action] = world.chance.choices(actions, weights)
            action(world)
        world.come_to_rest()
    finally:
        resources.use(None)
    return world


def on_sqlite(folder: Path, seed: object, views: int) -> World:
    """Run a world over the table of one machine, which is the quicker one."""
    with closing(Database(folder / f"table-{zlib.crc32(str(seed).encode())}")) as database:
        return simulate(SqliteTable(database), seed, views)


def on_moto(seed: object, views: int) -> World:
    """Run a world over DynamoDB's own requests and expressions."""
    with ExitStack() as cleanup:
        cleanup.enter_context(mock_aws())
        client = aws_client("dynamodb")
        cleanup.callback(client.close)
        create_table(client, "chaos")
        return simulate(DynamoTable(client, "chaos"), seed, views)
