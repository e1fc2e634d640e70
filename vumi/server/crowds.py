"""The crowds: requests of many clients for the same, which is a new id or one hot badge.

Each client of a crowd may be light, and all of them together use the server up. So a crowd has its
turns like one client, and is heavy like one (`request_queue`).

To what crowd a request belongs is known after its badge was read. If the crowd is heavy then, the
request leaves its turn, and is answered again in a turn of its crowd.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chalicelib.resources import Action, Limits
from chalicelib.units import Seconds
from vumi.resources import is_on_event_loop

MARK = "\n"
"""The beginning of the names of crowds, which no client's name has."""
NEW_IDS = f"{MARK}new ids"


class DeferredError(BaseException):
    """A request came to what a heavy crowd does, and must wait for a turn of the crowd.

    A route comes to it before its first write.
    """


class Crowds:
    """The crowd of the request that has its turn on the thread of the event loop.

    `must_wait` tells whether a request of a crowd must wait for a turn of that.
    """

    def __init__(self) -> None:
        self.current = ""
        self.is_again = False
        self.must_wait: Callable[[str], bool] = lambda _: False

    def begin(self, *, is_again: bool) -> None:
        """Begin the turn of a request, or its second one, after it has waited for its crowd."""
        self.current, self.is_again = "", is_again

    def join(self, crowd: str) -> None:
        """Note the crowd of the current request. Raises `DeferredError`."""
        if is_on_event_loop():
            self.current = crowd
            if self.must_wait(crowd):
                raise DeferredError

    def join_hot(self, badge_id: str) -> None:
        """Note that the current request views a hot badge. Raises `DeferredError`."""
        self.join(MARK + badge_id)


class CrowdLimits:
    """The `limits`, before which a request for a new id joins the crowd of new ids.

    A request is counted once, in its first turn.
    """

    def __init__(self, limits: Limits, crowds: Crowds) -> None:
        self._limits, self._crowds = limits, crowds

    def wait(self, action: Action, client: str) -> Seconds:
        if action is Action.NEW_ID:
            self._crowds.join(NEW_IDS)
        if action is Action.REQUEST and self._crowds.is_again and is_on_event_loop():
            return 0.0
        return self._limits.wait(action, client)

    def left(self) -> Mapping[str, int]:
        return self._limits.left()
