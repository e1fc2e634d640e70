"""The redrive of views on AWS, which sends dead letters again.

A view that was counted before is not counted again: its item, or its marker if it was counted at
once, is in the table for RETENTION_SECONDS, which is longer than SQS keeps a message. But a letter
that was redriven before may be older, because sending it again starts its age at 0. A letter stays
if its view may have left the table before the letter is delivered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chalicelib.counting.view import View
from chalicelib.storage.messages import MalformedError
from chalicelib.storage.ports import Message, Queue
from vumi.operate.admin.installation import LetterOutcome

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import MessageTypeDef

DELIVERY_SECONDS = 86_400
"""A letter that is sent again is delivered within this time."""
INVISIBLE_SECONDS = 600
"""A letter that stays is not received again for this time, so that the run ends."""
LISTEN_SECONDS = 5
BATCH_MESSAGES = 10
"""Messages in one request (SQS API reference)."""


@dataclass(frozen=True, slots=True)
class Redrive:
    """The redrive of one dead-letter queue; `clock` and `retention` are in seconds."""

    client: SQSClient
    dead_letters_url: str
    queue: Queue
    clock: Callable[[], float]
    retention: int

    def run(self) -> Counter[LetterOutcome]:
        """Redrive every dead letter; return the number of letters by outcome.

        Raises `StorageError`. If the run is interrupted, run it again: a letter that was sent and
        not deleted is sent twice, and its view counts once.
        """
        outcomes: Counter[LetterOutcome] = Counter()
        stayed: set[str] = set()
        while letters := self._receive():
            by_id = {letter["MessageId"]: self._judge(letter) for letter in letters}
            self._send(
                [letter for letter in letters if by_id[letter["MessageId"]] is LetterOutcome.SENT]
            )
            outcomes.update(outcome for key, outcome in by_id.items() if key not in stayed)
            stayed |= {key for key, outcome in by_id.items() if outcome is not LetterOutcome.SENT}
        return outcomes

    def _receive(self) -> list[MessageTypeDef]:
        return self.client.receive_message(
            QueueUrl=self.dead_letters_url,
            MaxNumberOfMessages=BATCH_MESSAGES,
            VisibilityTimeout=INVISIBLE_SECONDS,
            WaitTimeSeconds=LISTEN_SECONDS,
        ).get("Messages", [])

    def _judge(self, letter: MessageTypeDef) -> LetterOutcome:
        try:
            taken_at = View.from_message(letter.get("Body")).milliseconds / 1000
        except MalformedError:
            return LetterOutcome.MALFORMED
        too_old = self.clock() + DELIVERY_SECONDS > taken_at + self.retention
        return LetterOutcome.TOO_OLD if too_old else LetterOutcome.SENT

    def _send(self, letters: list[MessageTypeDef]) -> None:
        """Send letters to the queue, then delete them from the dead letters."""
        self.queue.send_all([Message(letter["Body"]) for letter in letters])
        for letter in letters:
            self.client.delete_message(
                QueueUrl=self.dead_letters_url, ReceiptHandle=letter["ReceiptHandle"]
            )
