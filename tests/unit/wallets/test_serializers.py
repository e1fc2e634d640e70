"""The JSON of wallets and entries, with amounts as texts, and units for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.badges.options import Badge, Look
from chalicelib.wallets import serializers
from chalicelib.wallets.serializers import parse_amount as parse
from chalicelib.wallets.wallet import MAX_BALANCE, Entry, Posting, Wallet
from simulation.clocks import NOON

AT = int(NOON * 1000)
MOMENT = "2026-03-14T12:00:00.000Z"
RICH = Wallet("a", "eva", MAX_BALANCE, is_public=True)


def test_a_balance_is_a_text_so_that_no_json_parser_rounds_it() -> None:
    """The owner also sees whether the wallet has a badge."""
    shown = {"id": "a", "balance": "9223372036854775807"}
    assert serializers.balance(RICH) == shown
    assert serializers.to_json(RICH) == {**shown, "user_id": "eva", "badge": True}
    assert serializers.to_json(Wallet("a", "eva", 0))["badge"] is False


DEPOSIT = Posting("nonce-01", MAX_BALANCE, "a")
TRANSFER = Posting("nonce-01", 30, "b", "a")
DEPOSITED = {"kind": "deposit", "amount": "9223372036854775807", "to": "a"}
TRANSFERRED = {"kind": "transfer", "amount": "30", "to": "b", "from": "a"}
OWN = {"nonce": "nonce-01"}


@pytest.mark.parametrize(
    ("posting", "wallet_id", "fields"),
    [
        (DEPOSIT, "a", DEPOSITED | OWN),
        (TRANSFER, "a", TRANSFERRED | OWN),
        (TRANSFER, "b", TRANSFERRED),
    ],
)
def test_only_a_transfer_has_a_source_and_only_the_asker_sees_the_nonce(
    posting: Posting, wallet_id: str, fields: dict[str, str]
) -> None:
    assert serializers.transactions(([Entry("1", posting, AT)], ""), wallet_id, AT) == {
        "transactions": [{"id": "1", "at": MOMENT, **fields}],
        "archived_before": "2026-03-12T12:00:00.000Z",
    }


def test_a_page_has_a_cursor_unless_it_is_the_last() -> None:
    entries = [Entry(name, Posting("nonce-01", 1, "a"), AT) for name in ("3", "2")]
    told = serializers.transactions((entries, "2"), "a", AT)
    assert [one["id"] for one in told["transactions"]] == ["3", "2"]
    assert told["cursor"] == "2"
    assert "cursor" not in serializers.transactions((entries, ""), "a", AT)


def test_a_badge_shows_units() -> None:
    assert serializers.badge(Wallet("a", "eva", 12_500_000)) == Badge("balance", "12.5", "blue")
    said = serializers.badge(RICH, Look({"label": ["tips"], "color": ["000000"]}))
    assert (said.label, said.color) == ("tips", "#000000")
    assert said.message == "9,223,372,036,854.775807"


# ---- amounts


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
    assert serializers.units(amount) == shown
