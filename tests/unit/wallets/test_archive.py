"""What of a stream record is archived, as which lines, in objects of which names."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.storage.ports import check_object_name
from chalicelib.wallets import archive
from chalicelib.wallets.archive import Batch, Malformed, MalformedError, Removal
from chalicelib.wallets.wallet import Entry, Posting
from simulation import aws_events as events
from simulation.aws_events import entry_record
from simulation.clocks import NOON, ulid_of

ALICE, BOB = ulid_of(NOON, "A" * 16), ulid_of(NOON, "B" * 16)
ID = ulid_of(NOON, "C" * 16)
AT = int(NOON * 1000)
MIDNIGHT = int(datetime(2026, 3, 15, tzinfo=UTC).timestamp() * 1000)
DEPOSIT = Entry(ID, Posting("d-1", 2**63 - 1, ALICE), AT)
TRANSFER = Entry(ID, Posting("t-1", 5, BOB, ALICE), AT + 7)


def removal(sequence: int = 1, entry: Entry = TRANSFER, wallet: str = ALICE) -> Removal:
    parsed = archive.parse(entry_record(entry, wallet, sequence))
    assert parsed is not None
    return parsed


def record(**changed: Any) -> dict[str, Any]:
    return entry_record(TRANSFER, ALICE, 1) | changed


def image(**changed: Any) -> dict[str, Any]:
    """A record whose item has other attributes; None for none."""
    changing = record()
    item = changing["dynamodb"]["OldImage"] | {
        name.rstrip("_"): value for name, value in changed.items()
    }
    changing["dynamodb"]["OldImage"] = {n: value for n, value in item.items() if value is not None}
    return changing


def lines(batch: Batch) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(batch.body).decode().splitlines()]


def test_a_line_has_all_that_is_known_of_an_entry() -> None:
    assert json.loads(removal(entry=DEPOSIT).line) == {
        "id": ID,
        "wallet": ALICE,
        "kind": "deposit",
        "amount": "9223372036854775807",
        "from": "",
        "to": ALICE,
        "nonce": "d-1",
        "at": "2026-03-14T12:00:00.000Z",
    }


def test_both_wallets_of_a_transfer_have_a_line_of_their_own() -> None:
    told = {
        "id": ID,
        "kind": "transfer",
        "amount": "5",
        "from": ALICE,
        "to": BOB,
        "nonce": "t-1",
        "at": "2026-03-14T12:00:00.007Z",
    }
    for wallet in (ALICE, BOB):
        assert json.loads(removal(wallet=wallet).line) == told | {"wallet": wallet}


@pytest.mark.parametrize(
    "other",
    [
        record(eventName="INSERT"),
        record(eventName="MODIFY"),
        events.removal(1, f"WALLET#{ALICE}", "WALLET"),
        events.removal(1, f"WALLET#{ALICE}", "NONCE#1"),
        events.removal(1, "USER#a", "TX#1"),
        events.removal(1, "USER#a", f"VIEW#{ID}"),
        events.removal(1, "TIMER#a", "TIMER"),
    ],
)
def test_whatever_else_changes_is_not_archived(other: dict[str, Any]) -> None:
    assert archive.parse(other) is None


def test_an_entry_that_somebody_deleted_is_archived_too() -> None:
    """Without an identity it was a program."""
    deleted = record()
    del deleted["userIdentity"]
    assert archive.parse(deleted) == removal()
    assert archive.parse(record(userIdentity={"type": "AssumedRole"})) == removal()


def numbered(sequence: object) -> dict[str, Any]:
    changing = record()
    changing["dynamodb"]["SequenceNumber"] = sequence
    return changing


NOTHING: Any = None


@pytest.mark.parametrize(
    "malformed",
    [
        NOTHING,
        {},
        record(dynamodb={}),
        events.removal(1, f"WALLET#{ALICE}", "TX#1"),
        image(SK=None),
        image(SK={"S": "TX#"}),
        image(to=None),
        image(amount=None),
        image(amount={"S": "5"}),
        image(amount={"N": "0.5"}),
        image(at=None),
        image(at={"N": "9" * 17}),
        image(at={"N": "9" * 30}),
        image(nonce={"NULL": True}),
        image(more={"BOOL": True}),
        numbered(None),
        numbered(1),
        numbered(""),
        numbered("1" * 41),
    ],
)
def test_a_record_that_nothing_here_wrote_is_malformed(malformed: dict[str, Any]) -> None:
    with pytest.raises(MalformedError, match="no removed entry of a journal"):
        archive.parse(malformed)


@pytest.mark.parametrize("name", ["SK", "to", "amount", "at"])
def test_of_an_entry_that_lacks_something_that_is_told(name: str) -> None:
    with pytest.raises(MalformedError, match="is missing"):
        archive.parse(image(**{name: None}))


def test_an_entry_is_archived_under_the_day_it_happened_on_in_utc() -> None:
    """The last millisecond of a day, and the first of the next."""
    last, first = (Entry(ID, TRANSFER.posting, at) for at in (MIDNIGHT - 1, MIDNIGHT))
    batches = archive.batches([removal(1, first), removal(2, last), removal(3, first)])
    assert [batch.name.rsplit("/", 1)[0] for batch in batches] == [
        "journal/2026/03/14",
        "journal/2026/03/15",
    ]
    assert [[one.sequence for one in batch.removals] for batch in batches] == [["2"], ["1", "3"]]


def test_a_name_begins_with_the_position_of_the_first_entry_in_the_stream() -> None:
    """As texts "10" sorts before "9"; as positions it does not."""
    [batch] = archive.batches([removal(10), removal(9)])
    place = batch.name.rsplit("/", 1)[1].split("-")[0]
    assert place == "9".zfill(40)
    check_object_name(batch.name)


def test_the_same_entries_are_the_same_object_whatever_order_they_come_in() -> None:
    one, other = (archive.batches(map(removal, order)) for order in ((1, 2, 3), (3, 1, 2)))
    assert [(b.name, b.body) for b in one] == [(b.name, b.body) for b in other]


def entry(number: int) -> Entry:
    """The `number`th of a day."""
    return Entry(ulid_of(NOON, f"{number:016}"), Posting(f"n{number}", 1, ALICE), AT + number)


CUTS = st.sets(st.integers(1, 9))


@given(CUTS, CUTS)
def test_no_cut_of_the_stream_takes_the_place_of_another(one: set[int], other: set[int]) -> None:
    """Ten entries in two cuts: every entry is there, and one name has one content."""
    there: dict[str, bytes] = {}
    for cuts in (one, other):
        places = [0, *sorted(cuts), 10]
        for start, end in pairwise(places):
            found = [removal(n, entry(n)) for n in range(start, end)]
            for batch in archive.batches(found):
                assert there.setdefault(batch.name, batch.body) == batch.body
    ids = {
        json.loads(line)["id"] for body in there.values() for line in gzip.decompress(body).split()
    }
    assert ids == {entry(number).entry_id for number in range(10)}


def test_a_batch_is_its_lines_in_the_order_of_the_stream() -> None:
    [batch] = archive.batches([removal(2, entry(2)), removal(1, entry(1))])
    assert [line["nonce"] for line in lines(batch)] == ["n1", "n2"]
    assert gzip.decompress(batch.body).endswith(b"}\n")


def test_an_object_has_the_same_bytes_at_any_time() -> None:
    """Bytes 4 to 7 of gzip's header are the time at which it was compressed (RFC 1952, 2.3)."""
    [batch] = archive.batches([removal()])
    assert batch.body[4:8] == bytes(4)


def test_malformed_records_are_archived_as_they_came() -> None:
    records = [record(dynamodb={"é": None}), {}]
    kept = Malformed(tuple(records))
    assert [json.loads(line) for line in gzip.decompress(kept.body).splitlines()] == records
    assert kept.name.startswith("journal/malformed/")
    assert kept.name.endswith(".jsonl.gz")
    check_object_name(kept.name)


def test_malformed_records_are_the_same_object_each_time_and_others_another() -> None:
    one, other = Malformed((record(dynamodb={}),)), Malformed((record(dynamodb={"a": 1}),))
    assert (one.name, one.body) == (Malformed((record(dynamodb={}),)).name, one.body)
    assert one.name != other.name


def test_nothing_removed_is_nothing_to_archive() -> None:
    assert archive.batches([]) == []
