"""The bans of a table, as a function on AWS keeps them; `test_ids.py` has the patterns."""

from __future__ import annotations

import logging

import pytest

from chalicelib.counting import bans
from chalicelib.counting.bans import MAX_BANS, READ_SECONDS, RETRY_SECONDS, Ban, TimedBans
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.ports import Table
from simulation.clocks import NOON, Clock
from simulation.logs import logged_events
from simulation.memory_table import MemoryTable
from simulation.tables import FaultyTable


def ban(table: Table, pattern: str) -> None:
    bans.put(table, Ban(pattern, "spam", "a test", 0))


class Reads:
    """A table that counts its reads, and may fail."""

    def __init__(self, table: Table) -> None:
        self.number, self.fails = 0, False
        self.table = FaultyTable(table, before_read=self._read)

    def _read(self, _: str) -> None:
        self.number += 1
        if self.fails:
            raise UnavailableError("no answer")


def test_a_function_reads_the_bans_once_a_minute() -> None:
    memory, clock = MemoryTable(), Clock(NOON)
    reads = Reads(memory)
    kept = TimedBans(lambda: reads.table, clock)
    assert not kept.cover("a/b")
    ban(memory, "a/*")
    for _ in range(5):
        assert not kept.cover("a/b")
    assert reads.number == 1
    clock.now += READ_SECONDS
    assert [kept.cover(one) for one in ("a/b", "b")] == [True, False]
    assert reads.number == 2
    assert bans.lift(memory, "a/*")
    assert kept.cover("a/b")
    kept.forget()
    assert not kept.cover("a/b")


def test_bans_hold_while_they_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    """And they are read again soon."""
    memory, clock = MemoryTable(), Clock(NOON)
    reads = Reads(memory)
    kept = TimedBans(lambda: reads.table, clock)
    ban(memory, "a")
    assert kept.cover("a")
    clock.now, reads.fails = clock.now + READ_SECONDS, True
    with caplog.at_level(logging.WARNING):
        assert [kept.cover(one) for one in ("a", "b")] == [True, False]
    assert [name for _, name, _ in logged_events(caplog)] == ["bans_not_read"]
    clock.now, reads.fails = clock.now + RETRY_SECONDS, False
    assert bans.lift(memory, "a")
    assert not kept.cover("a")


def test_a_table_takes_a_thousand_bans_and_replaces_those_that_it_has() -> None:
    table = MemoryTable()
    table.put_all([Ban(f"{place}", "", "", 0).item for place in range(MAX_BANS)])
    ban(table, "7")
    assert [one.reason for one in bans.read_all(table) if one.pattern == "7"] == ["spam"]
    with pytest.raises(bans.TooManyBansError):
        ban(table, "new")
    assert bans.lift(table, "7")
    assert not bans.lift(table, "7")
    ban(table, "new")
