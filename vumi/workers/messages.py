"""The delivery of messages, as SQS does it between a queue and a Lambda function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from chalicelib.units import Seconds
from vumi.storage.commits import InOneCommit
from vumi.storage.queue import Message, SqliteQueue

HandleMessages: TypeAlias = Callable[[Mapping[int, str]], Collection[int]]
"""A function that handles bodies by the ids of messages, and returns the ids to deliver again."""

BATCH_MESSAGES = 100
"""Messages in a batch, as many as `put_views` gets on AWS."""
LINGER_SECONDS = 0.05
"""The time that a message may wait for others to share its batch."""
IDLE_SECONDS = 5.0
"""The longest rest of a loop, because another program may send a message and wake no loop."""


class MessageDelivery:
    """The delivery of a queue's messages to a handler, which deletes those that are handled.

    The writes of the handler and the deletion are one commit. So a handled message is never
    delivered again.
    """

    def __init__(
        self,
        queue: SqliteQueue,
        handle: HandleMessages,
        clock: Callable[[], Seconds],
        in_one_commit: InOneCommit,
    ) -> None:
        self._queue = queue
        self._handle = handle
        self._clock = clock
        self._in_one_commit = in_one_commit

    def step(self) -> Seconds:
        """Deliver one batch; return the time that may pass until the next.

        A failed message is delivered again after its visibility timeout.
        """
        messages = self._queue.receive(BATCH_MESSAGES)
        if messages:
            self._in_one_commit(partial(self._deliver, messages))
        if len(messages) == BATCH_MESSAGES:
            return 0.0
        return seconds_until_visible(self._queue, self._clock, LINGER_SECONDS)

    def _deliver(self, messages: Sequence[Message]) -> None:
        failed = self._handle({message.id: message.body for message in messages})
        self._queue.delete(message for message in messages if message.id not in failed)


def seconds_until_visible(
    queue: SqliteQueue, clock: Callable[[], Seconds], least: Seconds
) -> Seconds:
    """Return the time that may pass until a queue has a message to deliver."""
    visible = queue.next_visible()
    if visible is None:
        return IDLE_SECONDS
    return min(IDLE_SECONDS, max(least, visible - clock()))
