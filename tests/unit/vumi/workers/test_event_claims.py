"""The claim of a delivery holds with any clock, and ends with its commit or its process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from chalicelib.events.consumers import DeliveryTask
from chalicelib.events.delivery import EventDelivery
from chalicelib.events.event import LEASE_SECONDS, DeliveryResult, Status, message
from chalicelib.storage.errors import UnavailableError
from tests.unit.vumi.workers.test_events import FAST, World, attempted, begin_to_hang, world
from vumi.workers.events import ProcessClaims

__all__ = ["world"]


@pytest.mark.parametrize("jump", [-3_600.0, 61.0, 120.0, 3_600.0])
def test_a_running_delivery_is_neither_cancelled_nor_repeated_with_any_clock(
    world: World, jump: float
) -> None:
    """A message of it is received, such as the one that is visible again after 90 s."""
    worker = world.worker(2)
    begin_to_hang(world, worker)
    world.now += jump
    assert not world.cancel()
    world.delivery_queue.send(message("e"))
    worker.step()
    assert world.tries("e") == 1
    world.slow.is_open.set()
    world.succeeds(worker)
    assert world.slow.taken == ['"x"']


def test_a_message_of_a_running_delivery_waits(world: World) -> None:
    """If the outcome of the delivery can't be written, this message leads to the next one."""
    worker = world.worker(2)
    begin_to_hang(world, worker)
    world.now += 120.0
    worker.step()
    assert world.delivery_queue.receive(9) == []
    assert world.delivery_queue.seconds_until_visible(0.0, 999.0) == LEASE_SECONDS


def test_an_event_can_not_be_cancelled_before_the_outcome_is_written(world: World) -> None:
    world.accept("e", FAST)
    worker = attempted(world)
    world.now += 3_600.0
    whole, answers = world.map_parallel, []

    def map_parallel(function: Callable[[Any], Any], parts: Iterable[Any], /) -> Iterable[Any]:
        answers.append(world.cancel())
        return whole(function, parts)

    world.map_parallel = map_parallel
    worker.step()
    assert answers == [False]
    assert world.status("e") is Status.SUCCESS


def test_a_claim_that_is_repeated_in_a_commit_is_delivered(world: World) -> None:
    """A common commit may be undone, and its functions are then called again."""
    whole = world.map_parallel

    def map_parallel(function: Callable[[Any], Any], parts: Iterable[Any], /) -> Iterable[Any]:
        def twice(part: Any) -> Any:
            with pytest.raises(UnavailableError):
                whole(undone, [part])
            return function(part)

        def undone(part: Any) -> None:
            function(part)
            raise UnavailableError("the commit is undone")

        return whole(twice if function is DeliveryTask.claim else function, parts)

    world.map_parallel = map_parallel
    world.accept("e", FAST)
    world.succeeds(world.worker(1))
    assert world.tries("e") == 1


@pytest.mark.parametrize("then", ["a jump of the clock", "a new process", "its cancel"])
def test_a_claim_holds_with_any_clock_until_its_process_ends(world: World, then: str) -> None:
    queue, claims = world.delivery_queue, ProcessClaims()
    killed = EventDelivery(world.table, queue, lambda _: DeliveryResult(), claims, world.clock, ())
    world.accept("e", FAST)
    claimed = killed.claim("e")
    assert claimed is not None
    if then == "a jump of the clock":
        world.now += 3_600.0
        assert killed.attempt(claimed) is not None
    elif then == "a new process":
        world.succeeds(world.worker(1))
        assert world.tries("e") == 2
    else:
        assert world.cancel()
