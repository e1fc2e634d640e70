"""The behaviour that every `ports.Archive` shares."""

from __future__ import annotations

import pytest

from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.ports import MAX_OBJECT_NAME
from tests.conformance.conftest import ArchiveUnderTest

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
