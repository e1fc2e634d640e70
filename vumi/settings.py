"""The settings of one machine, and the place that each given one comes from.

A settings file is TOML, with the names of the environment variables.
"""

from __future__ import annotations

import logging
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chalicelib import telemetry
from chalicelib.lazy import lazy
from chalicelib.resources import Action
from chalicelib.settings import (
    Form,
    Setting,
    Settings,
    SettingsError,
    listed,
    number,
    one_text,
    parts_of,
    read,
    settings_of,
    switch,
)
from vumi.folder import default_folder
from vumi.metrics.access import MetricsAccess
from vumi.server.clients import Rate, TrustedProxies

if TYPE_CHECKING:
    import difflib
    import tomllib

    from chalicelib.events import sender
    from chalicelib.owners import proving
else:
    difflib, tomllib = lazy("difflib"), lazy("tomllib")
    sender = lazy("chalicelib.events.sender")
    proving = lazy("chalicelib.owners.proving")

DEFAULTS = {"RETENTION_SECONDS": "3600"}
"""The default retention of a view: no message is delivered again after it was handled."""
MAX_PER_PERIOD = 1_000_000
DATA = "DATA"
UNIX = "unix:"
"""The beginning of a `HOST` that is the path of a Unix socket."""
MODE = re.compile("[0-7]{3}")
SETTINGS = "SETTINGS"
"""The setting that names the file."""
DEFAULT = "default"
"""The source of a setting that nobody gave."""
MASK = "***"
NAME = re.compile("[A-Z_]+")
SHORT_NAME = 3
NAMES_ALIKE = 0.75
"""The likeness from which a name is reported: PROT is like PORT, and HOSTNAME not like HOST."""
FORMS: Mapping[Form, str] = {
    "text": "a string",
    "number": "a whole number without quotes",
    "switch": "true or false, without quotes",
    "list": 'a list of strings without commas, like ["a", "b"]',
    "numbers": "a list of whole numbers without quotes",
    "queues": 'a list of names, like ["a", "b"], or a table of URLs by name',
}
"""The value of each form of a setting."""


def _parse_mode(text: str) -> int:
    if MODE.fullmatch(text) is None:
        raise ValueError(f"must be three octal digits, like 660, not {text!r}")
    return int(text, 8)


def _parse_metrics(text: str) -> MetricsAccess:
    if text not in set(MetricsAccess):
        raise ValueError(f"must be {' or '.join(MetricsAccess)}, not {text!r}")
    return MetricsAccess(text)


def _parse_prefixes(text: str) -> tuple[str, ...]:
    """Return patterns of prefixes, none of which is that of all ids."""
    patterns = tuple(parts_of(text))
    if wild := [pattern for pattern in patterns if pattern.startswith("*")]:
        raise ValueError(f"must be patterns that don't begin with *, not {wild[0]!r}")
    return patterns


def _limit(name: str, default: int, meaning: str) -> Any:
    return number(name, default, (0, MAX_PER_PERIOD), f"{meaning}; 0 means no limit")


