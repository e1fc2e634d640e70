"""The guard of the space on the disk."""

from __future__ import annotations

import logging

import pytest

from chalicelib.limits import Room
from simulation.clocks import Clock
from simulation.logs import logged_events
from vumi.storage.disk_space import DiskSpace

LEAST = 1_000


def test_new_ids_need_the_space_and_views_half_of_it() -> None:
    clock, free = Clock(0.0), [0]
    space = DiskSpace(lambda: free[0], LEAST, clock)
    rooms = {}
    for free[0] in (5_000, 1_000, 999, 500, 499, 0):
        clock.now += 1
        rooms[free[0]] = space()
    assert rooms == {
        **dict.fromkeys((5_000, 1_000), Room.ALL),
        **dict.fromkeys((999, 500), Room.VIEWS),
        **dict.fromkeys((499, 0), Room.COUNTS),
    }


def test_the_space_is_read_once_a_second_and_its_changes_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, reads, free = Clock(0.0), list[float](), [600]

    def read() -> int:
        reads.append(clock.now)
        return free[0]

    space = DiskSpace(read, LEAST, clock)
    for clock.now in (0.0, 0.5, 0.9, 1.0):
        assert space() is Room.VIEWS
    free[0] = 1_000
    clock.now = 2.0
    assert space() is Room.ALL
    assert reads == [0.0, 1.0, 2.0]
    assert logged_events(caplog) == [
        (logging.WARNING, "disk_room_changed", {"room": "views", "free_bytes": 600}),
        (logging.WARNING, "disk_room_changed", {"room": "all", "free_bytes": 1_000}),
    ]


def test_without_a_least_space_there_is_always_room() -> None:
    assert DiskSpace(lambda: 1, 0, Clock(0.0))() is Room.ALL
