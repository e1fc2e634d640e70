"""Queues in memory, which can fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chalicelib.storage.errors import StorageError
from chalicelib.storage.ports import Message
from chalicelib.units import Seconds


@dataclass
class FakeQueue:
    """A queue that keeps its messages; it raises `failure` instead, or `after` keeping them."""

    failure: StorageError | None = None
    after: bool = False
    bodies: list[str] = field(default_factory=list)

    def send(self, body: str, *, delay: Seconds = 0.0) -> None:
        self.send_all([Message(body, delay)])

    def send_all(self, messages: Sequence[Message]) -> None:
        if self.failure is None or self.after:
            self.bodies += [
                one.body + (f" after {one.delay} s" if one.delay else "") for one in messages
            ]
        if self.failure is not None:
            raise self.failure
