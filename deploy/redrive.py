"""The redrive: the dead letters of views are sent again.

A view that was counted before is not counted again: its item, or its marker if it was counted at
once, is in the table for RETENTION_SECONDS, which is longer than SQS keeps a message. But SQS
counts the age of a message from when it was sent, so a letter that was redriven before may be
older. A letter stays if its view may have left the table before the letter is delivered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from chalicelib.storage.messages import MalformedError
from chalicelib.storage.ports import Message, Queue
from chalicelib.views.view import View

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import MessageTypeDef

DELIVERY_SECONDS = 86_400
"""A letter that is sent again is delivered within this time."""
INVISIBLE_SECONDS = 600
"""A letter that stays is not received again for this time, so that the run comes to its end."""
LISTEN_SECONDS = 5
BATCH_MESSAGES = 10
"""Messages in one request (SQS API reference)."""


class Outcome(Enum):
    """What became of a dead letter; the value says so to the operator."""

    SENT = "dead letters are on their way again"
    TOO_OLD = "stay, because they are too old: their views may have been counted"
    MALFORMED = "stay, because they are not views"


@dataclass(frozen=True, slots=True)
class Redrive:
    """Sends dead letters to a queue; `clock` and `retention` are in seconds."""

    client: SQSClient
    dead_letters_url: str
    queue: Queue
    clock: Callable[[], float]
    retention: int

    def run(self) -> Counter[Outcome]:
        """Redrive every dead letter; return how many became what.

        Raises `StorageError`. If the run is interrupted, run it again: a letter that was sent and
        not deleted is sent twice, and its view counts once.
        """
        outcomes: Counter[Outcome] = Counter()
        stayed: set[str] = set()
        while letters := self._receive():
            sorted_out = {letter["MessageId"]: self._outcome(letter) for letter in letters}
            self._send([one for one in letters if sorted_out[one["MessageId"]] is Outcome.SENT])
            outcomes.update(what for one, what in sorted_out.items() if one not in stayed)
            stayed |= {one for one, what in sorted_out.items() if what is not Outcome.SENT}
        return outcomes

    def _receive(self) -> list[MessageTypeDef]:
        return self.client.receive_message(
            QueueUrl=self.dead_letters_url,
            MaxNumberOfMessages=BATCH_MESSAGES,
            VisibilityTimeout=INVISIBLE_SECONDS,
            WaitTimeSeconds=LISTEN_SECONDS,
        ).get("Messages", [])

    def _outcome(self, letter: MessageTypeDef) -> Outcome:
        try:
            taken_at = View.from_message(letter.get("Body")).milliseconds / 1000
        except MalformedError:
            return Outcome.MALFORMED
        too_old = self.clock() + DELIVERY_SECONDS > taken_at + self.retention
        return Outcome.TOO_OLD if too_old else Outcome.SENT

    def _send(self, letters: list[MessageTypeDef]) -> None:
        """Send letters to the queue, then delete them from the dead letters."""
        self.queue.send_all([Message(letter["Body"]) for letter in letters])
        for letter in letters:
            self.client.delete_message(
                QueueUrl=self.dead_letters_url, ReceiptHandle=letter["ReceiptHandle"]
            )
