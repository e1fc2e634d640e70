"""The redrive: dead letters whose views are certainly not counted become views, no other does.

A dead letter's view may have been stored by one of its ten deliveries, and by now be removed and
folded: stored again, it would count twice. So each is held against the table first.

    the view is in the table                       counted already: nothing to do
    it was taken within REDELIVERY_SECONDS         too young to have been removed: never stored
    the badge's floor is not above what it showed  a put raises the floor first: never stored
    (of the same count: none that began anew since, or moved under another name)
    else                                           may have been counted: kept, unless told
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from chalicelib.ports import ConditionFailed, Item, Put, Table, attribute, number
from chalicelib.views import keys, storing
from chalicelib.views.storing import Lifetime
from chalicelib.views.view import MalformedError, View, taken_at

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import MessageTypeDef

MARGIN_SECONDS = 60
"""For clocks that differ, and for the time that storing takes."""
INVISIBLE_SECONDS = 120
"""What is kept is not received again at once by the same run."""
LISTEN_SECONDS = 5
MESSAGES_AT_ONCE = 10
"""The most that SQS gives at once."""


class Outcome(Enum):
    """What became of a dead letter; the value says so to the operator."""

    STORED = "stored: never counted before"
    COUNTED = "deleted: their views are in the table"
    UNPROVEN = "kept: their views may have been counted"
    MALFORMED = "kept: they are no views"
    FORCED = "stored as told: they may have been counted before"
    DROPPED = "deleted as told: they may have been counted"


KEPT = frozenset({Outcome.UNPROVEN, Outcome.MALFORMED})
ON_UNPROVEN = {"keep": Outcome.UNPROVEN, "count": Outcome.FORCED, "drop": Outcome.DROPPED}
"""What an operator can have done with views that may have been counted."""


@dataclass(frozen=True, slots=True)
class Redrive:
    """Where dead letters come from and go to."""

    client: SQSClient
    dead_letters_url: str
    table: Table
    lifetime: Lifetime
    on_unproven: Outcome = Outcome.UNPROVEN
    first_read: dict[str, Item] = field(default_factory=dict)

    def run(self, clock: Callable[[], float]) -> Counter[Outcome]:
        """Settle every dead letter once; raises `StorageError`, and then the rest is still there.

        A run that dies leaves its last ten invisible for two minutes, and nothing half-done.
        """
        outcomes: Counter[Outcome] = Counter()
        for message in self._received():
            outcome = self.settle(message.get("Body"), clock())
            if outcome not in KEPT:
                self.client.delete_message(
                    QueueUrl=self.dead_letters_url, ReceiptHandle=message["ReceiptHandle"]
                )
            outcomes[outcome] += 1
        return outcomes

    def _received(self) -> Iterator[MessageTypeDef]:
        """Each once: a run may take longer than what it keeps stays invisible."""
        met: set[str] = set()
        while messages := self.client.receive_message(
            QueueUrl=self.dead_letters_url,
            MaxNumberOfMessages=MESSAGES_AT_ONCE,
            VisibilityTimeout=INVISIBLE_SECONDS,
            WaitTimeSeconds=LISTEN_SECONDS,
        ).get("Messages", []):
            yield from (message for message in messages if message["MessageId"] not in met)
            met.update(message["MessageId"] for message in messages)

    def settle(self, body: object, now: float) -> Outcome:
        """Decide about one dead letter, and store its view where that is right."""
        try:
            view = View.from_message(body)
        except MalformedError:
            return Outcome.MALFORMED
        if self._is_there(view, now):
            return Outcome.COUNTED
        outcome = Outcome.STORED if self._was_never_stored(view, now) else self.on_unproven
        if outcome in {Outcome.STORED, Outcome.FORCED}:
            self._store(view, now)
        return outcome

    def _store(self, view: View, now: float) -> None:
        for failure in storing.store([view], self.table, self.lifetime, now, map).values():
            raise failure

    def _is_there(self, view: View, now: float) -> bool:
        """Whether the table has the view; it then keeps it as if just put."""
        item = storing.to_item(view, view.badge_id, self.lifetime.ttl(now))
        try:
            self.table.write(Put(item, condition=attribute("SK").exists()))
        except ConditionFailed:
            return False
        return True

    def _was_never_stored(self, view: View, now: float) -> bool:
        age = now - taken_at(view.ulid).timestamp()
        if age < self.lifetime.redelivery - MARGIN_SECONDS:
            return True
        badge = self._as_first_read(view.badge_id)
        same_count = number(badge, "reset") == view.reset and "alias" not in badge
        return same_count and number(badge, "floor") <= view.shown

    def _as_first_read(self, badge_id: str) -> Item:
        """The badge before this run stored anything of it, which raises its floor.

        After an outage the dead letters of a badge have all seen one count; the first would take
        the proof from the others. Nobody else stores a view whose message is here.
        """
        if badge_id not in self.first_read:
            self.first_read[badge_id] = self.table.get(keys.user(badge_id)) or {}
        return self.first_read[badge_id]
