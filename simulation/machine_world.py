"""One machine with all faults: the process is killed, the clock is set, the disk is full.

This is the real engine on a real file, without threads: the world runs the steps of its loops one
at a time. Visitors share a commit, which also stores their views. An owner's request interleaves
with everything at each of its storage calls. To kill the process, the world opens the file again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar

from chalicelib.counting import badge_count, keys
from chalicelib.counting.summary import Summary
from chalicelib.counting.view import View
from chalicelib.events.webhook_schedule import EventSchedule
from chalicelib.resources import Room
from chalicelib.settings import Settings
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Item, number
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Update, Write
from chalicelib.ulids import milliseconds
from chalicelib.units import Seconds, to_milliseconds
from simulation.aws_world import LONG_ID, MALFORMED_BODIES
from simulation.faults import Crash
from simulation.ledger import LifeEnd, Moment, Span
from simulation.standalone import standalone
from simulation.storage import InterceptedTable
from simulation.world import MIDNIGHT, Looking, Shown, World
from vumi.engine import VIEWS_MAX_RECEIVES, VIEWS_QUEUE
from vumi.operate.check.check import check_content
from vumi.operate.check.items import FindingKind
from vumi.storage.database import FILE, Database
from vumi.storage.limits import FileBans
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.storage.upkeep import Pruning
from vumi.workers.deliveries import ChangeDelivery, deliver_messages
from vumi.workers.events import MILESTONES_QUEUE
from vumi.workers.expiry import remove_expired
from vumi.workers.views import CommitBuffer, ViewWorker

Result = TypeVar("Result")

RETENTION_SECONDS = 3_600
JUMPS = (0.1, 1, 5, 30, 60, 300, 700, 3_600, -1, -60, -700, -90_000, 90_000)


@dataclass(frozen=True)
class MachineScenario:
    """The faults of a history: the share of commits that fail, and the jumps of the clock.

    A badge with `hot` live views is hot. `start` is the time at which the history begins. The share
    `removals` of the owners' requests removes hours. With `prunes`, the operator prunes badges.
    """

    ids: tuple[str, ...] = ("a", LONG_ID)
    faults: float = 0.03
    hot: int = 1_000
    start: Seconds = MIDNIGHT - 300
    removals: float = 0.1
    prunes: bool = False
    jumps: tuple[Seconds, ...] = JUMPS


class FaultyDatabase(Database):
    """A file of which any transaction may fail or end the process."""

    world: MachineWorld | None = None
    before_write: Callable[[], None] | None = None

    def write(
        self, job: Callable[[sqlite3.Connection], Result], *, savepoint: bool = True
    ) -> Result:
        before, self.before_write = self.before_write, None
        if before and self.world:
            before()
            if self.world.database is not self:
                raise Crash
        write = partial(super().write, job, savepoint=savepoint)
        return write() if self.world is None else self.world.call(write)


class Paused(InterceptedTable):
    """The `Table` of an owner's request; other operations run before each of its calls."""

    def __init__(self, world: MachineWorld) -> None:
        self._world = world

    @property
    def engine(self) -> Table:
        return self._world.engine

    def read(self, _: str, operation: Callable[[], Result]) -> Result:
        self._world.scheduler.pause()
        return operation()

    def write(self, *writes: Write) -> None:
        self._world.scheduler.pause()
        removal = self._world.find_removal(writes)
        try:
            self.engine.write(*writes)
        except Crash:
            self._world.restart()
            raise
        finally:
            for write in filter(self._world.is_done, writes):
                self._world.note_life(write)
            if removal and all(self._world.is_done(write) for write in writes[:1]):
                self._world.ledger.removals[removal[0]].append(removal[1])

    def put_all(self, items: Sequence[Item]) -> None:
        self.engine.put_all(items)