@dataclass(frozen=True, slots=True)
class StandaloneSettings:
    """The settings of one machine; `product` has those of every engine."""

    host: str = one_text(
        "HOST",
        "127.0.0.1",
        "an address or a name of this machine, or `unix:PATH`",
        "the address that the server listens on, or its Unix socket",
    )
    port: int = number(
        "PORT", 8000, (0, 65_535), "the port that it listens on; 0 selects a free one"
    )
    socket_mode: int = one_text(
        "SOCKET_MODE",
        "660",
        "three octal digits",
        "the rights to the Unix socket: who may write to it may send requests",
        _parse_mode,
    )
    folder: Path = one_text(
        DATA,
        "~/.local/share/vu-mi",
        "a path",
        "the folder of all data. The default is below `XDG_DATA_HOME` if that is set, and `data` in"
        " the current folder if vu-mi's file is there",
        Path,
    )
    file: str = one_text(SETTINGS, "", "a path", "the settings file, in TOML")
    client_new_ids_per_minute: int = _limit(
        "CLIENT_NEW_IDS_PER_MINUTE",
        300,
        "the new ids that one client address may view in a minute",
    )
    client_new_ids_per_day: int = _limit(
        "CLIENT_NEW_IDS_PER_DAY",
        2_000,
        "the new ids that one client address may view in a day",
    )
    client_claims_per_minute: int = _limit(
        "CLIENT_CLAIMS_PER_MINUTE",
        30,
        "the claims, renames and requests with milestones of one client address in a minute",
    )
    client_changes_per_minute: int = _limit(
        "CLIENT_CHANGES_PER_MINUTE",
        120,
        "the changes of badges that one client address may make by their secrets in a minute; each"
        " is a line in the log",
    )
    client_proofs_per_minute: int = _limit(
        "CLIENT_PROOFS_PER_MINUTE",
        10,
        "the requests with `proof` of one client address in a minute; each may fetch a file from"
        " another host",
    )
    client_requests_per_second: int = _limit(
        "CLIENT_REQUESTS_PER_SECOND",
        0,
        "the requests of one client address in a second. GitHub's image proxy asks for everybody's"
        " badges from a few addresses, so a limit refuses views of busy badges",
    )
    max_badges: int = number(
        "MAX_BADGES",
        0,
        (0, 10**9),
        "the badges in all, beyond which a new id is refused; those that exist count on. 0 means no"
        " limit",
    )
    min_free_bytes: int = number(
        "MIN_FREE_BYTES",
        500_000_000,
        (0, 10**15),
        "the free space on the disk below which new ids and claims are refused. Below half of it,"
        " views are counted at once and get no rows of their own",
    )
    trusted_proxies: TrustedProxies = listed(
        "TRUSTED_PROXIES",
        "networks like `127.0.0.1` and `10.0.0.0/8`",
        "the proxies whose `X-Forwarded-For` is believed; without one, the client is the peer of"
        " the connection",
        TrustedProxies.parse,
    )
    metrics: MetricsAccess = one_text(
        "METRICS",
        MetricsAccess.LOCAL,
        " or ".join(f"`{access}`" for access in MetricsAccess),
        "the requests that may read `GET /metrics`: those of programs on the same machine and with"
        " an operator's token (`local`), or those with a token alone (`token`)",
        _parse_metrics,
    )
    access_log: bool = switch(
        "ACCESS_LOG", "whether each request is logged, without anything about its client", "off"
    )
    public_top: tuple[str, ...] = listed(
        "PUBLIC_TOP",
        "patterns like `me.example/*`, in which only `*` has a meaning: any characters. None begins"
        " with it",
        "the prefixes of ids whose most viewed ones everybody may read"
        " ([`GET /api/v1/views/top`](badges.md#get-apiv1viewstop))",
        _parse_prefixes,
    )
    admin: bool = switch("ADMIN", "whether the operator's page is served at `/admin`")
    product: Settings = field(default_factory=partial(Settings.from_environment, {}, DEFAULTS))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> StandaloneSettings:
        """Read the settings of one machine and of every engine. Raises `SettingsError`."""
        defaults = defaults_in(environment)
        product = Settings.from_environment(environment, defaults)
        return cls(**read(cls, environment, defaults), product=product)

    @property
    def unix_socket(self) -> Path | None:
        """Return the path of the Unix socket to listen on, if it is one."""
        path = self.host.removeprefix(UNIX)
        return None if path == self.host else Path(path)

    @property
    def proxies(self) -> TrustedProxies:
        """Return the trusted proxies, with the peer of a Unix socket that is not for all users."""
        is_private = not self.socket_mode & stat.S_IWOTH
        return replace(self.trusted_proxies, unix=self.unix_socket is not None and is_private)

    @property
    def client_rates(self) -> dict[Action, Rate]:
        given = {
            Action.NEW_ID: (self.client_new_ids_per_minute, 60),
            Action.NEW_ID_A_DAY: (self.client_new_ids_per_day, 86_400),
            Action.CLAIM: (self.client_claims_per_minute, 60),
            Action.CHANGE: (self.client_changes_per_minute, 60),
            Action.PROOF: (self.client_proofs_per_minute, 60),
            Action.REQUEST: (self.client_requests_per_second, 1),
        }
        return {action: Rate(*rate) for action, rate in given.items() if rate[0]}


def known_settings() -> dict[str, Setting]:
    """Return the settings of one machine by name."""
    found = (setting for kind in (StandaloneSettings, Settings) for _, setting in settings_of(kind))
    return {one.name: one for one in found if not one.is_for_aws}


