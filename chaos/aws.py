"""The handlers on AWS as bad as its documentation allows, judged by the same checker.

The world is that of the laws (`tests.laws.aws_world`), here with a stream of shards that split, and
driven by a seed over thousands of views: each message comes up to five times, in batches cut anew;
TTL takes up to two days; the stream is read again from before; calls are throttled, lose their
answers or are the last thing that a process does, and everything else happens in their midst.
"""

from __future__ import annotations

import json
import random
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from moto import mock_aws

from app import app
from chalicelib import resources
from chalicelib.dynamodb import DynamoTable
from chalicelib.ports import Delete, Key, Put, Table, Write
from chalicelib.resources import aws_client
from chalicelib.views import counting, keys
from chalicelib.views.view import View
from chaos.history import History, Kind, Operation, Outcome, Still
from local.database import Database
from local.table import SqliteTable
from tests import events
from tests.aws import create_table
from tests.laws.aws_world import MALFORMED_BODIES, MALFORMED_RECORDS, AwsWorld
from tests.laws.faults import Fault, Faults

BADGES = ("hot", 'quo"te/ü', "hot#", *(f"badge {number}" for number in range(9)))
HOT = 40
"""Live views from which a badge is hot here: one of them is, most of the time."""
DELIVERIES = 5
"""How often a message comes, at most; every other one comes that often."""
HASHES = 2**32
DAY = 86_400
DAYS = 380
"""A history of all days is read at the end, and may have 400."""
AT_ONCE = 20
NO_FAULTS = (Fault.NONE, Fault.PARTLY)
"""At any single call; PARTLY is one of batches."""
HOLES = (Fault.NONE, Fault.THROTTLED)
PASSING = (1, 30, 299, 301, 3_600, DAY, 2 * DAY)


@dataclass(slots=True)
class Shard:
    """A part of the stream: the items whose partition keys hash into its range.

    Lambda reads it from `delivered` on, and not before its parent is read to the end. Source: the
    DynamoDB developer guide, "DynamoDB Streams and AWS Lambda triggers".
    """

    hashes: range
    parent: Shard | None = None
    records: list[dict[str, Any]] = field(default_factory=list)
    delivered: int = 0
    split: bool = False

    @property
    def drained(self) -> bool:
        return self.delivered == len(self.records)

    @property
    def readable(self) -> bool:
        return self.parent is None or (self.parent.drained and self.parent.readable)


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


