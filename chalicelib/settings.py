"""The settings, read once from the environment; the same names on every engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MAX_DIGITS = 18
"""Longer numbers are no setting of anything, and slow to read."""


class SettingsError(Exception):
    """A setting is missing or wrong; the message says which, and what is right."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator sets.

    `view_window_seconds`: views end on whole multiples of it (seconds since 1970).
    `redelivery_seconds`: how long a stored view outlives every redelivery of its message.
    """

    table_name: str = ""
    views_queue_url: str = ""
    view_window_seconds: int = 300
    redelivery_seconds: int = 300

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read TABLE_NAME, VIEWS_QUEUE_URL, VIEW_WINDOW_SECONDS and REDELIVERY_SECONDS.

        Raises `SettingsError`.
        """
        return cls(
            table_name=environment.get("TABLE_NAME", ""),
            views_queue_url=environment.get("VIEWS_QUEUE_URL", ""),
            view_window_seconds=whole_number(environment, "VIEW_WINDOW_SECONDS", 300, 1, 86_400),
            redelivery_seconds=whole_number(environment, "REDELIVERY_SECONDS", 300, 1, 86_400),
        )


def whole_number(
    environment: Mapping[str, str], name: str, default: int, least: int, most: int
) -> int:
    """The whole number a setting holds, its default where it is not set. Raises `SettingsError`."""
    given = environment.get(name) or str(default)
    decimal = given.isascii() and given.isdecimal() and len(given) <= MAX_DIGITS
    if not (decimal and least <= int(given) <= most):
        raise SettingsError(f"{name} must be a whole number from {least} to {most}, not {given!r}")
    return int(given)


def required(name: str, value: str, meaning: str) -> str:
    """A setting that has no default. Raises `SettingsError` where it is empty."""
    if not value:
        raise SettingsError(f"{name} is not set; it must be {meaning}")
    return value
