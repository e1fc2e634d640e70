"""The bans in the file, which hold from the next request after one was set or lifted."""

from __future__ import annotations

from chalicelib.counting.bans import read_patterns
from chalicelib.counting.ids import Patterns
from chalicelib.storage.ports import Table
from vumi.storage.database import Database


class FileBans:
    """The `limits.Bans` of one machine, in memory.

    Each common commit begins with `refresh`, which asks SQLite whether another process has changed
    the file since. A change of this process calls `forget`, and is read in the next commit.
    """

    def __init__(self, database: Database, table: Table) -> None:
        self._database, self._table = database, table
        self._patterns = Patterns()
        self._version: int | None = None

    def cover(self, badge_id: str) -> bool:
        """Return whether an id is banned."""
        return self._patterns.cover(badge_id)

    def forget(self) -> None:
        """Read the bans again in the next commit."""
        self._version = None

    def refresh(self) -> None:
        """Read the bans again, in the current commit, if they may have changed."""
        [(version,)] = self._database.read("PRAGMA data_version")
        if version != self._version:
            self._patterns, self._version = read_patterns(self._table), version
