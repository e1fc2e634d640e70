"""The guard: its sweeps are short steps, and go on after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from tests import event_loop
from vumi.server.connections import Connections, Limits
from vumi.server.guard import PAUSE_SECONDS, SLICE, SWEEP_SECONDS, Guard
from vumi.server.sockets import Accepted, Peer

ADDRESS = ("192.0.2.9", 80)


class ClosedAccepted(Accepted):
    """A connection that notes its end."""

    def close(self) -> None:
        closed.append(self.peer)


closed: list[Peer] = []


@dataclass
class Process:
    """A process with `descriptors`, the last ones of which are connections; a look may fail."""

    descriptors: int = 1
    connections: int = 1
    failures: int = 0
    looks: int = 0
    slept: list[float] = field(default_factory=list)

    def accepted(self, addresses: Sequence[Peer]) -> Iterator[Accepted | None]:
        assert addresses == [ADDRESS]
        self.looks += 1
        if self.looks <= self.failures:
            raise MemoryError
        yield from [None] * (self.descriptors - self.connections)
        for place in range(self.connections):
            yield ClosedAccepted(("192.0.2.1", 1_024 + place), 5)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.slept.count(SWEEP_SECONDS) == 2:
            raise asyncio.CancelledError

    def guard(self, limits: Limits) -> Guard:
        closed.clear()
        return Guard(Connections(limits), [ADDRESS], self.accepted, self.sleep)


def run(process: Process, limits: Limits) -> None:
    with pytest.raises(asyncio.CancelledError):
        event_loop.run(process.guard(limits).run())


def test_it_closes_connections_sweep_by_sweep() -> None:
    process = Process()
    run(process, Limits(share=0))
    assert closed == [("192.0.2.1", 1_024)] * 2
    assert process.slept == [SWEEP_SECONDS] * 2


def test_a_look_at_many_descriptors_pauses_for_requests() -> None:
    process = Process(descriptors=2 * SLICE + 1)
    event_loop.run(process.guard(Limits(share=0)).sweep())
    assert process.slept == [PAUSE_SECONDS] * 2
    assert len(closed) == 1


def test_closing_many_connections_pauses_for_requests() -> None:
    many = 2 * SLICE + 1
    process = Process(descriptors=many, connections=many)
    event_loop.run(process.guard(Limits(share=0)).sweep())
    assert process.slept == [PAUSE_SECONDS] * 4
    assert len(set(closed)) == many


def test_it_goes_on_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    run(Process(failures=1), Limits(share=0))
    assert len(closed) == 1
    assert "loop_failed" in caplog.text
