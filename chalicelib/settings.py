"""The settings of every engine: each is declared once, with its text, its bounds and its meaning.

They are environment variables. One machine reads them from a file, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

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
URL = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(/[A-Za-z0-9._~/-]*)?")
QUEUE_NAME = re.compile("[A-Za-z0-9_-]{1,80}")
MAX_DIGITS = 18
"""Longer numbers are slow to parse, and no setting needs them."""
NOTHING: Mapping[str, str] = MappingProxyType({})
COUNTERS = (
    "komarev",
    "hits.sh",
    "dwyl",
    "visitor-badge",
    "moe-counter",
    "hit-counter",
    "seeyoufarm",
    "hitscounter",
)
"""The other counters whose URLs can be answered here."""

Parse: TypeAlias = Callable[[str], Any]
"""A function that returns the value of a text, or raises `ValueError` with what it must be."""
Form: TypeAlias = Literal["text", "number", "switch", "list", "numbers", "queues"]
"""The form of a setting in a file: a string, an integer, a boolean, a list or a table."""


class Feature(Enum):
    """A part of the product that an operator can switch off, by the setting of this name."""

    EVENTS = "EVENTS"
    WALLETS = "WALLETS"


class SettingsError(Exception):
    """A setting is missing or wrong. The message begins with its name and says what is valid."""


class Setting:
    """A setting as its readers and its reference need it.

    It is no dataclass, because making one takes a part of each cold start.
    """

    def __init__(  # noqa: PLR0913, PLR0917  its parts
        self,
        name: str,
        default: str,
        parse: Parse,
        form: Form,
        valid: str,
        meaning: str,
        *,
        is_secret: bool = False,
        is_for_aws: bool = False,
    ) -> None:
        self.name, self.default, self._parse = name, default, parse
        self.form, self.valid, self.meaning = form, valid, meaning
        self.is_secret, self.is_for_aws = is_secret, is_for_aws

    def parse(self, text: str) -> Any:
        """Return the value of a text. Raises `SettingsError`."""
        try:
            return self._parse(text)
        except ValueError as error:
            raise SettingsError(f"{self.name} {error}") from None

    def declare(self) -> Any:
        """Return the field of a dataclass that has the value of this setting."""
        value, metadata = self.parse(self.default), {"setting": self}
        if isinstance(value, dict):
            return field(default_factory=value.copy, metadata=metadata)
        return field(default=value, metadata=metadata)


def settings_of(kind: type) -> Iterator[tuple[str, Setting]]:
    """Yield the name of each field of a dataclass that has a setting, and the setting."""
    for one in fields(kind):
        if setting := one.metadata.get("setting"):
            yield one.name, setting


def read(
    kind: type, environment: Mapping[str, str], defaults: Mapping[str, str] = NOTHING
) -> dict[str, Any]:
    """Return the values of the fields of a dataclass. An empty setting has its default.

    Raises `SettingsError`.
    """
    return {
        attribute: setting.parse(
            environment.get(setting.name) or defaults.get(setting.name) or setting.default
        )
        for attribute, setting in settings_of(kind)
    }


def number(name: str, default: int, bounds: tuple[int, int], meaning: str) -> Any:
    """Declare a setting that is a whole number within its bounds."""
    valid = "{} to {}".format(*bounds)
    parse = partial(_parse_number, bounds=bounds, form=f"a whole number from {valid}")
    return Setting(name, str(default), parse, "number", valid, meaning).declare()


def _parse_number(text: str, bounds: tuple[int, int], form: str) -> int:
    is_decimal = text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
    if not (is_decimal and bounds[0] <= int(text) <= bounds[1]):
        raise ValueError(f"must be {form}, not {text!r}")
    return int(text)


def switch(name: str, meaning: str, default: str = "on") -> Any:
    """Declare a setting that is on or off."""
    return Setting(name, default, _parse_switch, "switch", "on or off", meaning).declare()


def _parse_switch(text: str) -> bool:
    if text not in {"on", "off"}:
        raise ValueError(f"must be on or off, not {text!r}")
    return text == "on"


def one_text(name: str, default: str, valid: str, meaning: str, parse: Parse = str) -> Any:
    """Declare a setting that is a string in a file."""
    return Setting(name, default, parse, "text", valid, meaning).declare()


def aws(name: str, meaning: str, parse: Parse = str) -> Any:
    """Declare a setting that a stack on AWS sets."""
    return Setting(name, "", parse, "text", "a text", meaning, is_for_aws=True).declare()


def parts_of(text: str) -> tuple[str, ...]:
    """Split a setting at its commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def listed(
    name: str, valid: str, meaning: str, parse: Parse = parts_of, *, is_secret: bool = False
) -> Any:
    """Declare a setting that is a list, by default an empty one."""
    return Setting(name, "", parse, "list", valid, meaning, is_secret=is_secret).declare()


