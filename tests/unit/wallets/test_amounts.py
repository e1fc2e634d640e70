"""Amounts: texts of millionths that become numbers and texts again, and units for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.wallets.requests import parse_amount as parse
from chalicelib.wallets.serializers import units
from chalicelib.wallets.wallet import MAX_BALANCE


@given(st.just(1) | st.just(MAX_BALANCE) | st.integers(1, MAX_BALANCE))
def test_an_amount_is_read_as_it_is_written(amount: int) -> None:
    assert parse(str(amount)) == amount


@pytest.mark.parametrize(
    "wrong",
    [
        "0",
        "01",
        "-1",
        "+1",
        "1.0",
        "1_000",
        "1\n",
        "",
        "\u0661",
        "\u00b2",
        "9223372036854775808",
        "9" * 5_000,
        1,
        1.0,
        None,
        b"1",
    ],
)
def test_other_amounts_are_refused_with_the_fix(wrong: object) -> None:
    range_of_amounts = '"1" to "9223372036854775807", no sign, no point'
    with pytest.raises(ValueError, match=range_of_amounts):
        parse(wrong)


@given(st.text(max_size=25))
def test_each_number_has_one_text(text: str) -> None:
    try:
        amount = parse(text)
    except ValueError:
        return
    assert str(amount) == text
    assert 1 <= amount <= MAX_BALANCE


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "0"),
        (1, "0.000001"),
        (100_000, "0.1"),
        (10_000_000, "10"),
        (12_500_000, "12.5"),
        (1_000_000_000_000, "1,000,000"),
        (MAX_BALANCE, "9,223,372,036,854.775807"),
    ],
)
def test_whole_units_have_no_fraction(amount: int, shown: str) -> None:
    assert units(amount) == shown
