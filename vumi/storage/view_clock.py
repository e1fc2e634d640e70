"""The clock of views on one machine: the machine's own, but it never goes back.

The file keeps the latest time that a view was taken or a badge was folded by. So a clock that was
a day ahead and is set right makes folds wait for a day, and loses nothing: no view is stored
before a watermark, and no reset comes before a view.
"""

from __future__ import annotations

from collections.abc import Callable

from chalicelib.views.view import milliseconds, ulid_in
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue


class ViewClock:
    """Returns seconds since 1970, never less than the file has seen.

    `queue` has the views that are taken and not stored yet.
    """

    def __init__(self, database: Database, queue: SqliteQueue, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        [(highest,)] = database.read("SELECT highest FROM clock")
        waiting = filter(None, map(ulid_in, queue.bodies()))
        self._highest = max([float(highest), *(milliseconds(ulid) / 1000 for ulid in waiting)])

    def __call__(self) -> float:
        self._highest = max(self._highest, self._clock())
        return self._highest

    def keep(self) -> float:
        """Write the time into the file, in the commit under way if there is one; return it.

        No time that was used in the commit is later.
        """
        now = self()
        self._database.write(
            lambda connection: connection.execute(
                "UPDATE clock SET highest = max(highest, ?)", (now,)
            ),
            in_one_statement=True,
        )
        return now