def _parse_url(text: str) -> str:
    """Return the URL of a server with a slash at its end, or an empty text."""
    if text and URL.fullmatch(text) is None:
        raise ValueError(
            f"must be a URL like https://badges.example.com/path, without a query, not {text!r}"
        )
    return f"{text.rstrip('/')}/" if text else ""


def _parse_counters(text: str) -> tuple[str, ...]:
    counters = parts_of(text)
    for part in counters:
        if part not in COUNTERS:
            raise ValueError(
                f"must be some of {', '.join(COUNTERS)}, separated by commas, not {part!r}"
            )
    return counters


def _parse_digests(text: str) -> frozenset[str]:
    """Return the digests of operators' tokens. The message of an error never has a token."""
    digests = parts_of(text)
    for position, digest in enumerate(digests, 1):
        if DIGEST.fullmatch(digest) is None:
            raise ValueError(
                f"must be SHA-256 digests of operators' tokens, 64 hex digits in"
                f" lower case each, separated by commas; number {position} is not. Create users'"
                " tokens by the command token"
            )
    return frozenset(digests)


def _parse_queues(text: str) -> dict[str, str]:
    """Return the queues by name: a URL of SQS, or nothing on one machine."""
    queues: dict[str, str] = {}
    for part in parts_of(text):
        queue, _, url = part.partition("=")
        if QUEUE_NAME.fullmatch(queue) is None:
            raise ValueError(
                f"must be name=URL, separated by commas, with names of 1 to 80 letters,"
                f" digits, - and _; not {part!r}"
            )
        if queue in queues:
            raise ValueError(f"has {queue} twice; list it once")
        queues[queue] = url
    return queues


def _parse_waits(text: str) -> tuple[WholeSeconds, ...]:
    bounds = (1, MAX_RETRY_SECONDS)
    form = f"whole numbers from 1 to {MAX_RETRY_SECONDS}, separated by commas"
    waits = tuple(_parse_number(wait, bounds, form) for wait in parts_of(text))
    return waits or RETRY_SECONDS


