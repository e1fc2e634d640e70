"""The queue between the request that takes a view and the consumer that stores it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from chalicelib.counting.view import View
    from chalicelib.storage.ports import Queue


class ViewQueue(Protocol):
    """A queue that carries views to `store_views`, each at least once."""

    def send(self, view: View) -> None:
        """Enqueue a view. Raises `StorageError`; the view may be in the queue nevertheless."""


@dataclass(frozen=True, slots=True)
class ViewMessages:
    """A `ViewQueue` that sends each view as a message of a queue."""

    queue: Queue

    def send(self, view: View) -> None:
        self.queue.send(view.to_message())
