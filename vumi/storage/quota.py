"""The most badges that one machine takes (`MAX_BADGES`), and their number, which is kept.

The badges are counted at the start, and again from time to time in a thread, because badges are
also deleted, imported and made by commands. In between, each new one adds to the number. So a
request costs nothing, and after `kill -9` the number is right again.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from chalicelib.units import Seconds

COUNT_SECONDS = 3_600.0
"""The time after which the badges are counted again."""
FULL_SECONDS = 60.0
"""The time in place of that while a new id is refused, because badges may be deleted."""
REST_FACTOR = 50.0
"""The count of many badges rests for so many times the time that it took."""


class BadgeQuota:
    """The `limits.Quota` of a file, of which `count(most)` returns the badges, up to `most`.

    `settle` calls a function when no new badge waits for its commit. `monotonic` is a clock.
    """

    def __init__(
        self,
        most: int,
        count: Callable[[int], int],
        settle: Callable[[Callable[[], int]], int],
        monotonic: Callable[[], Seconds],
    ) -> None:
        self.most, self._count, self._settle, self._monotonic = most, count, settle, monotonic
        self._lock = Lock()
        self._counted = self._added = 0
        self._next_count = monotonic()
        self.on_refusal: Callable[[], None] = lambda: None

    @property
    def badges(self) -> int:
        """Return the number of badges. It may be too high until they are counted again."""
        return self._counted + self._added

    @property
    def left(self) -> int:
        """Return how many new badges there is place for."""
        return max(0, self.most - self.badges)

    def admit(self) -> bool:
        """Add a new badge, or refuse it, which counts the badges again soon."""
        with self._lock:
            is_admitted = self.badges < self.most
            self._added += is_admitted
        if not is_admitted and self._monotonic() >= self._next_count:
            self.on_refusal()
        return is_admitted

    def step(self) -> Seconds:
        """Count the badges if that is due; return the time until it is due again.

        A badge that is added during the count may be counted twice, until the next count.
        """
        if (began := self._monotonic()) >= self._next_count:
            before = self._settle(lambda: self._added)
            counted = self._count(self.most)
            with self._lock:
                self._counted, self._added = counted, self._added - before
            ended = self._monotonic()
            self._next_count = ended + max(FULL_SECONDS, REST_FACTOR * (ended - began))
        return COUNT_SECONDS