@dataclass(frozen=True, slots=True, repr=False)
class Settings:
    """The settings of an operator on every engine. They have no `repr`, because some are secret."""

    table_name: str = aws("TABLE_NAME", "the table")
    views_queue_url: str = aws("VIEWS_QUEUE_URL", "the queue of views")
    view_window_seconds: WholeSeconds = number(
        "VIEW_WINDOW_SECONDS",
        300,
        (1, 86_400),
        "the length of a window, whose views are folded together; windows end on multiples of it",
    )
    grace_seconds: WholeSeconds = number(
        "GRACE_SECONDS",
        600,
        (1, 86_400),
        "the shortest time between the end of a window and its fold",
    )
    retention_seconds: WholeSeconds = number(
        "RETENTION_SECONDS",
        1_296_000,
        (1, MAX_RETENTION_SECONDS),
        "how long a view is kept; at least the window and twice the grace, and on AWS longer than"
        " 14 days, because a queue keeps a message for that long",
    )
    hot_views: int = number(
        "HOT_VIEWS",
        HOT_VIEWS,
        (1, 8_000),
        "a badge with this many live views is hot: its new views are counted at once",
    )
    delivery_queue_url: str = aws("DELIVERY_QUEUE_URL", "the queue of deliveries")
    distribution_queue_url: str = aws("DISTRIBUTION_QUEUE_URL", "the queue of swept events")
    api_token_digests: frozenset[str] = listed(
        "API_TOKEN_DIGESTS",
        "SHA-256 digests, 64 hex digits in lower case each",
        "the digests of operators' tokens that are not in the table (`printf %s TOKEN |"
        " sha256sum`); if there is none, one machine creates a token at its first start",
        _parse_digests,
        is_secret=True,
    )
    webhook_allow: str = listed(
        "WEBHOOK_ALLOW",
        "networks like `10.0.0.0/8` and `fd00::/8`",
        "the private networks that events may call, also over http and on any port",
        str,
    )
    webhook_secrets: tuple[str, ...] = listed(
        "WEBHOOK_SECRETS",
        "secrets of `whsec_` and base64",
        "the secrets that sign webhooks, the current one first; if there is none, one machine"
        " generates its own, and on AWS events can't be sent to a URL",
        is_secret=True,
    )
    has_webhook_secrets: bool = aws(
        "HAS_WEBHOOK_SECRETS",
        "`true` if another function has the secrets, so that this one accepts events to URLs",
        lambda text: text == "true",
    )
    event_queues: Mapping[str, str] = Setting(
        "EVENT_QUEUES",
        "",
        _parse_queues,
        "queues",
        "names of 1 to 80 letters, digits, `-` and `_`, each with `=URL` of SQS on AWS",
        "the queues that events may be sent to",
    ).declare()
    archive_bucket: str = aws("ARCHIVE_BUCKET", "the archive of journals")
    retry_seconds: tuple[WholeSeconds, ...] = Setting(
        "RETRY_SECONDS",
        ",".join(map(str, RETRY_SECONDS)),
        _parse_waits,
        "numbers",
        f"whole numbers from 1 to {MAX_RETRY_SECONDS}",
        "the seconds to wait after the first failed attempt of an event, the second, and so on;"
        " each wait is longer by a random part of up to a fifth",
    ).declare()
    ids: tuple[str, ...] = listed(
        "IDS",
        "patterns like `owner/*`, in which only `*` has a meaning: any characters",
        "the ids that are counted; without a pattern, all ids are",
    )
    proofs: str = listed(
        "PROOFS",
        "`PATTERN=URL`, or `off`",
        "where the proofs of owners are looked for: [the patterns](ownership.md#where-proofs-"
        "are-looked-for); without one, on GitHub, on GitLab and on the hosts of URLs",
        str,
    )
    drop_in: tuple[str, ...] = listed(
        "DROP_IN",
        ", ".join(f"`{counter}`" for counter in COUNTERS),
        "the other counters whose URLs are answered here, so that a badge moves by a change of its"
        " host name alone: [their URLs](moving-here.md#a-change-of-the-host-name-alone)",
        _parse_counters,
    )
    hsts_seconds: WholeSeconds = number(
        "HSTS_SECONDS",
        0,
        (0, MAX_HSTS_SECONDS),
        "the time for which browsers must use only HTTPS for this host"
        " (`Strict-Transport-Security`); 0 sends no such header",
    )
    public_url: str = one_text(
        "PUBLIC_URL",
        "",
        "a URL like `https://badges.example.com/path`",
        "the URL of this server in the lines and link previews of badges' pages; without it, the"
        " host of the request",
        _parse_url,
    )
    events: bool = switch(Feature.EVENTS.value, "whether events are served")
    wallets: bool = switch(Feature.WALLETS.value, "whether wallets are served")

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], defaults: Mapping[str, str] = NOTHING
    ) -> Settings:
        """Read the settings, with an engine's own defaults. Raises `SettingsError`."""
        settings = cls(**read(cls, environment, defaults))
        # A view is kept until it is folded, which is after its window's marker ends.
        least = settings.view_window_seconds + 2 * settings.grace_seconds
        if settings.retention_seconds < least:
            raise SettingsError(
                f"RETENTION_SECONDS must be at least {least} (VIEW_WINDOW_SECONDS and twice"
                f" GRACE_SECONDS), not {settings.retention_seconds}"
            )
        return settings

    @property
    def can_sign(self) -> bool:
        """Return whether webhooks can be signed, here or by the function that delivers them."""
        return self.has_webhook_secrets or bool(self.webhook_secrets)

    @property
    def features(self) -> frozenset[Feature]:
        on = {Feature.EVENTS: self.events, Feature.WALLETS: self.wallets}
        return frozenset(feature for feature, is_on in on.items() if is_on)


def required(name: str, value: str, meaning: str) -> str:
    """Return a setting that has no default. Raises `SettingsError` if it is empty."""
    if not value:
        raise SettingsError(f"{name} is not set; it must be {meaning}")
    return value
