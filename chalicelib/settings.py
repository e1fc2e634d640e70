"""The settings of every engine, read once from environment variables."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from chalicelib.units import WholeSeconds

RETRY_SECONDS = (5, 30, 300, 1_800, 7_200, 18_000, 36_000, 50_400)
"""Seconds between the attempts of an event: nine attempts within 32 hours."""
MAX_RETRY_SECONDS = 7 * 86_400
MAX_RETENTION_SECONDS = 366 * 86_400
MAX_HSTS_SECONDS = 2 * 365 * 86_400
HOT_VIEWS = 1_000
"""From this number of live views on, new views are not stored, because each visitor reads them."""
DIGEST = re.compile("[0-9a-f]{64}")
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
QUEUE_NAME = re.compile("[A-Za-z0-9_-]{1,80}")
MAX_DIGITS = 18
"""Longer numbers are slow to parse, and no setting needs them."""


class Feature(Enum):
    """A part of the product that an operator can switch off, by the setting of this name."""

    EVENTS = "EVENTS"
    WALLETS = "WALLETS"


class SettingsError(Exception):
    """A setting is missing or wrong. The message names it and says what is valid."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of an operator.

    `view_window_seconds`: the length of a window; windows end on whole multiples of it.
    `grace_seconds`: the shortest time between the end of a window and the fold of its views.
    `retention_seconds`: the time that a view is kept in the table.
    `hot_views`: a badge with this many live views is hot.
    `api_token_digests`: SHA-256 digests, in hex, of operators' tokens that are not in the table.
    `webhook_allow`: the private networks that webhooks may call, as the operator wrote them.
    `webhook_secrets`: the secrets that sign webhooks, the current one first.
    `has_webhook_secrets`: another function has them, and delivers the events that this one accepts.
    `event_queues`: the queues that events may be sent to: a URL by name.
    `archive_bucket`: the bucket that keeps the journals of wallets forever.
    `retry_seconds`: the waits after the first failed attempt of an event, the second, ….
    `ids`: the ids that are counted, as patterns of `fnmatch`; none means all ids.
    `proofs`: where proofs of ownership are looked for, as the operator wrote it.
    `hsts_seconds`: the time for which browsers must use HTTPS; 0 means that they need not.
    `features`: the features that are switched on.
    """

    table_name: str = ""
    views_queue_url: str = ""
    view_window_seconds: WholeSeconds = 300
    grace_seconds: WholeSeconds = 600
    retention_seconds: WholeSeconds = 1_296_000
    hot_views: int = HOT_VIEWS
    timers_queue_url: str = ""
    distribution_queue_url: str = ""
    api_token_digests: frozenset[str] = frozenset()
    webhook_allow: str = ""
    webhook_secrets: tuple[str, ...] = ()
    has_webhook_secrets: bool = False
    event_queues: Mapping[str, str] = field(default_factory=dict)
    archive_bucket: str = ""
    retry_seconds: tuple[WholeSeconds, ...] = RETRY_SECONDS
    ids: tuple[str, ...] = ()
    proofs: str = ""
    hsts_seconds: WholeSeconds = 0
    features: frozenset[Feature] = frozenset(Feature)

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], *, retention_seconds: WholeSeconds = 1_296_000
    ) -> Settings:
        """Read the settings; variables have their names in upper case. Raises `SettingsError`.

        `retention_seconds` is the default of RETENTION_SECONDS.
        """
        settings = cls(
            table_name=environment.get("TABLE_NAME", ""),
            views_queue_url=environment.get("VIEWS_QUEUE_URL", ""),
            view_window_seconds=whole_number(environment, "VIEW_WINDOW_SECONDS", 300, 1, 86_400),
            grace_seconds=whole_number(environment, "GRACE_SECONDS", 600, 1, 86_400),
            retention_seconds=whole_number(
                environment, "RETENTION_SECONDS", retention_seconds, 1, MAX_RETENTION_SECONDS
            ),
            hot_views=whole_number(environment, "HOT_VIEWS", HOT_VIEWS, 1, 8_000),
            timers_queue_url=environment.get("TIMERS_QUEUE_URL", ""),
            distribution_queue_url=environment.get("DISTRIBUTION_QUEUE_URL", ""),
            api_token_digests=_parse_digests(environment),
            webhook_allow=environment.get("WEBHOOK_ALLOW", ""),
            webhook_secrets=tuple(_split(environment, "WEBHOOK_SECRETS")),
            has_webhook_secrets=environment.get("HAS_WEBHOOK_SECRETS") == "true",
            event_queues=_parse_queues(environment),
            archive_bucket=environment.get("ARCHIVE_BUCKET", ""),
            retry_seconds=_parse_waits(environment),
            ids=tuple(map(_to_fnmatch, _split(environment, "IDS"))),
            proofs=environment.get("PROOFS", ""),
            hsts_seconds=whole_number(environment, "HSTS_SECONDS", 0, 0, MAX_HSTS_SECONDS),
            features=frozenset(one for one in Feature if is_on(environment, one.value)),
        )
        settings._check_retention()
        return settings

    @property
    def can_sign(self) -> bool:
        """Return whether webhooks can be signed, here or by the function that delivers them."""
        return self.has_webhook_secrets or bool(self.webhook_secrets)

    def _check_retention(self) -> None:
        """Check that a view is kept until it is folded, which is after its window's marker ends."""
        least = self.view_window_seconds + 2 * self.grace_seconds
        if self.retention_seconds < least:
            raise SettingsError(
                f"RETENTION_SECONDS must be at least {least} (VIEW_WINDOW_SECONDS and twice"
                f" GRACE_SECONDS), not {self.retention_seconds}"
            )


