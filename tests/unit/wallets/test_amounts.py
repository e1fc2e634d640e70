"""Amounts: texts of millionths that become numbers and texts again, and units for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.wallets.amounts import MAX_BALANCE, MILLIONTHS, BadAmountError, parse, units


@given(st.integers(1, MAX_BALANCE))
def test_an_amount_is_read_as_it_is_written(amount: int) -> None:
    assert parse(str(amount)) == amount


def test_the_bounds_themselves_are_accepted() -> None:
    assert parse("1") == 1
    assert parse("9223372036854775807") == MAX_BALANCE == 2**63 - 1


@pytest.mark.parametrize(
    "wrong",
    [
        "0",
        "00",
        "01",
        "-1",
        "+1",
        "1.0",
        "1e3",
        "1_000",
        "1,000",
        " 1",
        "1 ",
        "1\n",
        "",
        "0x10",
        "\u0661",
        "\u00b2",
        "\uff11",
        "9223372036854775808",
        "9" * 19,
        "1" + "0" * 19,
        "9" * 5_000,
        "\ud800",
        1,
        1.0,
        True,
        None,
        ["1"],
        {"1": 1},
        b"1",
    ],
)
def test_other_amounts_are_refused_with_the_fix(wrong: object) -> None:
    with pytest.raises(BadAmountError) as refusal:
        parse(wrong)
    assert str(refusal.value) == (
        'give millionths of the unit as a text of digits, "1" to "9223372036854775807", no sign,'
        " no point"
    )


@given(st.text(max_size=25))
def test_each_number_has_one_text(text: str) -> None:
    try:
        amount = parse(text)
    except BadAmountError:
        return
    assert str(amount) == text
    assert 1 <= amount <= MAX_BALANCE


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "0"),
        (1, "0.000001"),
        (10, "0.00001"),
        (100_000, "0.1"),
        (999_999, "0.999999"),
        (1_000_000, "1"),
        (1_000_001, "1.000001"),
        (10_000_000, "10"),
        (12_500_000, "12.5"),
        (999_999_999_999, "999,999.999999"),
        (1_000_000_000_000, "1,000,000"),
        (MAX_BALANCE, "9,223,372,036,854.775807"),
    ],
)
def test_whole_units_have_no_fraction(amount: int, shown: str) -> None:
    assert units(amount) == shown


@given(st.integers(0, MAX_BALANCE))
def test_units_are_exact(amount: int) -> None:
    whole, _, rest = units(amount).replace(",", "").partition(".")
    assert int(whole) * MILLIONTHS + int(rest.ljust(6, "0")) == amount
    assert not rest.endswith("0")
