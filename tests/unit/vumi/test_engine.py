"""The engine of one machine: the loops that it runs."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from chalicelib.events.event import message
from chalicelib.settings import Settings
from tests import event_loop
from vumi.engine import Engine
from vumi.resources import MayWait
from vumi.workers.events import MILESTONES_QUEUE

OF_VIEWS = {"put_views", "fold_views", "expiry", "archive_entries"}
OF_EVENTS = {"distribute_timers", "fire_timers", "sweep_timers"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(), OF_VIEWS | OF_EVENTS),
        (Settings(events=False), OF_VIEWS),
        (Settings(wallets=False), OF_VIEWS | OF_EVENTS),
    ],
)
def test_events_that_are_switched_off_are_not_delivered_but_journals_are_archived(
    tmp_path: Path, settings: Settings, expected: set[str]
) -> None:
    """TTL removes entries of journals in any case, and the archive must get them."""
    engine = Engine(tmp_path, settings)
    try:
        engine.prepare()
        before = {thread.name for thread in threading.enumerate()}
        engine.start()
        started = {thread.name for thread in threading.enumerate()} - before
    finally:
        engine.stop()
    assert started & (OF_VIEWS | OF_EVENTS) == expected


def test_a_message_of_a_milestone_is_queued_apart(tmp_path: Path) -> None:
    """The sweep sends it to the queue of all deliveries."""
    engine = Engine(tmp_path, Settings())
    try:
        engine.prepare()
        engine.resources.delivery_queue.send(message("milestone-1"))
        assert engine.read("SELECT queue FROM messages") == [(MILESTONES_QUEUE,)]
    finally:
        engine.stop()


def test_no_request_waits_for_the_network_on_the_event_loop(tmp_path: Path) -> None:
    engine = Engine(tmp_path, Settings())

    async def on_event_loop() -> None:
        with pytest.raises(MayWait):
            _ = engine.resources.resolver
        with pytest.raises(MayWait):
            _ = engine.resources.fetcher
        await asyncio.to_thread(lambda: engine.resources.fetcher)

    try:
        engine.prepare()
        event_loop.run(on_event_loop())
    finally:
        engine.stop()