class MachineWorld(World):
    """The state of one machine, and the steps that change it."""

    engine: SqliteTable

    def __init__(self, seed: int, scenario: MachineScenario, folder: Path) -> None:
        self._latest = scenario.start
        super().__init__(seed, scenario.start, 0.0, scenario.ids, has_owners=True)
        self.scenario, self.faults = scenario, 0.0
        self.owners.removals = scenario.removals
        self.settings = Settings(retention_seconds=RETENTION_SECONDS, hot_views=scenario.hot)
        self._path = folder / FILE
        self._looking: Looking | None = None
        self._views: dict[str, View] = {}
        self._versions: dict[str, int] = {}
        self._room = Room.ALL
        self._open()
        self.table = Paused(self)

    @property
    def moment(self) -> Moment:
        self._latest = max(self._latest, self.now)
        return Moment(self._latest, self.calls)

    def clock(self) -> Seconds:
        return self.resources.view_clock()

    def _open(self) -> None:
        """Open the file as a new process does."""
        self.database = FaultyDatabase(self._path)
        self.engine = SqliteTable(self.database)
        wall = lambda: self.now  # noqa: E731  the clock of the machine
        self.queue = SqliteQueue(self.database, VIEWS_QUEUE, wall, max_receives=VIEWS_MAX_RECEIVES)
        self.queue.release()
        view_queue = NotingViewQueue(self.queue)
        view_queue.world = self
        self.deliveries = SqliteQueue(self.database, MILESTONES_QUEUE, wall)
        self.bans = FileBans(self.database, self.engine)
        self.resources = replace(
            standalone(self.database, view_queue, wall, self.settings, lambda: self._room),
            bans=self.bans,
            webhooks=EventSchedule(lambda: self.deliveries, wall),
        )
        self.views = ViewWorker(view_queue, self.resources)
        in_one_commit = self.database.in_one_commit
        self.put = partial(deliver_messages, self.queue, self.views.store_messages, in_one_commit)
        self.fold = ChangeDelivery(
            self.database,
            "fold_views",
            self.views.fold,
            sort=keys.WINDOW,
            in_one_commit=in_one_commit,
        )
        self.archive = ChangeDelivery(self.database, "archive_entries", lambda _: (), sort="TX#")
        self.expire = partial(remove_expired, self.database, self.queue, wall, lambda: None)
        self.database.world = self
        self.faults = self.scenario.faults

    def close(self) -> None:
        """Close the file, and assert that a check finds nothing wrong with it."""
        self.faults = 0.0
        self.database.close()
        findings = check_content(self._path.parent)
        assert [str(one) for one in findings if one.kind is FindingKind.WRONG] == []

    def restart(self) -> None:
        """Restart as after `kill -9`, which loses everything that was not committed."""
        self.faults = 0.0
        self.database.close()
        self._open()

    def is_done(self, write: Write) -> bool:
        """Return whether a write has ended the life of an id, because its answer may be lost."""
        if not isinstance(write, Update):
            return False
        found = self.engine.get(write.key) or {}
        if "reset" in write.values:
            return found.get("reset") == write.values["reset"]
        if "today" in write.values:
            return all(found.get(name) == value for name, value in write.values.items())
        is_detached = "alias" in write.remove and "alias" not in found
        return is_detached and found.get("version") == write.values["version"]

    def note_sent(self, view: View) -> None:
        """Record that a request has sent the message of its view."""
        assert self._looking
        self.asked_for(self._looking, view.ulid, view.badge_id)
        self._views[view.ulid] = view

    # steps

    def visitors_come(self) -> None:
        """Let visitors share a commit that stores their views; if it fails, each gets their own."""
        names = [self.any_ids() for _ in range(self.random.choice([1, 1, 2, 5]))]
        self._versions = self._read_versions()
        requests = [(self.look(asked), self.any_request(asked)) for asked in names]

        def ask() -> list[list[Shown | str]]:
            self.bans.refresh()
            return self.views.commit(lambda: [self._ask(*request) for request in requests])

        answers = self._try(lambda: self.database.in_one_commit(ask))
        if answers is None:
            self._end([looking for looking, _ in requests])
            for asked in names:
                self._visitor_comes(asked)
            return
        self._end([looking for looking, _ in requests])
        for (looking, _), own in zip(requests, answers, strict=True):
            self.check_answers(looking, own)

    def _visitor_comes(self, asked: Sequence[str]) -> None:
        self._versions = self._read_versions()
        looking, request = self.look(asked), self.any_request(asked)
        answers = self._try(lambda: self._ask(looking, request))
        self._end([looking])
        if answers is not None:
            self.check_answers(looking, answers)

    def _ask(self, looking: Looking, request: Callable[[], list[Shown | str]]) -> list[Shown | str]:
        self._looking = looking
        return request()

    def _end(self, requests: Sequence[Looking]) -> None:
        """End requests, and record their views as taken if the file has them in any form.

        It has all views of a request or none.
        """
        for looking in requests:
            looking.span.ended = self.moment
            stored = {self._has(self._views[ulid]) for ulid in looking.own.values()}
            assert len(stored) <= 1, f"of {looking.asked}, some views are stored"
            if stored == {False}:
                looking.own = {}
        for looking in requests:
            for ulid in looking.own.values():
                self.take(looking, ulid, self._views[ulid].badge_id)

    def _has(self, view: View) -> bool:
        if self.engine.get(keys.view(view.badge_id, view.ulid)):
            self.ledger.stored.add(view.ulid)
            return True
        if self.engine.get(keys.seen(view.ulid)):
            return True
        partition = keys.partition(view.badge_id)
        if self._read_versions().get(partition) != self._versions.get(partition):
            return True  # the commit was done, which counts views without a marker
        rows = self.database.read(
            "SELECT 1 FROM messages WHERE instr(body, ?) LIMIT 1", (view.ulid,)
        )
        return bool(rows)

    def _read_versions(self) -> dict[str, int]:
        """Return the versions of all summaries, by partition."""
        version = "json_extract(attributes, '$.version')"
        return dict(self.database.read(f"SELECT pk, {version} FROM items WHERE sk = 'VIEWS'"))  # noqa: S608  a fixed text

    def _try(self, do: Callable[[], Result]) -> Result | None:
        """Run a function that may fail or end the process."""
        try:
            return do()
        except Crash:
            self.restart()
        except StorageError:
            assert self.faults, "nothing may fail without a fault"
        return None

    def a_loop_steps(self) -> None:
        steps: list[Callable[[], float]] = [
            self.put,
            self.put,
            self.expire,
            self.fold.step,
            self.archive.step,
        ]
        self._try(self.random.choice(steps))

    def the_clock_is_set(self) -> None:
        self.now += self.random.choice(self.scenario.jumps)

    def a_malformed_message_comes(self) -> None:
        self._try(lambda: self.queue.send(self.random.choice(MALFORMED_BODIES)))

    def the_disk_fills_or_empties(self) -> None:
        self._room = self.random.choice((Room.COUNTS, Room.ALL))

    def badges_are_pruned(self) -> None:
        """Prune as `vumi prune` does; visitors come before its transaction begins."""
        if not self.scenario.prunes:
            return
        since = self.clock() - self.random.choice([3_600, 86_400])
        below = self.random.choice([4, 20, 1_000])
        pruning = Pruning(self.database, self.queue, since, below)
        owned = [badge_id for badge_id in self.badges() if self.engine.get(keys.owner(badge_id))]
        before = {one: self.engine.get(keys.summary(one)) for one in self.badges()}
        self.calls += 1
        request = Span(self.moment)
        self.database.before_write = self.visitors_come
        self._try(lambda: list(pruning.prune(lambda: 0.0, lambda _: None)))
        request.ended = self.moment
        self.calls += 1
        for badge_id, item in before.items():
            if item and not self.engine.get(keys.summary(badge_id)):
                assert badge_id not in owned, "pruned, but owned"
                self._check_pruned(badge_id, item, pruning)
                self.ledger.end_life(badge_id, LifeEnd(request))

    def _check_pruned(self, badge_id: str, item: Item, pruning: Pruning) -> None:
        """Check that a badge that begins again had to be pruned, and had all its views counted."""
        summary, since = Summary.of(badge_id, item), to_milliseconds(pruning.since)
        least, _ = self.ledger.bounds(badge_id)
        counted = summary.count + self.ledger.removed(badge_id)
        assert counted >= least, f"pruned: {least} views, of which {counted} are counted"
        assert {summary.frozen, summary.deleted} == {False, ""}, f"pruned: {summary}"
        assert summary.base + summary.count < pruning.below, f"pruned: {summary}"
        assert number(item, "created") < pruning.since, f"pruned: {item}"
        of_life = partial(self.ledger.bounds, badge_id)
        viewed = [one for one in self.ledger.views[badge_id] if of_life(among={one})[0]]
        times = [summary.watermark, *map(milliseconds, viewed)]
        assert max(times) < since, "pruned, but viewed"

    def dead_letters_are_sent_again(self) -> None:
        self._try(self.queue.redrive)

    def rest(self) -> None:
        """End all operations, handle every message, and fold every badge."""
        self.scenario = replace(self.scenario, faults=0.0)
        self.restart()
        while self.scheduler.under_way:
            self.scheduler.go_on(self.scheduler.under_way[-1], self.now)
        self.now = max(self.moment.seconds, self.clock())
        while self.database.read("SELECT 1 FROM messages WHERE body LIKE '%first%hot%'"):
            self.now += 60
            self.queue.redrive()
            self.put()
        self.now += 2 * self.windows.grace + self.windows.window
        for _ in range(3):
            while self.expire() == 0:
                pass
            while self.fold.step() == 0:
                pass

    def check(self) -> None:
        super().check()
        for badge_id in self.badges():
            assert badge_count.read(self.engine, badge_id).live == 0, (
                f"{badge_id[:9]} is not folded"
            )
        self.close()

    goes_on = 0.3
    happenings: ClassVar = {
        visitors_come: 30,
        a_loop_steps: 40,
        the_clock_is_set: 12,
        restart: 1,
        a_malformed_message_comes: 1,
        dead_letters_are_sent_again: 1,
        the_disk_fills_or_empties: 1,
        badges_are_pruned: 3,
        World.an_owner_asks: 4,
    }


class NotingViewQueue(CommitBuffer):
    """A queue of views that reports each sent view to the world."""

    world: MachineWorld

    def send(self, *views: View) -> None:
        for view in views:
            self.world.note_sent(view)
        super().send(*views)
