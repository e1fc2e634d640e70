"""The law of milestones: each is reached once in a life, and its event is in the same transaction.

A number that a badge has sent within a day is marked without an event, whatever happened to the
milestone since. A world notes every transaction that its engine has done, and checks the milestones
at rest.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random

from chalicelib.counting import keys
from chalicelib.counting.milestones import DAY, MAX_SENT_A_DAY, Milestone, Milestones, event_id
from chalicelib.counting.summary import Summary, read
from chalicelib.events import event as events
from chalicelib.storage.items import number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Delete, Put, Update, Write
from chalicelib.units import Milliseconds

URL = "https://hooks.example/"
HIGHEST = 12
"""The furthest milestone above the present count, so that histories reach most of them."""


class MilestoneLaw:
    """The events of milestones that transactions have put, and the ids of those that had none."""

    def __init__(self) -> None:
        self.put: Counter[str] = Counter()
        self.silent: set[str] = set()
        self._sent: defaultdict[str, dict[int, Milliseconds]] = defaultdict(dict)

    @staticmethod
    def choose(engine: Table, badge_id: str, random: Random) -> tuple[Milestone, ...]:
        """Return milestones above the present count; they may have been set and removed before."""
        summary = read(engine, badge_id)
        above = summary.base + summary.count + 1
        numbers = random.sample(range(above, above + HIGHEST), random.randint(1, 4))
        return tuple(Milestone(number, URL) for number in sorted(numbers))

    def note(self, engine: Table, before: Milestones, writes: Sequence[Write]) -> None:
        """Check a transaction that was done: it puts the events of what it marks, and no others."""
        put = [write for write in writes if isinstance(write, Put) and _is_event(write)]
        self.put.update(write.key.pk for write in put)
        data = [json.loads(text(write.item, "payload"))["data"] for write in put]
        after = _stored(engine, before.badge_id)
        if any(isinstance(write, Delete) and write.key == after.put.key for write in writes):
            self._sent.pop(before.badge_id, None)
        marked = {*after.milestones}
        if not _begins_life(writes, before.badge_id):
            marked -= {*before.milestones}
        reached = sorted((one for one in marked if one.reached), key=lambda one: one.count)
        summary = read(engine, before.badge_id)
        expected = [one.count for one in reached if self._is_sent(summary, one)]
        assert sorted(one["milestone"] for one in data) == expected, "marks without events"
        for one in data:
            assert one["milestone"] <= one["count"] == summary.base + summary.count

    def _is_sent(self, summary: Summary, marked: Milestone) -> bool:
        """Note that a milestone was marked; return whether its badge sends it again."""
        sent = self._sent[summary.badge_id]
        recent = [count for count, at in sent.items() if marked.reached - at < DAY]
        if marked.count in recent or len(recent) == MAX_SENT_A_DAY:
            self.silent.add(event_id(summary.badge_id, marked.count, summary.reset, marked.set_at))
            return False
        sent[marked.count] = marked.reached
        return True

    def check(self, engine: Table, badge_id: str) -> None:
        """Check a badge after its last count: what it has reached has one event."""
        owner = text(engine.get(keys.owner(badge_id)) or {}, "digest")
        milestones, summary = _stored(engine, badge_id), read(engine, badge_id)
        assert summary.milestone == milestones.next
        assert [one for one, times in self.put.items() if times > 1] == [], "an event was put twice"
        if milestones.owner != owner:
            return
        shown = summary.base + summary.count
        for one in milestones.milestones:
            assert one.reached or one.count > shown, f"{one.count} of {shown} is not reached"
            if one.reached:
                name = event_id(badge_id, one.count, summary.reset, one.set_at)
                there = engine.get(events.key(name)) or {}
                # A world that notes no transactions can't tell a milestone that was sent within a
                # day from one without an event.
                is_silent = name in self.silent or not self.put
                assert is_silent or number(there, "at"), f"{one.count} has no event"


def _begins_life(writes: Sequence[Write], badge_id: str) -> bool:
    """Return whether a transaction resets a badge: it may mark milestones with the same time."""
    updates = [write for write in writes if isinstance(write, Update)]
    return any(one.key == keys.summary(badge_id) and "reset" in one.values for one in updates)


def _stored(engine: Table, badge_id: str) -> Milestones:
    return Milestones.of(badge_id, engine.get(keys.milestones(badge_id)) or {})


def _is_event(write: Put) -> bool:
    return write.key.pk.startswith(events.PARTITION)


def before_writes(engine: Table, writes: Sequence[Write]) -> Milestones | None:
    """Return the milestones that a transaction is about to write, or None if it writes none."""
    for write in writes:
        if write.key.sk == keys.MILESTONES:
            return _stored(engine, write.key.pk.removeprefix(keys.PARTITION))
    assert not [one for one in writes if isinstance(one, Put) and _is_event(one)]
    return None