def defaults_in(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the defaults of one machine that are not those of every engine."""
    return {**DEFAULTS, DATA: str(default_folder(environment))}


@dataclass(frozen=True, slots=True)
class GivenSettings:
    """The settings of the environment, and those of a file, which they take precedence over."""

    environment: Mapping[str, str]
    path: str = ""
    of_file: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> GivenSettings:
        """Read the file that the environment names, if any. Raises `SettingsError`."""
        path = environment.get(SETTINGS, "")
        if not path:
            return cls(environment)
        known = known_settings()
        del known[SETTINGS]
        return cls(environment, path, _read_file(Path(path), known))

    def parse(self) -> StandaloneSettings:
        """Return the settings in force. Raises `SettingsError`."""
        given = {name: text for name, text in self.environment.items() if text}
        try:
            settings = StandaloneSettings.from_environment({**self.of_file, **given})
            if settings.product.webhook_secrets or settings.product.webhook_allow:
                sender.sender_of(settings.product)
            if settings.product.proofs:
                proving.parse_places(settings.product.proofs)
        except SettingsError as error:
            named = NAME.match(str(error))
            if self.path and named and self._source(named[0]) == self.path:
                raise SettingsError(f"{self.path}: {error}") from None
            raise
        return settings

    def in_force(self) -> Iterator[dict[str, str]]:
        """Yield the name, the value and the source of each setting. A secret is masked.

        The source is `default`, `environment` or the path of the file.
        """
        defaults = defaults_in(self.environment)
        for name, setting in known_settings().items():
            default = defaults.get(name, setting.default)
            text = self.environment.get(name) or self.of_file.get(name) or default
            shown = MASK if setting.is_secret and text else text
            yield {"name": name, "value": shown, "source": self._source(name)}

    def warn(self) -> None:
        """Log a name that is nearly a setting's, and a file of secrets that others may read."""
        known = known_settings()
        for name in sorted(self.environment.keys() - known.keys()):
            if len(name) > SHORT_NAME and (near := _near(name, known, NAMES_ALIKE)):
                telemetry.event(
                    logging.WARNING, "setting_unknown", name=name, fix=f"did you mean {near}?"
                )
        if not any(known[name].is_secret for name in self.of_file):
            return
        mode = stat.S_IMODE(Path(self.path).stat().st_mode)
        if mode & stat.S_IRWXO:  # the rights of those who are not in its group
            telemetry.event(
                logging.WARNING,
                "settings_file_not_private",
                file=self.path,
                mode=f"{mode:o}",
                fix=f"chmod o= {self.path}",
            )

    def _source(self, name: str) -> str:
        if self.environment.get(name):
            return "environment"
        return self.path if self.of_file.get(name) else DEFAULT


def _read_file(path: Path, known: Mapping[str, Setting]) -> dict[str, str]:
    """Return the settings of a file as texts, as the environment has them.

    Raises `SettingsError`. No message has a value, because it may be a secret.
    """
    try:
        with path.open("rb") as file:
            given = tomllib.load(file)
    except OSError as error:
        raise SettingsError(f"SETTINGS: {path} can't be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"SETTINGS: {path} is not valid TOML: {error}") from None
    return {name: _to_text(path, name, value, known) for name, value in given.items()}


def _near(name: str, known: Mapping[str, Setting], alike: float = 0.6) -> str:
    """Return the known name that is most like another one, or an empty text."""
    return next(iter(difflib.get_close_matches(name, known, 1, alike)), "")


def _to_text(path: Path, name: str, value: object, known: Mapping[str, Setting]) -> str:
    if name not in known:
        near = _near(name.upper(), known)
        hint = f"did you mean {near}?" if near else "docs/settings.md lists all settings"
        raise SettingsError(f"{path}: {name!r} is no setting of one machine; {hint}")
    form = known[name].form
    text = _text_of(form, value)
    if text is None or "\0" in text:
        raise SettingsError(f"{path}: {name} must be {FORMS[form]}")
    return text


def _text_of(form: Form, value: object) -> str | None:
    """Return the text of a value, or None if it does not have the form."""
    match form, value:
        case ("switch", bool()):
            return "on" if value else "off"
        case ("text", str()):
            return value
        case ("number", int()):
            return _join([value], int)
        case ("list" | "queues" | "numbers", list()):
            return _join(value, int if form == "numbers" else str)
        case ("queues", dict()):
            fits = all(isinstance(url, str) and "=" not in name for name, url in value.items())
            return _join(["=".join(pair) for pair in value.items()], str) if fits else None
    return None


def _join(values: list[object], kind: type) -> str | None:
    """Join the values of a list by commas, or return None if one of them has no place in it."""
    texts = [str(value) for value in values]
    fits = all(type(value) is kind for value in values) and "," not in "".join(texts)
    return ",".join(texts) if fits else None
