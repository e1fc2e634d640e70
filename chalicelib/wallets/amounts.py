"""Amounts of money: whole millionths of the currency unit, as texts outside and numbers inside."""

from __future__ import annotations

import re

MILLIONTHS = 1_000_000
MOST = 2**63 - 1
"""The largest amount, and the largest balance."""
AMOUNT = re.compile("[1-9][0-9]{0,18}")


class BadAmountError(ValueError):
    """A text is no amount; the message says what is."""


def parse(given: object) -> int:
    """An amount from 1 to 2^63 - 1: digits alone, no leading 0. Raises `BadAmountError`.

    A JSON number is refused: many readers of JSON would round a large one.
    """
    if isinstance(given, str) and AMOUNT.fullmatch(given) and int(given) <= MOST:
        return int(given)
    raise BadAmountError(
        f'give millionths of the unit as a text of digits, "1" to "{MOST}", no sign, no point'
    )


def units(amount: int) -> str:
    """An amount in units, for people: 12.5 for 12,500,000 millionths."""
    whole, rest = divmod(amount, MILLIONTHS)
    return f"{whole:,}" + f".{rest:06}".rstrip("0").rstrip(".")
