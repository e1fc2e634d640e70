"""The settings of one machine: its address, its data folder, and the limits of clients."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from chalicelib.resources import Action
from chalicelib.settings import Settings, SettingsError
from vumi.cli.serve import address
from vumi.metrics.access import MetricsAccess
from vumi.server.client_limits import Rate
from vumi.server.proxies import TrustedProxies
from vumi.settings import StandaloneSettings


def read(**environment: str) -> StandaloneSettings:
    return StandaloneSettings.from_environment(environment)


def test_without_any_setting_it_listens_to_this_machine_only() -> None:
    settings = read(HOST="", DATA="")
    assert settings == StandaloneSettings(folder=Path("data"))
    assert (settings.host, settings.port, settings.folder) == ("127.0.0.1", 8000, Path("data"))
    assert settings.unix_socket is None
    assert settings.product == Settings(retention_seconds=3_600)
    assert settings.client_rates == {
        Action.NEW_ID: Rate(300, 60),
        Action.NEW_ID_A_DAY: Rate(2_000, 86_400),
        Action.CLAIM: Rate(30, 60),
        Action.CHANGE: Rate(120, 60),
        Action.PROOF: Rate(10, 60),
    }
    assert settings.proxies == TrustedProxies()
    assert (settings.metrics, settings.access_log) == (MetricsAccess.LOCAL, False)


def test_every_setting_is_read() -> None:
    environment = {
        "HOST": "::1",
        "PORT": "9000",
        "DATA": "/srv/vu-mi",
        "VIEW_WINDOW_SECONDS": "60",
        "GRACE_SECONDS": "120",
        "RETENTION_SECONDS": "7200",
        "CLIENT_NEW_IDS_PER_MINUTE": "7",
        "CLIENT_NEW_IDS_PER_DAY": "8",
        "CLIENT_CLAIMS_PER_MINUTE": "0",
        "CLIENT_CHANGES_PER_MINUTE": "0",
        "MAX_BADGES": "11",
        "CLIENT_PROOFS_PER_MINUTE": "9",
        "PROOFS": "off",
        "CLIENT_REQUESTS_PER_SECOND": "1000000",
        "TRUSTED_PROXIES": "10.0.0.0/8",
        "SOCKET_MODE": "606",
        "SETTINGS": "settings.toml",
        "ADMIN": "off",
        "PUBLIC_TOP": "me.example/*,b?",
        "METRICS": "token",
        "ACCESS_LOG": "on",
    }
    settings = read(**environment)
    assert (settings.host, settings.port, settings.folder) == ("::1", 9000, Path("/srv/vu-mi"))
    assert settings.product == Settings(
        view_window_seconds=60, grace_seconds=120, retention_seconds=7_200, proofs="off"
    )
    assert settings.client_rates == {
        Action.NEW_ID: Rate(7, 60),
        Action.NEW_ID_A_DAY: Rate(8, 86_400),
        Action.PROOF: Rate(9, 60),
        Action.REQUEST: Rate(1_000_000, 1),
    }
    assert settings.proxies == TrustedProxies((IPv4Network("10.0.0.0/8"),))
    assert (settings.socket_mode, settings.file) == (0o606, "settings.toml")
    assert settings.max_badges == 11
    assert (settings.admin, settings.access_log) == (False, True)
    assert settings.public_top == ("me.example/*", "b?")
    assert settings.metrics is MetricsAccess.TOKEN


@pytest.mark.parametrize(
    ("mode", "is_trusted"), [("", True), ("666", False), ("602", False), ("664", True)]
)
def test_the_peer_of_a_unix_socket_is_trusted_unless_it_is_for_all_users(
    mode: str, *, is_trusted: bool
) -> None:
    """Only a process with rights to the socket can connect to it."""
    settings = read(HOST="unix:/run/vumi/vumi.sock", SOCKET_MODE=mode)
    assert settings.unix_socket == Path("/run/vumi/vumi.sock")
    assert settings.proxies == TrustedProxies(unix=is_trusted)


WHOLE = "must be a whole number from"


@pytest.mark.parametrize(
    ("name", "accepted", "refused", "message"),
    [
        ("SOCKET_MODE", ["000", "777"], ["0660", "66", "680", "-66"], "must be three octal digits"),
        ("PORT", ["0", "65535"], ["65536", "-1", " 80", "٨٠"], f"{WHOLE} 0 to 65535"),
        ("CLIENT_NEW_IDS_PER_MINUTE", ["0"], ["-1", "1000001"], f"{WHOLE} 0 to 1000000"),
        ("CLIENT_CLAIMS_PER_MINUTE", ["0"], ["-1", "1000001"], f"{WHOLE} 0 to 1000000"),
        ("CLIENT_PROOFS_PER_MINUTE", ["0"], ["-1", "1000001"], f"{WHOLE} 0 to 1000000"),
        ("CLIENT_REQUESTS_PER_SECOND", ["0"], ["-1", "1000001"], f"{WHOLE} 0 to 1000000"),
        ("VIEW_WINDOW_SECONDS", ["1"], ["0"], f"{WHOLE} 1 to 86400"),
        ("RETENTION_SECONDS", ["1500"], ["1499"], "must be at least 1500"),
        ("GRACE_SECONDS", ["1650"], ["1651"], "must be at least 3602"),
        ("METRICS", ["", "local", "token"], ["yes"], "must be local or token"),
        ("PUBLIC_TOP", ["", "a*", "me.example/*, b"], ["*", "a, */b"], "that don't begin with"),
        ("ACCESS_LOG", ["", "off", "on"], ["yes"], "must be on or off"),
        ("TRUSTED_PROXIES", ["::1"], ["proxy"], "must be networks like"),
    ],
)
def test_a_setting_is_refused_by_name_unless_it_is_valid(
    name: str, accepted: list[str], refused: list[str], message: str
) -> None:
    """The window is 300 s, and the retention of a view is a window and twice the grace at least."""
    for text in accepted:
        read(**{name: text})
    for text in refused:
        with pytest.raises(SettingsError, match=message) as refusal:
            read(**{name: text})
        assert str(refusal.value).startswith((f"{name} ", "RETENTION_SECONDS "))


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ("127.0.0.1", "127.0.0.1:80"),
        ("views.lan", "views.lan:80"),
        ("0.0.0.0", "127.0.0.1:80"),  # noqa: S104  only named
        ("::", "[::1]:80"),
        ("fd00::7", "[fd00::7]:80"),
    ],
)
def test_the_url_has_an_address_that_clients_can_reach(host: str, named: str) -> None:
    assert address(host, 80) == f"http://{named}/"
