"""The settings, read once from the environment; the same names on every engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

RETRY_SECONDS = (5, 30, 300, 1_800, 7_200, 18_000, 36_000, 50_400)
"""Waits between the attempts of an event: nine attempts within 32 hours."""
MAX_RETRY_SECONDS = 7 * 86_400
MAX_RETENTION_SECONDS = 366 * 86_400
HOT_VIEWS = 1_000
"""Each visitor reads all live views of a badge, so beyond this no more are stored."""
DIGEST = re.compile("[0-9a-f]{64}")
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
QUEUE_NAME = re.compile("[A-Za-z0-9_-]{1,80}")
MAX_DIGITS = 18
"""Longer numbers are no setting of anything, and slow to read."""


class SettingsError(Exception):
    """A setting is missing or wrong; the message says which, and what is right."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator sets.

    `view_window_seconds`: the length of a window; windows end on whole multiples of it.
    `grace_seconds`: how long after the end of a window its views are folded at the earliest.
    `retention_seconds`: how long a view is kept in the table.
    `hot_views`: a badge with this many live views is hot.
    `api_token_digests`: SHA-256 digests, in hex, of the tokens that open the token routes.
    `token_users`: whose tokens some of them are, by digest: UUIDs in small letters.
    `webhook_allow`: networks that events may call although private, as they are written.
    `webhook_secrets`: what webhooks are signed with, the present secret first.
    `event_queues`: the queues that events may go to, where they are by their names.
    `archive_bucket`: where the journals of wallets are kept for good.
    `retry_seconds`: how long to wait after the first failed attempt of an event, the second, ….
    """

    table_name: str = ""
    views_queue_url: str = ""
    view_window_seconds: int = 300
    grace_seconds: int = 600
    retention_seconds: int = 1_296_000
    hot_views: int = HOT_VIEWS
    timers_queue_url: str = ""
    distribution_queue_url: str = ""
    api_token_digests: frozenset[str] = frozenset()
    token_users: Mapping[str, str] = field(default_factory=dict)
    webhook_allow: str = ""
    webhook_secrets: tuple[str, ...] = ()
    event_queues: Mapping[str, str] = field(default_factory=dict)
    archive_bucket: str = ""
    retry_seconds: tuple[int, ...] = RETRY_SECONDS

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], *, retention_seconds: int = 1_296_000
    ) -> Settings:
        """Read the settings, each by its name in capitals. Raises `SettingsError`.

        `retention_seconds` is the default of RETENTION_SECONDS.
        """
        users = _token_users(environment)
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
            api_token_digests=frozenset(users),
            token_users={digest: user for digest, user in users.items() if user},
            webhook_allow=environment.get("WEBHOOK_ALLOW", ""),
            webhook_secrets=tuple(_parts(environment, "WEBHOOK_SECRETS")),
            event_queues=_queues(environment),
            archive_bucket=environment.get("ARCHIVE_BUCKET", ""),
            retry_seconds=_waits(environment),
        )
        settings._check_retention()
        return settings

    def _check_retention(self) -> None:
        """A view must be kept until it is folded, and its window's marker ends before that."""
        least = self.view_window_seconds + 2 * self.grace_seconds
        if self.retention_seconds < least:
            raise SettingsError(
                f"RETENTION_SECONDS must be at least {least} (VIEW_WINDOW_SECONDS and twice"
                f" GRACE_SECONDS), not {self.retention_seconds}"
            )


def _parts(environment: Mapping[str, str], name: str) -> list[str]:
    """What stands between the commas of a setting."""
    return [part.strip() for part in environment.get(name, "").split(",") if part.strip()]


def _token_users(environment: Mapping[str, str]) -> dict[str, str]:
    """The digests of tokens, and whose each is: empty for one that may do everything."""
    users: dict[str, str] = {}
    for place, part in enumerate(_parts(environment, "API_TOKEN_DIGESTS"), 1):
        digest, named, user = part.partition("=")
        if DIGEST.fullmatch(digest) is None or (named and UUID.fullmatch(user) is None):
            raise SettingsError(
                "API_TOKEN_DIGESTS must be SHA-256 digests of tokens, 64 hex digits in lower case"
                " each, with =UUID behind it where the token is a user's, with commas between;"
                f" number {place} is none"
            )
        if digest in users:
            raise SettingsError(
                f"API_TOKEN_DIGESTS must list each token once, not number {place} again"
            )
        users[digest] = user
    return users


def _queues(environment: Mapping[str, str]) -> dict[str, str]:
    """Names and what follows them: a URL of SQS; nothing on one machine."""
    queues: dict[str, str] = {}
    for part in _parts(environment, "EVENT_QUEUES"):
        name, _, url = part.partition("=")
        if QUEUE_NAME.fullmatch(name) is None:
            raise SettingsError(
                "EVENT_QUEUES must be name=URL, with commas between, a name of 1 to 80 letters,"
                f" digits, - and _; not {part!r}"
            )
        if name in queues:
            raise SettingsError(f"EVENT_QUEUES has {name} twice: list it once")
        queues[name] = url
    return queues


def _waits(environment: Mapping[str, str]) -> tuple[int, ...]:
    waits = _parts(environment, "RETRY_SECONDS")
    for wait in waits:
        decimal = wait.isascii() and wait.isdecimal() and len(wait) <= MAX_DIGITS
        if not (decimal and 1 <= int(wait) <= MAX_RETRY_SECONDS):
            raise SettingsError(
                f"RETRY_SECONDS must be whole numbers from 1 to {MAX_RETRY_SECONDS}, with commas"
                f" between, not {wait!r}"
            )
    return tuple(map(int, waits)) or RETRY_SECONDS


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
