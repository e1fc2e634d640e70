"""Amounts of money: whole millionths of the currency unit, as texts in JSON and as int in code."""

from __future__ import annotations

import re

MILLIONTHS = 1_000_000
MAX_BALANCE = 2**63 - 1
"""The largest amount and the largest balance."""
AMOUNT = re.compile("[1-9][0-9]{0,18}")


class BadAmountError(ValueError):
    """A text is not an amount. The message says what is valid."""


def parse(given: object) -> int:
    """Parse an amount from 1 to 2^63 - 1: only digits, no leading 0. Raises `BadAmountError`.

    A JSON number is refused, because many readers of JSON round large numbers.
    """
    if isinstance(given, str) and AMOUNT.fullmatch(given) and int(given) <= MAX_BALANCE:
        return int(given)
    raise BadAmountError(
        f'give millionths of the unit as a text of digits, "1" to "{MAX_BALANCE}", no sign,'
        " no point"
    )


def units(amount: int) -> str:
    """Format an amount in units, for people: 12.5 for 12,500,000 millionths."""
    whole, rest = divmod(amount, MILLIONTHS)
    return f"{whole:,}" + f".{rest:06}".rstrip("0").rstrip(".")
