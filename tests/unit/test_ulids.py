"""ULIDs: their form, their times and their order. The conversions and the form of times."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.ulids import earliest, from_number, latest, milliseconds, new_ulid, to_number
from chalicelib.units import to_iso8601, to_milliseconds
from simulation.views import AT_NOON

TIMES = st.integers(min_value=0, max_value=2**48 - 1)
FIRST, LAST = "0" * 26, "7" + "Z" * 25


def test_no_two_are_the_same_even_at_one_moment() -> None:
    assert len({new_ulid(AT_NOON) for _ in range(1_000)}) == 1_000


def test_the_random_part_has_five_bits_of_each_byte() -> None:
    assert new_ulid(AT_NOON, lambda count: bytes(range(count)))[10:] == "0123456789ABCDEF"
    assert new_ulid(AT_NOON, lambda count: bytes(range(240, 240 + count)))[10:] == (
        "GHJKMNPQRSTVWXYZ"
    )


@pytest.mark.parametrize(
    ("text", "at", "number"),
    [
        (FIRST, 0, 0),
        (LAST, 2**48 - 1, 2**128 - 1),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", 1_469_922_850_259, 0x01563E3AB5D3D6764C61EFB99302BD5B),
        ("01KAJV4QZ8M3T6W9X2Y5B7C0DE", 1_763_716_521_960, 0x019AA5B25FE8A0F46E27A2F1567601AE),
    ],
)
def test_it_encodes_48_bits_of_time_and_80_others(text: str, at: int, number: int) -> None:
    """The specification has the first times and the third text."""
    assert (milliseconds(text), to_number(text), from_number(number)) == (at, number, text)


@given(TIMES)
def test_the_ulids_of_a_time_lie_between_its_earliest_and_its_latest(at: int) -> None:
    first, last = earliest(at), latest(at)
    assert milliseconds(first) == milliseconds(new_ulid(at)) == milliseconds(last) == at
    assert first <= new_ulid(at) <= last
    assert (first[10:], last[10:]) == ("0" * 16, "Z" * 16)
    assert (to_number(first), to_number(last)) == (at << 80, (at + 1 << 80) - 1)


@given(TIMES, TIMES)
def test_they_sort_by_their_times(at: int, other: int) -> None:
    assert (latest(at) < earliest(other)) is (at < other)


@pytest.mark.parametrize("at", [-1, 2**48])
def test_a_time_that_none_has_is_refused(at: int) -> None:
    for make in (new_ulid, earliest, latest):
        with pytest.raises(ValueError, match=f"^{at} ms is no time of a ULID$"):
            make(at)


@pytest.mark.parametrize(
    "text", ["", FIRST[1:], FIRST + "0", "8" + FIRST[1:], LAST.lower(), "0" * 25 + "U"]
)
def test_another_text_is_refused(text: str) -> None:
    for read in (milliseconds, to_number):
        with pytest.raises(ValueError, match=r" is not a ULID in its canonical form$"):
            read(text)


# ---- units


@pytest.mark.parametrize(
    ("seconds", "milliseconds"),
    [(0, 0), (300, 300_000), (0.0005, 0), (0.0019, 1), (1_767_225_600.25, 1_767_225_600_250)],
)
def test_seconds_become_whole_milliseconds_rounded_down(seconds: float, milliseconds: int) -> None:
    assert to_milliseconds(seconds) == milliseconds
    assert type(to_milliseconds(seconds)) is int


@given(st.integers(0, 10**13))
def test_a_time_is_shown_to_the_millisecond(milliseconds: int) -> None:
    shown = to_iso8601(milliseconds)
    assert shown.endswith("Z")
    assert len(shown) == len("2026-03-14T12:00:00.000Z")
    assert round(datetime.fromisoformat(shown).timestamp() * 1000) == milliseconds
