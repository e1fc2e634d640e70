"""The guard of the space on the disk, which stops what makes the file grow before it is full."""

from __future__ import annotations

import logging
from collections.abc import Callable

from chalicelib import telemetry
from chalicelib.limits import Room
from chalicelib.units import Seconds

READ_SECONDS = 1.0


class DiskSpace:
    """The room on a disk with `free` bytes: new ids need `least` bytes, views half of them."""

    def __init__(
        self, free: Callable[[], int], least: int, monotonic: Callable[[], Seconds]
    ) -> None:
        self._free, self._least, self._monotonic = free, max(1, least), monotonic
        self._room, self._next_read = Room.ALL, monotonic()

    def __call__(self) -> Room:
        """Return the room, which is read once a second. Log its changes."""
        if (now := self._monotonic()) >= self._next_read:
            self._next_read, free = now + READ_SECONDS, self._free()
            before, self._room = self._room, Room(min(2 * free // self._least, Room.ALL))
            if self._room is not before:
                room = self._room.name.lower()
                telemetry.event(logging.WARNING, "disk_room_changed", room=room, free_bytes=free)
        return self._room
