"""A message on its way: its event is claimed, attempted, and how that ended is written.

Apart from the handler, for the API's cold start does not pay for what fires events.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from chalicelib import telemetry
from chalicelib.events.delivery import Attempted, Firing
from chalicelib.events.event import Event, MalformedError, named_in
from chalicelib.events.targets import Deliverer
from chalicelib.resources import Resources
from chalicelib.storage.errors import StorageError

Result = TypeVar("Result")


def firing_with(use: Resources) -> Firing:
    """What fires events over the storage of a process."""
    return Firing(
        table=use.table,
        queue=use.timers_queue,
        deliver=Deliverer(use.event_queue, lambda: use.sender),
        claims=use.claims,
        clock=use.clock,
        schedule=use.settings.retry_seconds,
    )


class Work:
    """A message and the event it is about.

    A step that fails is logged and holds up no other message; this one is not done with then. A
    step may be taken twice, where the transaction that it was part of failed.
    """

    __slots__ = ("_attempted", "_body", "_event", "_firing", "is_done", "message_id")

    def __init__(self, firing: Firing, record: Mapping[str, Any]) -> None:
        self.message_id: str = record["messageId"]
        self.is_done = True
        self._firing = firing
        self._body = record.get("body")
        self._event: Event | None = None
        self._attempted: Attempted | None = None

    @property
    def is_claimed(self) -> bool:
        """Whether there is an event to attempt."""
        return self._event is not None

    def claim(self) -> None:
        """Make the event this worker's, if its time has come."""
        self.release()
        self._event = self._taken(lambda: self._firing.claim(named_in(self._body)))

    def attempt(self) -> None:
        """Deliver the event if it was claimed."""
        if event := self._event:
            self._attempted = self._taken(lambda: self._firing.attempt(event))

    def settle(self) -> None:
        """Write how the attempt ended, if there was one."""
        if attempted := self._attempted:
            self._taken(lambda: self._firing.settle(attempted))

    def release(self) -> None:
        """Let go of the event if it was claimed: no further step comes."""
        if event := self._event:
            self._firing.release(event)

    def fire(self) -> None:
        """Attempt, settle and release."""
        self.attempt()
        self.settle()
        self.release()

    def _taken(self, step: Callable[[], Result]) -> Result | None:
        self.is_done = False
        try:
            result = step()
        except MalformedError:
            telemetry.event(logging.ERROR, "a malformed message", message_id=self.message_id)
            telemetry.count(malformed=1)
        except StorageError as error:
            telemetry.event(logging.WARNING, "an event has to wait", reason=str(error))
        except Exception:  # noqa: BLE001  its message comes again; its neighbours are fired
            telemetry.event(logging.ERROR, "an event failed to fire", message_id=self.message_id)
        else:
            self.is_done = True
            return result
        return None
