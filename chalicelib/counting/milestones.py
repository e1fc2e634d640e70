"""The milestones of a badge: numbers whose passing sends a webhook to a URL of its owner.

The item `MILESTONES` has all milestones of a badge, and its summary has the lowest number that is
not reached yet. So a count reads nothing more unless it reaches that number. Then one transaction
writes the count, marks the milestones, and creates their events. Every write of the milestones also
writes the summary, so the summary's `version` makes each milestone reached once in a life:

    version   4 ─────────────────────▶ 5
    first     reads 4, reaches 1,000, writes on 4: done, with the event
    second    reads 4, reaches 1,000, writes on 4: fails, reads 5, which is past 1,000

The milestones belong to the owner who set them: another owner neither sees nor sends them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from chalicelib.counting import keys
from chalicelib.counting.summary import Summary
from chalicelib.outgoing.webhooks import Webhook, WebhookSchedule
from chalicelib.storage.items import Value, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put, Write
from chalicelib.units import Milliseconds, Seconds, to_iso8601, to_milliseconds

EVENT = "milestone-"
"""The beginning of the ids of events of milestones."""
TYPE = "badge.milestone"
"""The type of the webhook, in its body (Standard Webhooks, "Payload structure")."""
ID_CHARACTERS = 32
MAX_MILESTONES = 5
"""The maximum number of milestones of a badge."""
MAX_SENT_A_DAY = 20
"""The maximum number of webhooks that a badge sends in a day, however its milestones change."""
DAY: Milliseconds = 86_400_000
MAX_WRITES = MAX_MILESTONES + 1
"""Writes that milestones add to a transaction: their events, and their item."""


class Reached(NamedTuple):
    """The milestones that a write of a summary reaches.

    `next` is the number that the summary gets as its next milestone, None if it stays. `writes`
    belong into the transaction of the summary; `events` are those of them to enqueue after it.
    """

    next: int | None = None
    writes: tuple[Write, ...] = ()
    events: tuple[Put, ...] = ()

    @property
    def values(self) -> Mapping[str, Value]:
        """Return the attributes of the summary that change."""
        return {} if self.next is None else {"milestone": self.next}


NOTHING = Reached()


@dataclass(frozen=True, slots=True)
class Milestone:
    """A number, the URL that is called when the badge reaches it, and when that was, or 0.

    `set_at` is the time at which it was set.
    """

    count: int
    url: str
    reached: Milliseconds = 0
    set_at: Milliseconds = 0

    def to_json(self) -> dict[str, Any]:
        """Return the milestone as its owner sees it."""
        reached = to_iso8601(self.reached) if self.reached else None
        return {"count": self.count, "url": self.url, "reached": reached}


class MilestoneContext(NamedTuple):
    """The moment at which a badge reaches milestones, with the number that it shows.

    `life` is the `reset` of the badge's present life, and `name` its present name.
    """

    name: str
    life: Milliseconds
    shown: int
    at: Milliseconds


@dataclass(frozen=True, slots=True)
class Milestones:
    """All milestones of a badge, the digest of the owner who set them, and the latest `set_at`.

    `sent` has the counts that were sent within a day, each with its time, because the owner may
    begin a new life, or set them again, at any time.
    """

    badge_id: str
    owner: str = ""
    milestones: tuple[Milestone, ...] = ()
    set_at: Milliseconds = 0
    sent: Mapping[str, Milliseconds] = field(default_factory=dict)

    @classmethod
    def of(cls, badge_id: str, item: Mapping[str, Value]) -> Milestones:
        """Decode milestones from an item; an empty item has none.

        Raises `TypeError` if an attribute has another type.
        """
        given = item.get("milestones", [])
        if not isinstance(given, list):
            raise TypeError(f"milestones is {given!r}, expected a list")
        decoded = tuple(map(_decode, given))
        sent = item.get("sent", {})
        if not isinstance(sent, dict):
            raise TypeError(f"sent is {sent!r}, expected a map")
        times = {count: number(sent, count) for count in sent}
        return cls(badge_id, text(item, "owner"), decoded, number(item, "set_at"), times)

    @property
    def next(self) -> int:
        """Return the lowest number that is not reached yet, or 0."""
        return min((one.count for one in self.milestones if not one.reached), default=0)

    @property
    def put(self) -> Put:
        item = keys.milestones(self.badge_id).item(
            owner=self.owner,
            milestones=[asdict(one) for one in self.milestones],
            set_at=self.set_at,
            sent={**self.sent},
        )
        return Put(item)

    def rearm(self) -> Milestones:
        """Return the milestones of a new life, of which none is reached."""
        return replace(self, milestones=tuple(replace(one, reached=0) for one in self.milestones))

    def set(self, wanted: Iterable[Milestone], at: Milliseconds) -> Milestones:
        """Return other milestones; one with the same number keeps its times.

        No two calls set at the same time, because the clock of views may stand still.
        """
        at = max(at, self.set_at + 1)
        known = {one.count: one for one in self.milestones}
        chosen = (
            replace(known.get(one.count, replace(one, set_at=at)), url=one.url) for one in wanted
        )
        return replace(self, milestones=tuple(chosen), set_at=at)

    def reach(self, table: Table, passage: MilestoneContext, webhooks: WebhookSchedule) -> Reached:
        """Return the writes that mark the milestones that a badge reaches, and send them.

        One that was sent within a day is only marked. An event that an import has brought is left
        as it is. Raises `StorageError`.
        """
        unreached = (one for one in self.milestones if not one.reached)
        passed = [one for one in unreached if one.count <= passage.shown]
        marked = [
            replace(one, reached=passage.at) if one in passed else one for one in self.milestones
        ]
        recent = {count: at for count, at in self.sent.items() if passage.at < at + DAY}
        unsent = [one for one in passed if str(one.count) not in recent]
        unsent = unsent[: MAX_SENT_A_DAY - len(recent)]
        sent = recent | {str(one.count): passage.at for one in unsent}
        after = replace(self, milestones=tuple(marked), sent=sent)
        puts = [webhooks.put(self._webhook(one, passage)) for one in unsent]
        events = tuple(put for put in puts if table.get(put.key) is None)
        return Reached(after.next, (after.put, *events), events)

    def _webhook(self, milestone: Milestone, passage: MilestoneContext) -> Webhook:
        webhook_id = event_id(self.badge_id, milestone.count, passage.life, milestone.set_at)
        data = {"id": passage.name, "milestone": milestone.count, "count": passage.shown}
        body = {"type": TYPE, "timestamp": to_iso8601(passage.at), "data": data}
        return Webhook(webhook_id, milestone.url, json.dumps(body))


def event_id(badge_id: str, count: int, life: Milliseconds, set_at: Milliseconds) -> str:
    """Return the id of the event of a milestone that was set at a time, in a life of its badge."""
    identity = f"{badge_id}\n{count}\n{life}\n{set_at}"
    return EVENT + hashlib.sha256(identity.encode()).hexdigest()[:ID_CHARACTERS]


def read(table: Table, badge_id: str, owner: str) -> Milestones:
    """Read the milestones that the owner with a digest has set. Raises `StorageError`."""
    found = Milestones.of(badge_id, table.get(keys.milestones(badge_id)) or {})
    return found if found.owner == owner else replace(found, owner=owner, milestones=())


def reach(
    table: Table, summary: Summary, views: int, now: Seconds, webhooks: WebhookSchedule | None
) -> Reached:
    """Return the milestones that a badge reaches with more views. Raises `StorageError`.

    Without `webhooks`, they are left to the next write that has them. Other badges cost nothing.
    """
    shown = summary.base + summary.count + views
    if webhooks is None or not views or not 0 < summary.milestone <= shown:
        return NOTHING
    owner = table.get(keys.owner(summary.badge_id)) or {}
    names = owner.get("names")
    name = str(names[-1]) if isinstance(names, list) and names else summary.badge_id
    found = read(table, summary.badge_id, text(owner, "digest"))
    if not found.milestones:
        return NOTHING
    passage = MilestoneContext(name, summary.reset, shown, to_milliseconds(now))
    return found.reach(table, passage, webhooks)


def enqueue(reached: Reached, webhooks: WebhookSchedule | None) -> None:
    """Enqueue the events of milestones after they were written."""
    if webhooks is not None and reached.events:
        webhooks.enqueue(reached.events)


def _decode(given: Value) -> Milestone:
    if not isinstance(given, dict):
        raise TypeError(f"a milestone is {given!r}, expected a map")
    times = number(given, "reached"), number(given, "set_at")
    return Milestone(number(given, "count"), text(given, "url"), *times)
