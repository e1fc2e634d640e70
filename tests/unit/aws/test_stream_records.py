"""The stream records of removed markers and entries, and malformed records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.aws.consumers import entry_removal, marker_removal
from chalicelib.counting.consumers import MarkerRemoval
from chalicelib.storage.messages import MalformedError
from chalicelib.wallets.archive import EntryRemoval
from chalicelib.wallets.wallet import Entry, Posting
from simulation import aws_events as events
from simulation.aws_events import entry_record, marker_record
from simulation.clocks import NOON, ulid_of

MARK = 1_773_489_600
REMOVED_AT = 1_767_225_600.0
ALICE = ulid_of(NOON, "A" * 16)
TRANSFER = Entry(ulid_of(NOON), Posting("t-1", 5, ulid_of(NOON, "B" * 16), ALICE), int(NOON) * 1000)


def record(**changed: Any) -> dict[str, Any]:
    return marker_record("111", "octocat", MARK) | changed


def changing(**changed: Any) -> dict[str, Any]:
    """Return a record with another change of a marker; None removes a part of it."""
    change = record()["dynamodb"] | changed
    return record(dynamodb={name: part for name, part in change.items() if part is not None})


def keyed(pk: object, sk: object) -> dict[str, Any]:
    return changing(Keys={"PK": pk, "SK": sk})


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in record().items() if key != name}


def entry(**changed: Any) -> dict[str, Any]:
    return entry_record(TRANSFER, ALICE, 1) | changed


def image(**changed: Any) -> dict[str, Any]:
    """Return a record whose item has these changes; None removes an attribute."""
    change = entry()["dynamodb"]
    item = change["OldImage"] | changed
    kept = {name: value for name, value in item.items() if value is not None}
    return entry(dynamodb=change | {"OldImage": kept})


@pytest.mark.parametrize("badge_id", ["octocat", "a#b", "WINDOW#1#x", "日本"])
def test_a_marker_that_was_removed_has_its_badge_and_its_mark(badge_id: str) -> None:
    removal = MarkerRemoval(badge_id=badge_id, mark=MARK, removed_at=REMOVED_AT)
    removed = marker_record(1, badge_id, MARK)
    assert marker_removal(removed) == removal
    assert marker_removal(removed | {"userIdentity": None}) == removal  # by no service


def test_a_record_without_the_time_of_its_removal_has_0() -> None:
    removal = marker_removal(changing(ApproximateCreationDateTime=None))
    assert removal == MarkerRemoval(badge_id="octocat", mark=MARK, removed_at=0)


def test_a_removed_entry_has_its_wallet_and_its_sequence_number() -> None:
    assert entry_removal(entry()) == EntryRemoval.of(TRANSFER.item(ALICE), 1, REMOVED_AT)


@pytest.mark.parametrize(
    ("parse", "other"),
    [
        (marker_removal, record(eventName="INSERT")),
        (marker_removal, record(eventName="MODIFY")),
        (marker_removal, keyed({"S": "USER#octocat"}, {"S": "VIEWS"})),
        (marker_removal, keyed({"S": "USER#WINDOW#1#x"}, {"S": "VIEWS"})),
        (marker_removal, keyed({"S": "WINDOWS"}, {"S": "VIEWS"})),
        (marker_removal, keyed({"S": "TIMER#1"}, {"S": "WINDOW"})),
        (entry_removal, entry(eventName="INSERT")),
        (entry_removal, events.removal(1, f"WALLET#{ALICE}", "NONCE#1")),
        (entry_removal, events.removal(1, "USER#a", "TX#1")),
    ],
)
def test_another_change_is_no_removal(
    parse: Callable[[dict[str, Any]], object], other: dict[str, Any]
) -> None:
    assert parse(other) is None


@pytest.mark.parametrize(
    ("parse", "malformed"),
    [
        (marker_removal, {}),
        (marker_removal, without("eventName")),
        (marker_removal, without("dynamodb")),
        (marker_removal, record(dynamodb=None)),
        (marker_removal, keyed({"N": "1"}, {"S": "WINDOW"})),
        (marker_removal, keyed({"S": 1}, {"S": "WINDOW"})),
        (marker_removal, keyed({"S": "WINDOW"}, {"S": "WINDOW"})),
        (marker_removal, keyed({"S": "WINDOW#5"}, {"S": "WINDOW"})),
        (marker_removal, keyed({"S": "WINDOW#x#octocat"}, {"S": "WINDOW"})),
        (marker_removal, keyed({"S": "WINDOW##octocat"}, {"S": "WINDOW"})),
        *(
            (marker_removal, changing(SequenceNumber=n))
            for n in (None, 111, "1.5", "\u0661", "1" * 41)
        ),
        (entry_removal, events.removal(1, f"WALLET#{ALICE}", "TX#1")),
        (entry_removal, image(SK=None)),
        (entry_removal, image(amount=None)),
        (entry_removal, image(amount={"N": "0.5"})),
        (entry_removal, image(more={"BOOL": True})),
    ],
)
def test_a_record_with_unexpected_values_is_malformed(
    parse: Callable[[dict[str, Any]], object], malformed: dict[str, Any]
) -> None:
    with pytest.raises(MalformedError, match=r"^expected a stream record of this table: "):
        parse(malformed)
