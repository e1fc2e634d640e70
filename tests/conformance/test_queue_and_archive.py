"""The behaviour that every `ports.Queue` and every `ports.Archive` shares."""

from __future__ import annotations

import pytest

from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.ports import MAX_OBJECT_NAME, Message
from tests.conformance.conftest import ArchiveUnderTest, QueueUnderTest


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


# ---- the archive

NAME = "journal/2026/03/14/0001-ab.jsonl.gz"


@pytest.mark.parametrize("body", [bytes(range(256)), b""])
def test_an_object_is_stored_completely(archive: ArchiveUnderTest, body: bytes) -> None:
    archive.archive.put(NAME, body)
    assert archive.read_all() == {NAME: body}


def test_a_put_replaces_only_the_object_of_that_name(archive: ArchiveUnderTest) -> None:
    archive.archive.put(NAME, b"a long one")
    archive.archive.put("journal/2026/03/15/a", b"another")
    archive.archive.put(NAME, b"short")
    assert archive.read_all() == {NAME: b"short", "journal/2026/03/15/a": b"another"}


def test_a_name_of_the_maximum_length_is_stored(archive: ArchiveUnderTest) -> None:
    name = "a/" * ((MAX_OBJECT_NAME - 2) // 2) + "bc"
    assert len(name) == MAX_OBJECT_NAME
    archive.archive.put(name, b"deep")
    assert archive.read_all() == {name: b"deep"}


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/a",
        "a/",
        "a//b",
        "..",
        "../a",
        "a/../b",
        "a/.b",
        ".part",
        "a b",
        "a\n",
        "A",
        "ä",
        "a\x00",
        "a" * (MAX_OBJECT_NAME + 1),
    ],
)
def test_a_malformed_name_is_refused(archive: ArchiveUnderTest, name: str) -> None:
    with pytest.raises(StorageRefusedError, match="is no name of an object"):
        archive.archive.put(name, b"")
    assert archive.read_all() == {}
