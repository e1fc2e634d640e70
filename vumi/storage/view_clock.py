"""The clock of views on one machine: the machine's clock, but it never goes back.

The file keeps the latest time at which a view was taken or a badge was folded, here or where it
was imported from. So if a clock was a day ahead and is corrected, folds wait for a day, and no view
is lost: no view is stored before a watermark, and no reset is earlier than a view before it.
"""

from __future__ import annotations

from collections.abc import Callable

from chalicelib.counting.view import ulid_in
from chalicelib.ulids import milliseconds
from chalicelib.units import Seconds
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue


class ViewClock:
    """The clock, never earlier than the latest time in the file.

    `queue` has the views that were taken and are not stored yet.
    """

    def __init__(
        self, database: Database, queue: SqliteQueue, clock: Callable[[], Seconds]
    ) -> None:
        self._database = database
        self._clock = clock
        [(highest,)] = database.read("SELECT highest FROM clock")
        waiting = filter(None, map(ulid_in, queue.bodies()))
        self._highest = max([float(highest), *(milliseconds(ulid) / 1000 for ulid in waiting)])

    def __call__(self) -> Seconds:
        self._highest = max(self._highest, self._clock())
        return self._highest

    def keep(self, at: Seconds = 0.0) -> Seconds:
        """Write the time to the file, in the current commit if there is one, and return it.

        Neither a time that the commit has used, nor `at`, nor what another process kept is later.
        """
        [(self._highest,)] = self._database.write(
            lambda connection: connection.execute(
                "UPDATE clock SET highest = max(highest, ?) RETURNING highest", (max(self(), at),)
            ).fetchall(),
            savepoint=False,
        )
        return self._highest