class ShardedWorld(AwsWorld):
    """The world with shards, and a record of every visit; its time is the number of a step."""

    def __init__(self, table: Table, chance: random.Random) -> None:
        self._faults = CountedFaults()
        super().__init__(table, self._faults)
        self.happened = self._faults.happened
        self.chance = chance
        self._shards = [Shard(range(HASHES))]
        self._steps = count()
        self._visits: list[tuple[Operation, str]] = []
        self._put: dict[str, float] = {}
        self._to_come: list[str] = []
        self._came: Counter[str] = Counter()
        self._accepted = ""
        self._stored_directly = False
        self._stills: list[Still] = []
        self._still_since: float | None = 0.0
        self._started = self.now
        self._faults.meanwhile = self._everything_else

    # what the storage does

    def _accept(self, view: View) -> None:
        super()._accept(view)
        self._accepted = view.ulid
        self._to_come.append(view.ulid)

    def _written(self, writes: Sequence[Write]) -> None:
        super()._written(writes)
        made = (write.key.sk.partition("#") for write in writes if isinstance(write, Put))
        views = (ulid for kind, sign, ulid in made if kind + sign in (keys.VIEW, keys.SEEN))
        self._stored_directly |= any(ulid not in self.messages for ulid in views)
        for write in writes:
            if isinstance(write, Put) and write.key.sk.startswith(keys.SEEN):
                self.happened["counted at once"] += 1
            elif isinstance(write, Delete) and write.key.sk.startswith(keys.VIEW):
                self.happened["folded early"] += 1

    def _append(self, record: dict[str, Any]) -> None:
        self._end_still()
        partition = record.get("dynamodb", {}).get("Keys", {}).get("PK", {}).get("S", "")
        place = zlib.crc32(partition.encode())
        [shard] = [one for one in self._shards if place in one.hashes and not one.split]
        shard.records.append(self.numbered(record))

    def expire(self, removed: Sequence[Key]) -> None:
        self._end_still()
        self.happened["removed a day late"] += sum(
            self.now - self.expiring[key] > DAY for key in removed
        )
        super().expire(removed)

    # what happens

    def visit(
        self, badge_id: str, kind: Kind, faults: Sequence[Fault] = (), note: str = ""
    ) -> None:
        """Somebody looks; who gets no count was counted or not, and it may be known only later."""
        invoked, self._accepted, self._stored_directly = next(self._steps), "", False
        body: dict[str, Any] = {"message": "no answer", "isError": True}
        with self._under(faults):
            body = self.ask(badge_id, peek=kind is not Kind.HIT)
        shown = None if body.get("isError") else int(body["message"])
        note = note or (body["message"] if shown is None else "")
        completed = next(self._steps)
        outcome = self._outcome(shown, body["message"])
        stored = shown is not None and self._stored_directly and not self._accepted
        put_by = completed if stored else None
        visit = Operation(badge_id, kind, invoked, completed, outcome, shown, put_by, note)
        self._visits.append((visit, self._accepted))

    def _outcome(self, shown: int | None, said: str) -> Outcome:
        """What no storage has taken was surely not done, whatever was answered."""
        if shown is not None or "view taken" in said:
            return Outcome.ACKNOWLEDGED
        taken = self._accepted or self._stored_directly
        return Outcome.UNKNOWN if taken else Outcome.REFUSED

    def deliver_some(self) -> None:
        """SQS delivers a batch: new messages, and some that came before."""
        self._to_come = [u for u in self._to_come if self._may_come(self.messages[u])]
        batch = self.chance.sample(
            self._to_come, min(len(self._to_come), self.chance.randrange(1, AT_ONCE))
        )
        malformed = self.chance.choices(MALFORMED_BODIES, k=self.chance.choice((0, 0, 1)))
        self._deliver(batch, malformed, self._some_faults())

    def _deliver(
        self, batch: Sequence[str], malformed: Sequence[str], faults: Sequence[Fault]
    ) -> None:
        self._came.update(batch)
        self.happened["messages delivered"] += len(batch)
        self.happened["of them again"] += sum(self._came[ulid] > 1 for ulid in batch)
        super().deliver(batch, malformed, faults)
        for ulid in batch:
            if self.messages[ulid].done:
                self._put.setdefault(ulid, next(self._steps))
        gone = {u for u in batch if self._came[u] >= DELIVERIES and self.messages[u].done}
        self.happened["messages that came five times"] += len(gone)
        self._to_come = [ulid for ulid in self._to_come if ulid not in gone]

    def expire_some(self) -> None:
        """TTL removes what it likes of what is expired."""
        expired = self.expired()
        self.expire(self.chance.sample(expired, self.chance.randrange(len(expired) + 1)))

    def split(self) -> None:
        """A shard ends, and two others go on in its place."""
        shard = self.chance.choice([one for one in self._shards if not one.split])
        if len(shard.hashes) > 1:
            middle = self.chance.choice(shard.hashes[1:])
            shard.split = True
            self._shards.append(Shard(range(shard.hashes.start, middle), shard))
            self._shards.append(Shard(range(middle, shard.hashes.stop), shard))
            self.happened["shards split"] += 1

    def fold_some(self) -> None:
        """Lambda reads on in a shard, some of it again where its children are not read yet."""
        readable = [one for one in self._shards if one.readable and one.records]
        waiting = [one for one in readable if not one.drained]
        if readable:
            shard = self.chance.choice(waiting or readable)
            self._read(shard, self.chance.choice((0, 0, 3, 20)), self._some_faults())

    def _read(self, shard: Shard, again: int, faults: Sequence[Fault] = ()) -> None:
        begun = any(one.parent is shard and one.delivered for one in self._shards)
        start = shard.delivered if begun else max(0, shard.delivered - again)
        self.happened["records read again"] += shard.delivered - start
        batch = shard.records[start : shard.delivered + self.chance.randrange(1, 30)]
        done = self.consume(batch, faults)
        shard.delivered = max(shard.delivered, start + done)
        if self._still_since is None and all(one.drained for one in self._shards):
            self._still_since = next(self._steps)

    def disturb_some(self) -> None:
        """What is no removal of a view by TTL."""
        record = self.chance.choice((None, *MALFORMED_RECORDS))
        self.disturb(record, self.chance.choice(BADGES))

    def pass_some_time(self) -> None:
        if self.now - self._started < DAYS * DAY:
            self.pass_time(self.chance.choice(PASSING))

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

    def _everything_else(self) -> None:
        """What comes between two calls of a request or a batch; the clock goes on as well."""
        before = self._accepted, self._stored_directly
        self.visit(BADGES[0], Kind.READ)
        batch = self._to_come[:3]
        if all(self._may_come(self.messages[ulid]) for ulid in batch):
            self._deliver(batch, [], [])
        self.expire(self.expired()[:3])
        for shard in [one for one in self._shards if one.readable]:
            self._read(shard, 2)
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

    # how it ends

    def come_to_rest(self) -> None:
        """Every message handled and read; then every view removed and folded, and read again."""
        self._arrive()
        self._read_all(Kind.FINAL, "put")
        self.pass_time(10 * DAY)
        while expired := self.expired():
            self.expire(expired[:1_000])
            self._read_all(Kind.READ, "removed")
        self._drain()
        self._read_all(Kind.FINAL, "folded")
        for badge_id in BADGES:
            self._read_history(badge_id)

    def _arrive(self) -> None:
        """Nothing is on its way any more."""
        waiting = [u for u in self.may_come() if not self.messages[u].done]
        for at in range(0, len(waiting), AT_ONCE):
            self._deliver(waiting[at : at + AT_ONCE], [], [])
        self._drain()

    def _drain(self) -> None:
        while waiting := [one for one in self._shards if one.readable and not one.drained]:
            self._read(waiting[0], 3)

    def _read_all(self, kind: Kind, note: str) -> None:
        for badge_id in BADGES:
            self.visit(badge_id, kind, note=note)

    def _read_history(self, badge_id: str) -> None:
        invoked = next(self._steps)
        query = {"id": [badge_id], "days": ["400"]}
        with self._under([]):
            answer = app(events.http_event(query, path="/api/v1/views/history"), None)
        views = json.loads(answer["body"])["total"]
        completed, done = next(self._steps), Outcome.ACKNOWLEDGED
        note = "all days together"
        history = Operation(badge_id, Kind.FINAL, invoked, completed, done, views, None, note)
        self._visits.append((history, ""))

    def history(self) -> History:
        """What was seen."""
        self._end_still()
        return History(
            tuple(replace(op, put_by=self._put.get(u, op.put_by)) for op, u in self._visits),
            tuple(self._stills),
        )

    @property
    def taken(self) -> int:
        """Hits so far."""
        return sum(visit.attempted for visit, _ in self._visits)

    def _end_still(self) -> None:
        if self._still_since is not None:
            self._stills.append(Still(self._still_since, next(self._steps)))
            self._still_since = None


