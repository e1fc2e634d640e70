"""The stream records of removed markers and entries, and malformed records."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.aws.stream_records import entry_removal
from chalicelib.aws.stream_records import marker_removal as parse
from chalicelib.counting.consumers import MarkerRemoval
from chalicelib.storage.messages import MalformedError
from chalicelib.wallets.archive import EntryRemoval
from chalicelib.wallets.wallet import Entry, Posting
from simulation import aws_events as events
from simulation.aws_events import entry_record, marker_record
from simulation.clocks import NOON, ulid_of

MARK = 1_773_489_600


def record(**changed: Any) -> dict[str, Any]:
    return marker_record("111", "octocat", MARK) | changed


def keyed(pk: object, sk: object) -> dict[str, Any]:
    changed = record()
    changed["dynamodb"]["Keys"] = {"PK": pk, "SK": sk}
    return changed


def numbered(sequence: object) -> dict[str, Any]:
    changed = record()
    changed["dynamodb"]["SequenceNumber"] = sequence
    return changed


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in record().items() if key != name}


def test_a_marker_that_ttl_removed_has_its_badge_and_its_mark() -> None:
    assert parse(record()) == MarkerRemoval(
        badge_id="octocat", mark=MARK, removed_at=1_767_225_600.0
    )


@pytest.mark.parametrize("badge_id", ["a#b", "WINDOW#1#x", "日本"])
def test_the_badge_is_the_whole_text_after_the_mark(badge_id: str) -> None:
    parsed = parse(marker_record(1, badge_id, MARK))
    assert parsed is not None
    assert (parsed.badge_id, parsed.mark) == (badge_id, MARK)


@pytest.mark.parametrize(
    "identity", [None, {}, events.BY_TTL | {"type": "AssumedRole"}, {"principalId": "somebody"}]
)
def test_any_service_may_remove_a_marker(identity: dict[str, str] | None) -> None:
    assert parse(record(userIdentity=identity)) == parse(record())
    assert parse(without("userIdentity")) == parse(record())


@pytest.mark.parametrize("name", ["INSERT", "MODIFY"])
def test_a_new_marker_is_no_removal(name: str) -> None:
    assert parse(record(eventName=name)) is None


@pytest.mark.parametrize(
    ("pk", "sk"),
    [
        ("USER#octocat", "VIEWS"),
        ("USER#WINDOW#1#x", "VIEWS"),
        ("SEEN#01KKP4AWD00000000000000000", "SEEN"),
        ("WINDOWS", "VIEWS"),
        ("TIMER#1", "WINDOW"),
    ],
)
def test_another_removed_item_is_no_marker(pk: str, sk: str) -> None:
    assert parse(keyed({"S": pk}, {"S": sk})) is None


def test_a_record_without_the_time_of_its_removal_has_0() -> None:
    unknown = record()
    del unknown["dynamodb"]["ApproximateCreationDateTime"]
    parsed = parse(unknown)
    assert parsed is not None
    assert parsed.removed_at == 0


@pytest.mark.parametrize(
    "malformed",
    [
        {},
        without("eventName"),
        without("dynamodb"),
        record(dynamodb=None),
        keyed({"N": "1"}, {"S": "WINDOW"}),
        keyed({"S": 1}, {"S": "WINDOW"}),
        keyed({"S": "WINDOW"}, {"S": "WINDOW"}),
        keyed({"S": "WINDOW#5"}, {"S": "WINDOW"}),
        keyed({"S": "WINDOW#x#octocat"}, {"S": "WINDOW"}),
        keyed({"S": "WINDOW##octocat"}, {"S": "WINDOW"}),
        numbered(None),
        numbered(111),
        numbered("1.5"),
        numbered("\u0661"),
        numbered("1" * 41),
    ],
)
def test_a_record_with_unexpected_values_is_malformed(malformed: dict[str, Any]) -> None:
    with pytest.raises(MalformedError, match=r"^expected a stream record of this table: "):
        parse(malformed)


# ---- entries of journals


ALICE = ulid_of(NOON, "A" * 16)
TRANSFER = Entry(ulid_of(NOON), Posting("t-1", 5, ulid_of(NOON, "B" * 16), ALICE), int(NOON) * 1000)


def entry(**changed: Any) -> dict[str, Any]:
    return entry_record(TRANSFER, ALICE, 1) | changed


def image(**changed: Any) -> dict[str, Any]:
    """Return a record whose item has these changes; None removes an attribute."""
    changing = entry()
    item = changing["dynamodb"]["OldImage"] | changed
    changing["dynamodb"]["OldImage"] = {n: value for n, value in item.items() if value is not None}
    return changing


def test_a_removed_entry_has_its_wallet_and_its_sequence_number() -> None:
    removal = EntryRemoval.of(TRANSFER.item(ALICE), 1, 1_767_225_600.0)
    assert entry_removal(entry()) == removal


@pytest.mark.parametrize(
    "other",
    [
        entry(eventName="INSERT"),
        events.removal(1, f"WALLET#{ALICE}", "NONCE#1"),
        events.removal(1, "USER#a", "TX#1"),
    ],
)
def test_another_change_is_no_entry(other: dict[str, Any]) -> None:
    assert entry_removal(other) is None


@pytest.mark.parametrize(
    "malformed",
    [
        {},
        events.removal(1, f"WALLET#{ALICE}", "TX#1"),
        image(SK=None),
        image(amount=None),
        image(amount={"N": "0.5"}),
        image(more={"BOOL": True}),
    ],
)
def test_an_entry_with_unexpected_values_is_malformed(malformed: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        entry_removal(malformed)
