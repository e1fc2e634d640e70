"""Removed entries: the lines and the names of their objects in the archive."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.storage.errors import StorageError, StorageRefusedError, UnavailableError
from chalicelib.storage.items import Item, Value
from chalicelib.storage.messages import MalformedError
from chalicelib.storage.ports import check_object_name
from chalicelib.wallets import archive
from chalicelib.wallets.archive import EntryRemoval, archive_entries, archive_malformed, make_object
from chalicelib.wallets.wallet import Entry, Posting
from simulation.clocks import NOON, ulid_of
from simulation.logs import counting_metrics, logged_events
from simulation.resources import GivenResources
from simulation.storage import FakeArchive

ALICE, BOB = ulid_of(NOON, "A" * 16), ulid_of(NOON, "B" * 16)
ID = ulid_of(NOON, "C" * 16)
AT = int(NOON * 1000)
MIDNIGHT = int(datetime(2026, 3, 15, tzinfo=UTC).timestamp() * 1000)
DEPOSIT = Entry(ID, Posting("d-1", 2**63 - 1, ALICE), AT)
TRANSFER = Entry(ID, Posting("t-1", 5, BOB, ALICE), AT + 7)


def removal(
    sequence: int = 1, entry: Entry = TRANSFER, wallet: str = ALICE, removed_at: float = 0
) -> EntryRemoval:
    return EntryRemoval.of(entry.item(wallet), sequence, removed_at)


def objects(removals: Iterable[EntryRemoval]) -> list[tuple[str, bytes]]:
    return [make_object(batch) for batch in archive.batches(removals)]


@pytest.mark.parametrize(
    ("entry", "wallet", "fields"),
    [
        (DEPOSIT, ALICE, ["deposit", "9223372036854775807", "", ALICE, "d-1", "00.000Z"]),
        (TRANSFER, ALICE, ["transfer", "5", ALICE, BOB, "t-1", "00.007Z"]),
        (TRANSFER, BOB, ["transfer", "5", ALICE, BOB, "t-1", "00.007Z"]),
    ],
)
def test_a_line_has_every_field_of_an_entry(entry: Entry, wallet: str, fields: list[str]) -> None:
    line = json.loads(removal(entry=entry, wallet=wallet).line)
    assert [line.pop(name) for name in ("id", "wallet")] == [ID, wallet]
    *fields, at = fields
    named = dict(zip(("kind", "amount", "from", "to", "nonce"), fields, strict=True))
    assert line == named | {"at": f"2026-03-14T12:00:{at}"}


def item(**changed: Value | None) -> Item:
    """Return the item of an entry with these changes; None removes an attribute."""
    changing = TRANSFER.item(ALICE) | changed
    return {name: value for name, value in changing.items() if value is not None}


@pytest.mark.parametrize(
    "malformed",
    [
        {},
        item(PK=None),
        item(SK=None),
        item(SK="TX#"),
        item(to=None),
        item(amount=None),
        item(amount="5"),
        item(at=None),
        item(at=10**17),
        item(at=10**30),
        item(nonce=["x"]),
    ],
)
def test_an_item_that_is_no_entry_is_malformed(malformed: Item) -> None:
    with pytest.raises(MalformedError, match=r"^expected an entry of a journal: "):
        EntryRemoval.of(malformed, 1, 0)


def test_an_entry_is_archived_under_the_day_it_happened_on_in_utc() -> None:
    """The last millisecond of a day, and the first of the next."""
    last, first = (Entry(ID, TRANSFER.posting, at) for at in (MIDNIGHT - 1, MIDNIGHT))
    batches = archive.batches([removal(1, first), removal(2, last), removal(3, first)])
    assert [make_object(one)[0].rsplit("/", 1)[0] for one in batches] == [
        "journal/2026/03/14",
        "journal/2026/03/15",
    ]
    assert [[one.sequence for one in batch] for batch in batches] == [[2], [1, 3]]


def test_an_object_has_its_lines_and_its_name_in_the_order_of_the_stream() -> None:
    """As texts "10" sorts before "9"; as positions it does not."""
    [(name, content)] = objects([removal(10, entry(2)), removal(9, entry(1))])
    assert name.rsplit("/", 1)[1].split("-")[0] == "9".zfill(40)
    check_object_name(name)
    text = gzip.decompress(content).decode()
    assert [json.loads(line)["nonce"] for line in text.splitlines()] == ["n1", "n2"]
    assert text.endswith("}\n")
    # Bytes 4 to 7 of gzip's header are the time at which it was compressed (RFC 1952, 2.3).
    assert content[4:8] == bytes(4)


def entry(number: int) -> Entry:
    """Return the entry with this number of a day."""
    return Entry(ulid_of(NOON, f"{number:016}"), Posting(f"n{number}", 1, ALICE), AT + number)


CUTS = st.sets(st.integers(1, 9))


@given(CUTS, CUTS)
def test_no_batch_of_the_stream_replaces_another(one: set[int], other: set[int]) -> None:
    """Ten entries come in two batches: every entry is archived, and each name has one content."""
    there: dict[str, bytes] = {}
    for cuts in (one, other):
        places = [0, *sorted(cuts), 10]
        for start, end in pairwise(places):
            found = [removal(n, entry(n)) for n in range(start, end)]
            for name, content in objects(found):
                assert there.setdefault(name, content) == content
    ids = {
        json.loads(line)["id"] for body in there.values() for line in gzip.decompress(body).split()
    }
    assert ids == {entry(number).entry_id for number in range(10)}


@pytest.fixture
def kept() -> FakeArchive:
    return FakeArchive()


@pytest.fixture
def resources(kept: FakeArchive) -> GivenResources:
    return GivenResources(archive=kept, clock=lambda: NOON)


def test_malformed_records_are_archived_unchanged(
    resources: GivenResources, kept: FakeArchive
) -> None:
    records = [{"dynamodb": {"é": None}}, {}]
    archive_malformed(records, resources)
    assert kept.lines() == records
    [name] = kept.objects
    assert name.startswith("journal/malformed/")
    assert name.endswith(".jsonl.gz")
    check_object_name(name)


def of_day(sequence: int, days: int = 0, removed_at: float = 0) -> EntryRemoval:
    """Return the removal of an entry that was made some days before noon."""
    posting = Posting(f"n{sequence}", 1, BOB, ALICE)
    made = Entry(ulid_of(NOON, f"{sequence:016}"), posting, AT - days * 86_400_000)
    return removal(sequence, made, removed_at=removed_at)


def nonces(kept: FakeArchive) -> list[str]:
    return [line["nonce"] for line in kept.lines()]


@pytest.mark.parametrize(
    "failure", [UnavailableError("slow down"), StorageRefusedError("no such bucket")]
)
def test_the_entries_of_a_day_that_can_not_be_archived_are_delivered_again(
    resources: GivenResources,
    kept: FakeArchive,
    caplog: pytest.LogCaptureFixture,
    failure: StorageError,
) -> None:
    kept.failure, kept.failing = failure, "/13/"
    batch = [of_day(8), of_day(9, days=1), of_day(10, days=1), of_day(11)]
    with counting_metrics() as counted:
        assert archive_entries(batch, resources) == batch[1:3]
    assert nonces(kept) == ["n8", "n11"]
    assert counted["vu-mi"]["entries_archived"] == 2
    [(level, name, fields)] = logged_events(caplog)
    assert (level, name, fields["reason"]) == (
        logging.WARNING,
        "entries_not_archived",
        str(failure),
    )
    assert "/13/" in str(fields["object"])


def test_the_lag_of_a_batch_is_that_of_its_first_removal(resources: GivenResources) -> None:
    """Removed 90 s ago, 20 s ago, and one of unknown time: 90."""
    ages = ((1, NOON - 20), (2, NOON - 90), (3, 0.0))
    with counting_metrics() as counted:
        archive_entries([of_day(n, removed_at=at) for n, at in ages], resources)
    assert counted["vu-mi"]["archive_lag_seconds"] == 90
