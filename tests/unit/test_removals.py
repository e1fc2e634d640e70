"""Which stream records count, and how positions in the stream compare."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.views import removals
from chalicelib.views.removals import Removal, position
from chalicelib.views.view import MalformedError
from tests import events
from tests.unit.fakes import LABEL, NOON, STREAM, removal, ttl_record, ulid_of

ULID_AT_NOON = ulid_of(NOON)
SEQUENCES = st.integers(min_value=0, max_value=10**40 - 1)


def record(**changed: Any) -> dict[str, Any]:
    return ttl_record("octocat", ULID_AT_NOON, "111") | changed


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


def test_a_view_that_ttl_removed_is_a_removal() -> None:
    assert removals.parse(record()) == Removal(
        position=LABEL + "#" + "0" * 37 + "111",
        badge_id="octocat",
        taken_at=datetime(2026, 3, 14, 12, tzinfo=UTC),
        sequence="111",
    )


@pytest.mark.parametrize("badge_id", ["USER#x", "a#b", "VIEW#", "it's", "日本"])
def test_the_badge_is_the_whole_text_behind_the_first_prefix(badge_id: str) -> None:
    parsed = removals.parse(ttl_record(badge_id, ULID_AT_NOON, "1"))
    assert parsed is not None
    assert parsed.badge_id == badge_id


@pytest.mark.parametrize("name", ["INSERT", "MODIFY"])
def test_a_view_that_was_put_is_no_removal(name: str) -> None:
    assert removals.parse(record(eventName=name)) is None


@pytest.mark.parametrize(
    "identity",
    [
        None,
        {},
        events.BY_TTL | {"type": "AssumedRole"},
        events.BY_TTL | {"principalId": "lambda.amazonaws.com"},
        {"type": "Service"},
        {"principalId": "dynamodb.amazonaws.com"},
    ],
)
def test_a_view_that_somebody_deleted_is_no_removal(identity: dict[str, str] | None) -> None:
    assert removals.parse(record(userIdentity=identity)) is None


def test_a_record_without_an_identity_is_no_removal() -> None:
    assert removals.parse(without("userIdentity")) is None


@pytest.mark.parametrize(
    ("pk", "sk"),
    [
        ("USER#octocat", "USER"),
        ("USER#octocat", "OWNER"),
        ("USER#octocat", "DAY#2026-03-14"),
        ("USER#octocat", f"view#{ULID_AT_NOON}"),
        ("TIMER#1", "TIMER"),
        ("WALLET#1", f"VIEW#{ULID_AT_NOON}"),
        ("HEALTH", "HEALTH"),
    ],
)
def test_whatever_else_ttl_removes_is_no_removal_of_a_view(pk: str, sk: str) -> None:
    assert removals.parse(keyed({"S": pk}, {"S": sk})) is None


@pytest.mark.parametrize(
    "malformed",
    [
        {},
        without("eventName"),
        without("dynamodb"),
        without("eventSourceARN"),
        record(dynamodb={}),
        record(dynamodb=None),
        record(userIdentity="dynamodb.amazonaws.com"),
        record(eventSourceARN=STREAM.removesuffix(f"/stream/{LABEL}")),
        record(eventSourceARN=None),
        keyed({"N": "1"}, {"S": "VIEW#"}),
        keyed({"S": 1}, {"S": "VIEW#"}),
        keyed({"S": "USER#octocat"}, {"S": "VIEW#"}),
        keyed({"S": "USER#octocat"}, {"S": "VIEW#no-ulid"}),
        keyed({"S": "USER#octocat"}, {"S": f"VIEW#{ULID_AT_NOON.lower()}"}),
        numbered(None),
        numbered(111),
        numbered(""),
        numbered("-1"),
        numbered("1.5"),
        numbered("\u0661"),
        numbered("1" * 41),
    ],
)
def test_a_record_that_nothing_here_wrote_is_malformed(malformed: dict[str, Any]) -> None:
    with pytest.raises(MalformedError, match="no stream record"):
        removals.parse(malformed)


def test_a_record_that_is_no_record_at_all_is_malformed() -> None:
    nothing: Any = None
    with pytest.raises(MalformedError):
        removals.parse(nothing)


@given(SEQUENCES, SEQUENCES)
def test_positions_compare_as_texts_like_their_sequence_numbers(one: int, other: int) -> None:
    first, second = position(LABEL, str(one)), position(LABEL, str(other))
    assert (first < second) is (one < other)
    assert (first == second) is (one == other)


def test_a_longer_sequence_number_is_a_later_position() -> None:
    assert max(["9", "10"]) == "9"  # as texts that are not padded
    assert position(LABEL, "9") < position(LABEL, "10")
    assert position(LABEL, "9" * 39) < position(LABEL, "1" + "0" * 39)


@given(SEQUENCES, SEQUENCES)
def test_a_new_stream_sorts_behind_every_position_of_the_old_one(one: int, other: int) -> None:
    older, newer = "2026-02-28T23:59:59.999", "2026-03-01T00:00:00.000"
    assert position(older, str(one)) < position(newer, str(other))


def test_removals_sort_by_position_before_all_else() -> None:
    late, early = removal(10, taken=NOON - 60, badge_id="a"), removal(9, taken=NOON, badge_id="b")
    assert sorted([late, early]) == [early, late]