ACTIONS: tuple[tuple[Callable[[ShardedWorld], None], int], ...] = (
    (ShardedWorld.visits, 10),
    (ShardedWorld.deliver_some, 50),
    (ShardedWorld.expire_some, 4),
    (ShardedWorld.fold_some, 30),
    (ShardedWorld.pass_some_time, 3),
    (ShardedWorld.disturb_some, 1),
    (ShardedWorld.split, 1),
    (ShardedWorld.visits_in_the_quiet, 1),
)


@patch.object(counting, "HOT", HOT)
def simulate(table: Table, seed: object, views: int) -> ShardedWorld:
    """A world in which so many views are taken, and that has come to rest."""
    world = ShardedWorld(table, random.Random(str(seed)))
    actions, weights = zip(*ACTIONS, strict=True)
    try:
        while world.taken < views:
            [action] = world.chance.choices(actions, weights)
            action(world)
        world.come_to_rest()
    finally:
        resources.use(None)
    return world


def on_sqlite(folder: Path, seed: object, views: int) -> ShardedWorld:
    """Over the table of one machine, which is the quicker one."""
    with closing(Database(folder / f"table-{zlib.crc32(str(seed).encode())}")) as database:
        return simulate(SqliteTable(database), seed, views)


def on_moto(seed: object, views: int) -> ShardedWorld:
    """Over DynamoDB's own requests and expressions."""
    with ExitStack() as cleanup:
        cleanup.enter_context(mock_aws())
        client = aws_client("dynamodb")
        cleanup.callback(client.close)
        create_table(client, "chaos")
        return simulate(DynamoTable(client, "chaos"), seed, views)
