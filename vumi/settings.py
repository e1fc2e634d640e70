"""The settings of one machine: its address, its data folder, and the limits of clients."""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from chalicelib.resources import Action
from chalicelib.settings import (
    Setting,
    Settings,
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
from vumi.server.client_limits import Rate
from vumi.server.proxies import TrustedProxies

DEFAULTS = {"RETENTION_SECONDS": "3600"}
"""The default retention of a view: no message is delivered again after it was handled."""
MAX_PER_PERIOD = 1_000_000
DATA = "DATA"
UNIX = "unix:"
"""The beginning of a `HOST` that is the path of a Unix socket."""
MODE = re.compile("[0-7]{3}")


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
    file: str = one_text("SETTINGS", "", "a path", "the settings file, in TOML")
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
