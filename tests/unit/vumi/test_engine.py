"""The engine of one machine: the loops that it runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chalicelib.events.event import message
from chalicelib.settings import Settings
from chalicelib.storage.ports import Message
from simulation.views import put_summary
from tests import event_loop
from vumi.engine import Engine
from vumi.resources import MayWait
from vumi.workers.events import DELIVERY_QUEUE, MILESTONES_QUEUE

DEFAULT = Settings()
OF_VIEWS = {"put_views", "fold_views", "expiry", "archive_entries", "file_size", "vacuum"}
OF_EVENTS = {"distribute_events", "deliver_events", "sweep_events"}


@contextmanager
def prepared(folder: Path, settings: Settings = DEFAULT, max_badges: int = 0) -> Iterator[Engine]:
    engine = Engine(folder, settings, max_badges=max_badges)
    try:
        engine.prepare()
        yield engine
    finally:
        engine.stop()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (DEFAULT, OF_VIEWS | OF_EVENTS),
        (Settings(events=False), OF_VIEWS),
        (Settings(wallets=False), OF_VIEWS | OF_EVENTS),
    ],
)
def test_events_that_are_switched_off_are_not_delivered_but_journals_are_archived(
    tmp_path: Path, settings: Settings, expected: set[str]
) -> None:
    """TTL removes entries of journals in any case, and the archive must get them."""
    with prepared(tmp_path, settings) as engine:
        before = {thread.name for thread in threading.enumerate()}
        engine.start()
        started = {thread.name for thread in threading.enumerate()} - before
    assert started & (OF_VIEWS | OF_EVENTS) == expected


def test_the_badges_of_a_file_count_for_the_most_badges(tmp_path: Path) -> None:
    with prepared(tmp_path) as engine:
        put_summary(engine.table)
    with prepared(tmp_path, max_badges=9) as engine:
        assert engine.limits_left() == {"badges": 8}
        engine.start()
        assert "count_badges" in {thread.name for thread in threading.enumerate()}


def test_a_message_of_a_milestone_is_queued_apart(tmp_path: Path) -> None:
    """The sweep sends it to the queue of all deliveries."""
    bodies = [message("milestone-1"), message("milestone-2"), message("b")]
    with prepared(tmp_path) as engine:
        engine.resources.delivery_queue.send(bodies[0])
        engine.resources.delivery_queue.send_all([Message(one) for one in bodies[1:]])
        found = engine.database.read("SELECT queue, body FROM messages ORDER BY id")
    queues = [MILESTONES_QUEUE, MILESTONES_QUEUE, DELIVERY_QUEUE]
    assert found == list(zip(queues, bodies, strict=True))


def test_no_request_waits_for_the_network_on_the_event_loop(tmp_path: Path) -> None:
    async def on_event_loop() -> None:
        with pytest.raises(MayWait):
            _ = engine.resources.resolver
        with pytest.raises(MayWait):
            _ = engine.resources.fetcher
        await asyncio.to_thread(lambda: engine.resources.fetcher)

    with prepared(tmp_path) as engine:
        event_loop.run(on_event_loop())
