"""One machine as bad as it gets: killed at any moment, its clock set at will, its disk full.

The real engine without its threads: the steps of its loops, one at a time, on a real file. A
killed process is one whose file is opened anew.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from app import app
from chalicelib import resources
from chalicelib.settings import Settings
from chalicelib.views.fold import fold_views
from chalicelib.views.owner import Change
from chalicelib.views.put import put_views
from chalicelib.views.view import MalformedError, View, earliest
from local.checking import check_content
from local.database import FILE, Database
from local.delivery import DeliveryAtOnce, Expiry, MessageDelivery, StreamDelivery
from local.engine import VIEWS_QUEUE, LocalResources
from local.findings import Kind
from local.queue import SqliteQueue
from local.table import SqliteTable
from tests import events
from tests.laws.faults import Crash, Fault, Faults
from tests.laws.ledger import Ledger
from tests.laws.owning import OTHER_NAME, OWNED, Owner

Result = TypeVar("Result")

BADGES = ["a", "ü/b"]
SETTINGS = Settings(view_window_seconds=1, redelivery_seconds=1)


class FaultyDatabase(Database):
    """A file of which any transaction may fail, or be the last thing the process does."""

    faults: Faults | None = None

    @property
    def in_commit(self) -> bool:
        """Whether a transaction is under way: nobody else writes until it is over."""
        return getattr(self._local, "inside", None) is not None

    def write(
        self, job: Callable[[sqlite3.Connection], Result], *, in_one_statement: bool = False
    ) -> Result:
        write = partial(super().write, job, in_one_statement=in_one_statement)
        return write() if self.faults is None else self.faults.call(write)


class MachineWorld:
    """The state of one machine, and what can happen to it."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_800_000_000.0
        self.ledger = Ledger()
        self.faults = Faults()
        self.owner = Owner()
        self._path = folder / FILE
        self._last_seen = 0
        self._sent: set[str] = set()
        self.start()

    def start(self) -> None:
        """Open the file as a new process does."""
        self.database = FaultyDatabase(self._path)
        self.table = SqliteTable(self.database)
        self.queue = SqliteQueue(self.database, VIEWS_QUEUE, lambda: self.now, max_receives=3)
        self.queue.release()
        clock = lambda: self.now  # noqa: E731  the clock of the machine, whoever sets it
        self.at_once = DeliveryAtOnce(self.queue, put_views, clock)
        self.put = MessageDelivery(self.queue, put_views, clock)
        self.fold = StreamDelivery(self.database, "fold_views", fold_views)
        self.removals = Expiry(self.database, VIEWS_QUEUE, clock, lambda: None)
        self.database.faults = self.faults
        resources.use(LocalResources(SETTINGS, clock, self.database.each, self.table, self.queue))

    def close(self) -> None:
        """Whatever happened, `python -m local check` finds nothing wrong with the file."""
        self.database.close()
        findings = check_content(self._path.parent)
        assert [str(one) for one in findings if one.kind is Kind.WRONG] == []

    def restart(self) -> None:
        """As after `kill -9`: whatever was not committed is gone."""
        self.faults.plan([])
        self.close()
        self.start()

    def get(self, badge_id: str, *, peek: bool, faults: Sequence[Fault] = ()) -> None:
        self._take_stock()
        look = self.ledger.look(badge_id)
        with self._under(faults):
            body = _asked(badge_id, peek=peek)
            self._take_stock()
            if Fault.MEANWHILE not in faults:
                look.check(body)
            if look.undisturbed:
                taken = look.answered(body, peek=peek)
                if not faults:
                    assert not body.get("isError")
                    assert len(self.ledger.taken[look.badge_id]) == look.taken + taken
        self._take_stock()

    def get_together(self, names: Sequence[str], faults: Sequence[Fault] = ()) -> None:
        """Visitors whose requests share a commit, and the storing of their views with it.

        Where it fails, each is answered alone.
        """
        self._take_stock()
        looks = [self.ledger.look(name) for name in names]
        bodies: list[dict[str, Any]] = []
        with self._under(faults):
            ask = partial(self.at_once, lambda: [_asked(name, peek=False) for name in names])
            bodies = self.database.in_one_commit(ask)
        self._take_stock()
        if not bodies:
            for name in names:
                self.get(name, peek=False)
            return
        answers = list(zip(looks, bodies, strict=True))
        for look, body in answers:
            look.check(body)
        taken = Counter(look.badge_id for look, _ in answers if not look.owned.frozen)
        for look, body in answers:
            assert len(self.ledger.taken[look.badge_id]) == look.taken + taken[look.badge_id]
            if not look.owned.frozen:
                self.ledger.acknowledged[look.badge_id] += 1
            if not faults:
                counted = int(body["message"]) - look.owned.base
                stored = counted + (not look.owned.frozen)
                self.ledger.put_done(look.badge_id, stored, look.owned.reset)

    def malformed(self, body: str) -> None:
        """Something that is no view lies in the queue."""
        self.queue.send(body)

    def step(self, faults: Sequence[Fault], *loops: Callable[[], float]) -> None:
        """Some of the loops take a step."""
        with self._under(faults):
            for loop in loops:
                loop()
        if not faults:
            self._note_puts()

    def set_clock(self, seconds: float) -> None:
        """Forwards or backwards."""
        self.now += seconds

    def claim(self) -> None:
        """Somebody claims a badge of his own, if nobody has."""
        self.owner.claim(self.table, self.now)
        self.note_change()

    def change(self, wanted: Change, faults: Sequence[Fault] = ()) -> None:
        """The owner changes it."""
        if wanted.reset and self._behind():
            return
        with self._under(faults):
            self.owner.change(self.table, wanted, self.now)
        self.note_change()

    def delete(self, faults: Sequence[Fault] = ()) -> None:
        """The owner deletes it."""
        if self._behind():
            return
        with self._under(faults):
            self.owner.delete(self.table, self.now)
        self.note_change()

    def _behind(self) -> bool:
        """Whether the clock was set back behind views taken: no reset can part them from others."""
        self._take_stock()
        next_reset = max(int(self.now * 1000), self.ledger.owned[OWNED].reset) + 1
        taken = self.ledger.taken[OWNED] | self.ledger.taken[OTHER_NAME]
        return max(taken, default="") >= earliest(next_reset)

    def note_change(self) -> None:
        """The ledger hears what the owner has done, be it under way still."""
        self._take_stock()
        self.owner.tell(self.ledger, self.table)

    def _take_stock(self) -> None:
        """Every view in the file, in whatever form; only what is folded is known by count alone.

        What is in no commit yet may never be in the file.
        """
        if self.database.in_commit:
            return
        sent = self._rows("SELECT id, body FROM messages WHERE id > ?", (self._last_seen,))
        for self._last_seen, body in sent:
            with suppress(MalformedError):
                view = View.from_message(body)
                self.ledger.take(view.badge_id, view.ulid)
        for pk, sk in self._rows("SELECT pk, sk FROM items WHERE sk LIKE 'VIEW#%'"):
            self.ledger.take(pk.removeprefix("USER#"), sk.removeprefix("VIEW#"))
        counted = "SELECT attributes ->> 'badge', sk FROM items WHERE sk LIKE 'SEEN#%'"
        for badge_id, sk in self._rows(counted):
            self.ledger.take(badge_id, sk.removeprefix("SEEN#"))

    def _note_puts(self) -> None:
        """What is stored and no message any more was put; its view counts from now on too."""
        waiting = {body for (body,) in self._rows("SELECT body FROM messages")}
        for body in self._sent - waiting:
            view = View.from_message(body)
            self.ledger.put_done(view.badge_id, view.shown + 1, view.reset)
        self._sent = {body for body in waiting if "shown" in body}

    def _rows(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self.database.read(sql, arguments)

    def end(self) -> None:
        """All is quiet: every message handled, every view expired, every removal folded."""
        while True:
            self.restart()
            self.queue.redrive()
            self.put.step()
            waiting = [body for (body,) in self._rows("SELECT body FROM messages")]
            if not any("shown" in body for body in waiting):
                break
        self.set_clock(10**6)
        while self.removals.step() == 0:
            pass
        while self.fold.step() == 0:
            pass
        self._take_stock()
        self.ledger.check_quiet(self.table)

    @contextmanager
    def _under(self, faults: Sequence[Fault]) -> Iterator[None]:
        self.faults.plan(faults)
        try:
            yield
        except Crash:
            self.restart()
        except Exception:  # noqa: BLE001  a loop logs it and goes on
            assert faults, "nothing may fail without a fault"
        self.faults.plan([])


def _asked(badge_id: str, *, peek: bool) -> dict[str, Any]:
    query = {"id": [badge_id], **({"peek": ["1"]} if peek else {})}
    body: dict[str, Any] = json.loads(app(events.http_event(query), None)["body"])
    return body