def _split(environment: Mapping[str, str], name: str) -> list[str]:
    """Split a setting at its commas."""
    return [part.strip() for part in environment.get(name, "").split(",") if part.strip()]


def _to_fnmatch(pattern: str) -> str:
    """Return a pattern of ids for `fnmatch`, in which only `*` has a meaning; ids are in NFC."""
    return unicodedata.normalize("NFC", pattern).replace("[", "[[]").replace("?", "[?]")


def _parse_digests(environment: Mapping[str, str]) -> frozenset[str]:
    """Return the digests of operators' tokens. The message of an error never has a token."""
    digests = _split(environment, "API_TOKEN_DIGESTS")
    for position, digest in enumerate(digests, 1):
        if DIGEST.fullmatch(digest) is None:
            raise SettingsError(
                "API_TOKEN_DIGESTS must be SHA-256 digests of operators' tokens, 64 hex digits in"
                f" lower case each, separated by commas; number {position} is not. Create users'"
                " tokens by the command token"
            )
    return frozenset(digests)


def _parse_queues(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the queues by name: a URL of SQS, or nothing on one machine."""
    queues: dict[str, str] = {}
    for part in _split(environment, "EVENT_QUEUES"):
        name, _, url = part.partition("=")
        if QUEUE_NAME.fullmatch(name) is None:
            raise SettingsError(
                "EVENT_QUEUES must be name=URL, separated by commas, with names of 1 to 80 letters,"
                f" digits, - and _; not {part!r}"
            )
        if name in queues:
            raise SettingsError(f"EVENT_QUEUES has {name} twice; list it once")
        queues[name] = url
    return queues


def _parse_waits(environment: Mapping[str, str]) -> tuple[WholeSeconds, ...]:
    waits = _split(environment, "RETRY_SECONDS")
    for wait in waits:
        decimal = wait.isascii() and wait.isdecimal() and len(wait) <= MAX_DIGITS
        if not (decimal and 1 <= int(wait) <= MAX_RETRY_SECONDS):
            raise SettingsError(
                f"RETRY_SECONDS must be whole numbers from 1 to {MAX_RETRY_SECONDS}, separated by"
                f" commas, not {wait!r}"
            )
    return tuple(map(int, waits)) or RETRY_SECONDS


def is_on(environment: Mapping[str, str], name: str) -> bool:
    """Return whether a setting is on, as it is by default. Raises `SettingsError`."""
    return choice(environment, name, ("on", "off")) == "on"


def choice(environment: Mapping[str, str], name: str, choices: Sequence[str]) -> str:
    """Return a setting that is one of some texts, by default the first. Raises `SettingsError`."""
    given = environment.get(name) or choices[0]
    if given not in choices:
        raise SettingsError(f"{name} must be {' or '.join(choices)}, not {given!r}")
    return given


def whole_number(
    environment: Mapping[str, str], name: str, default: int, least: int, most: int
) -> int:
    """Return a setting as a whole number, or its default. Raises `SettingsError`."""
    given = environment.get(name) or str(default)
    decimal = given.isascii() and given.isdecimal() and len(given) <= MAX_DIGITS
    if not (decimal and least <= int(given) <= most):
        raise SettingsError(f"{name} must be a whole number from {least} to {most}, not {given!r}")
    return int(given)


def required(name: str, value: str, meaning: str) -> str:
    """Return a setting that has no default. Raises `SettingsError` if it is empty."""
    if not value:
        raise SettingsError(f"{name} is not set; it must be {meaning}")
    return value
