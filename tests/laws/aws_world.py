"""AWS as bad as its documentation allows: what a view may meet between the GET and the count.

Messages come any number of times, in any order and any cut, within REDELIVERY_SECONDS of their
last put. TTL removes what is expired when it likes, up to 48 h late. The stream comes in order,
cut anew at every delivery, any part of it again. Any storage call may be throttled, lose its
answer, kill the process, or let all the others happen meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from app import app
from chalicelib import ports, resources
from chalicelib.concurrency import Each
from chalicelib.ports import Delete, Key, Put, Queue, Table, Write, number, text
from chalicelib.settings import Settings
from chalicelib.views import keys
from chalicelib.views.fold import fold_views
from chalicelib.views.owner import Change
from chalicelib.views.put import put_views
from chalicelib.views.view import View
from tests import events
from tests.laws.faults import Crash, Fault, Faults, FaultyQueue, FaultyTable
from tests.laws.ledger import Ledger
from tests.laws.owning import Owner

BADGES = ["plain", 'quo"te/ü', "plain#"]
REDELIVERY = 300
MALFORMED_BODIES = ["", "{", "[]", '{"id": "x"}', '{"id": "x", "view": "y", "shown": 0}', "null"]
MALFORMED_RECORDS: list[dict[str, Any]] = [
    {},
    {"eventName": "REMOVE"},
    {"eventName": "REMOVE", "userIdentity": events.BY_TTL, "dynamodb": {"Keys": {"PK": {}}}},
    events.removal(1, "USER#plain", "VIEW#not-a-ulid"),
]


@dataclass
class Message:
    """A message of the views queue, for ever: SQS may deliver it whether deleted or not."""

    view: View
    put_at: float | None = None
    done: bool = False


@dataclass(frozen=True)
class World:
    """A `resources.Resources` in which everything goes wrong that may."""

    settings: Settings
    clock: Callable[[], float]
    each: Each
    table: Table
    views_queue: Queue
    ttl_lags: bool = True


class AwsWorld:
    """The state of the world, and what can happen in it."""

    def __init__(self, table: Table, faults: Faults | None = None) -> None:
        self.now = 1_800_000_000.0
        self.ledger = Ledger()
        self.messages: dict[str, Message] = {}
        self.expiring: dict[Key, int] = {}
        self.stream: list[dict[str, Any]] = []
        self.delivered = 0
        self.sequence = 10**20
        self.faults = faults or Faults()
        self.engine = table
        self.owner = Owner()
        self.resources = World(
            Settings(redelivery_seconds=REDELIVERY),
            lambda: self.now,
            map,
            FaultyTable(table, self.faults, self._written),
            FaultyQueue(self, self.faults),
        )

    # what the storage sees

    def send(self, body: str, *, delay: float = 0.0) -> None:
        self.send_all([ports.Message(body, delay)])

    def send_all(self, messages: Sequence[ports.Message]) -> None:
        """The queue accepts messages."""
        for message in messages:
            self._accept(View.from_message(message.body))

    def _accept(self, view: View) -> None:
        self.messages[view.ulid] = Message(view)
        self.ledger.take(view.badge_id, view.ulid)

    def _written(self, writes: Sequence[Write]) -> None:
        """Views are stored, counted at once, or folded early."""
        for write in writes:
            if isinstance(write, Put) and write.key.sk.startswith((keys.VIEW, keys.SEEN)):
                self.expiring[write.key] = number(write.item, "ttl")
                ulid = write.key.sk.partition("#")[2]
                badge_id = text(write.item, "badge") or write.key.pk.removeprefix(keys.PARTITION)
                self.ledger.take(badge_id, ulid)
                if ulid in self.messages:
                    self.messages[ulid].put_at = self.now
            elif isinstance(write, Delete) and write.key in self.expiring:
                del self.expiring[write.key]
                self._append(events.removal(0, *write.key, identity=None))

    # what happens

    def get(self, badge_id: str, *, peek: bool, faults: Sequence[Fault] = ()) -> None:
        """A visitor looks; the count shown is the one before his own view."""
        look, queued = self.ledger.look(badge_id), len(self.messages)
        with self._under(faults):
            body = self.ask(badge_id, peek=peek)
            if Fault.MEANWHILE not in faults:
                look.check(body)
            if not look.undisturbed:
                return
            taken = look.answered(body, peek=peek)
            if taken and len(self.messages) == queued and not body.get("isError"):
                counted = int(body["message"]) - look.owned.base
                self.ledger.put_done(badge_id, counted + 1, look.owned.reset)

    def ask(self, badge_id: str, *, peek: bool) -> dict[str, Any]:
        """The badge that a visitor is shown."""
        query = {"id": [badge_id], **({"peek": ["1"]} if peek else {})}
        answer = app(events.http_event(query), None)
        assert answer["statusCode"] == 200
        body: dict[str, Any] = json.loads(answer["body"])
        return body

    def deliver(
        self, ulids: Sequence[str], malformed: Sequence[str], faults: Sequence[Fault]
    ) -> None:
        """SQS delivers a batch, with malformed messages between the others."""
        batch = {f"m-{ulid}": self.messages[ulid].view for ulid in ulids}
        bodies: dict[str, object] = {}
        for place, (message_id, view) in enumerate(batch.items()):
            bodies[message_id] = view.to_message()
            if place < len(malformed):
                bodies[f"bad-{place}"] = malformed[place]
        with self._under(faults):
            failed = _failed(put_views(events.sqs_event(bodies, receives=2), None))
            assert {name for name in bodies if name.startswith("bad-")} <= failed
            if not faults:
                assert failed.isdisjoint(batch)
            for message_id, view in batch.items():
                if message_id not in failed:
                    self.messages[view.ulid].done = True
                    self.ledger.put_done(view.badge_id, view.shown + 1, view.reset)

    def may_come(self) -> list[str]:
        """The messages that SQS may deliver (again) now, within the bound of law 4."""
        return [ulid for ulid, message in self.messages.items() if self._may_come(message)]

    def _may_come(self, message: Message) -> bool:
        return message.put_at is None or self.now - message.put_at <= REDELIVERY

    def expired(self) -> list[Key]:
        return sorted(key for key, ttl in self.expiring.items() if ttl < self.now)

    def expire(self, removed: Sequence[Key]) -> None:
        """TTL removes views; the stream carries each removal."""
        for key in removed:
            self.engine.write(Delete(key))
            del self.expiring[key]
            self._append(events.removal(0, *key))

    def disturb(self, record: dict[str, Any] | None, badge_id: str) -> None:
        """The stream carries what is no removal of a view by TTL: it must count nothing."""
        if record is not None:
            self._append(record)
            return
        some_ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
        pk = keys.partition(badge_id)
        self._append(events.removal(0, pk, keys.VIEW + some_ulid, identity=None))
        self._append(events.removal(0, pk, keys.USER))
        self._append({**events.removal(0, pk, keys.VIEW + some_ulid), "eventName": "MODIFY"})

    def _append(self, record: dict[str, Any]) -> None:
        self.stream.append(self.numbered(record))

    def numbered(self, record: dict[str, Any]) -> dict[str, Any]:
        """Sequence numbers grow by leaps, and by a digit now and then."""
        self.sequence = self.sequence * 3 + 1 if self.sequence < 10**30 else self.sequence + 7
        if "dynamodb" in record and "SequenceNumber" in record["dynamodb"]:
            stream = {**record["dynamodb"], "SequenceNumber": str(self.sequence)}
            record = {**record, "dynamodb": stream}
        return record

    def fold(self, start: int, end: int, faults: Sequence[Fault] = ()) -> None:
        """Lambda delivers a part of the stream, from its checkpoint or from before it."""
        start = min(start, self.delivered)
        done = self.consume(self.stream[start:end], faults)
        self.delivered = max(self.delivered, start + done)

    def consume(self, batch: Sequence[dict[str, Any]], faults: Sequence[Fault]) -> int:
        """Lambda invokes the stream's consumer; returns how many records of the batch are done."""
        if not batch:
            return 0
        with self._under(faults):
            failed = _failed(fold_views(events.stream_event(batch), None))
            if not faults:
                assert not failed
            if not failed:
                return len(batch)
            [lowest] = failed
            numbers = [r.get("dynamodb", {}).get("SequenceNumber") for r in batch]
            return numbers.index(lowest)
        return 0

    def claim(self) -> None:
        """Somebody claims a badge of his own, if nobody has."""
        self.owner.claim(self.engine, self.now)
        self.note_change()

    def change(self, wanted: Change, faults: Sequence[Fault] = ()) -> None:
        """The owner changes it."""
        with self._under(faults):
            self.owner.change(self.resources.table, wanted, self.now)
        self.note_change()

    def delete(self, faults: Sequence[Fault] = ()) -> None:
        """The owner deletes it."""
        with self._under(faults):
            self.owner.delete(self.resources.table, self.now)
        self.note_change()

    def note_change(self) -> None:
        """The ledger hears what the owner has done, be it under way still."""
        self.now += 0.002  # the clock goes on: a view whose count can't be read knows no reset
        self.owner.tell(self.ledger, self.engine)

    def pass_time(self, seconds: float) -> None:
        """A message that was put and not deleted goes to the dead letters before the bound ends."""
        self.now += seconds

    def end(self) -> None:
        """All is quiet: what was on its way has arrived."""
        waiting = [u for u in self.may_come() if not self.messages[u].done]
        for at in range(0, len(waiting), 10):
            self.deliver(waiting[at : at + 10], [], [])
        self.pass_time(10 * 24 * 3600)
        self.expire(self.expired())
        for start in range(self.delivered, len(self.stream), 7):
            self.fold(start, start + 7)
        self.ledger.check_quiet(self.engine)

    @contextmanager
    def _under(self, faults: Sequence[Fault]) -> Iterator[None]:
        self.faults.plan(faults)
        resources.use(self.resources)
        with suppress(Crash):
            yield
        self.faults.plan([])


def _failed(answer: dict[str, Any]) -> set[str]:
    return {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
