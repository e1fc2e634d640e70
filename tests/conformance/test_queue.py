"""The behaviour that every `ports.Queue` shares."""

from __future__ import annotations

import pytest

from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.ports import Message
from tests.conformance.conftest import QueueUnderTest


def test_each_message_is_delivered_unchanged_and_not_again_immediately(
    queue: QueueUnderTest,
) -> None:
    bodies = ["plain", '{"id": "a\\"b"}', "ünïcödé 🦆", "line\nbreak", "equal", "equal"]
    for body in bodies:
        queue.queue.send(body)
    assert sorted(queue.take_all()) == sorted(bodies)
    assert queue.take_all() == []


def test_a_delayed_message_is_not_delivered_immediately(queue: QueueUnderTest) -> None:
    queue.queue.send("later", delay=900)
    queue.queue.send("now")
    assert queue.take_all() == ["now"]


@pytest.mark.parametrize("delay", [-1, 901])
def test_a_delay_beyond_the_limits_is_refused(queue: QueueUnderTest, delay: int) -> None:
    with pytest.raises(StorageRefusedError, match=f"0 to 900 seconds, not {delay}"):
        queue.queue.send("body", delay=delay)
    assert queue.take_all() == []


@pytest.mark.parametrize("amount", [0, 1, 25])
def test_all_of_several_messages_are_delivered(queue: QueueUnderTest, amount: int) -> None:
    bodies = [f"body {place}" for place in range(amount)]
    queue.queue.send_all([Message(body) for body in bodies])
    assert sorted(queue.take_all()) == sorted(bodies)


def test_each_of_several_messages_has_its_own_delay(queue: QueueUnderTest) -> None:
    queue.queue.send_all([Message("later", 0.2), Message("now"), Message("much later", 900)])
    assert queue.take_all() == ["now"]


def test_if_one_of_several_messages_is_refused_none_is_sent(queue: QueueUnderTest) -> None:
    with pytest.raises(StorageRefusedError, match=r"0 to 900 seconds, not 900.5"):
        queue.queue.send_all([Message("good"), Message("bad", 900.5)])
    assert queue.take_all() == []


def test_large_messages_are_sent_in_batches_within_the_limit(queue: QueueUnderTest) -> None:
    bodies = [str(place) * 100_000 for place in range(6)]
    queue.queue.send_all([Message(body) for body in bodies])
    assert sorted(queue.take_all()) == sorted(bodies)
