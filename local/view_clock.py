"""The clock of views on one machine: the machine's own, but it never goes back.

The file keeps the latest time by which a badge was folded. So a clock that was a day ahead and is
set right makes folds wait for a day, and no view is ever put before a watermark.
"""

from __future__ import annotations

from collections.abc import Callable

from local.database import Database


class ViewClock:
    """Returns seconds since 1970, never less than it or an earlier process has folded by."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        [(highest,)] = database.read("SELECT highest FROM clock")
        self._highest = float(highest)

    def __call__(self) -> float:
        self._highest = max(self._highest, self._clock())
        return self._highest

    def keep(self) -> None:
        """Write the time into the file, in the commit under way if there is one.

        It is written after what was done by it, so that no time that was used is later.
        """
        now = self()
        self._database.write(
            lambda connection: connection.execute(
                "UPDATE clock SET highest = max(highest, ?)", (now,)
            ),
            in_one_statement=True,
        )
