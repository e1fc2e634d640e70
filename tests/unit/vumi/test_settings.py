"""The settings of one machine: its address, its data folder, and the limits of clients."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from chalicelib.limits import Action
from chalicelib.settings import Settings, SettingsError
from vumi.cli.serve import address
from vumi.metrics.access import MetricsAccess
from vumi.server.client_limits import Rate
from vumi.server.proxies import TrustedProxies
from vumi.settings import StandaloneSettings


def test_without_any_setting_it_listens_to_this_machine_only() -> None:
    settings = StandaloneSettings.from_environment({})

    assert settings == StandaloneSettings()
    assert (settings.host, settings.port, settings.folder) == ("127.0.0.1", 8000, Path("data"))
    assert settings.unix_socket is None
    assert settings.product == Settings(retention_seconds=3_600)
    assert settings.client_rates == {
        Action.NEW_ID: Rate(300, 60),
        Action.CLAIM: Rate(30, 60),
        Action.PROOF: Rate(10, 60),
    }
    assert settings.proxies == TrustedProxies()


def test_every_setting_is_read() -> None:
    environment = {
        "HOST": "::1",
        "PORT": "9000",
        "DATA": "/srv/vu-mi",
        "VIEW_WINDOW_SECONDS": "60",
        "GRACE_SECONDS": "120",
        "RETENTION_SECONDS": "7200",
        "CLIENT_NEW_IDS_PER_MINUTE": "7",
        "CLIENT_CLAIMS_PER_MINUTE": "0",
        "CLIENT_PROOFS_PER_MINUTE": "9",
        "PROOFS": "off",
        "CLIENT_REQUESTS_PER_SECOND": "1000000",
        "TRUSTED_PROXIES": "10.0.0.0/8",
        "SOCKET_MODE": "606",
        "SETTINGS": "settings.toml",
        "ADMIN": "off",
    }

    settings = StandaloneSettings.from_environment(environment)

    assert (settings.host, settings.port, settings.folder) == ("::1", 9000, Path("/srv/vu-mi"))
    assert settings.product == Settings(
        view_window_seconds=60, grace_seconds=120, retention_seconds=7_200, proofs="off"
    )
    assert settings.client_rates == {
        Action.NEW_ID: Rate(7, 60),
        Action.PROOF: Rate(9, 60),
        Action.REQUEST: Rate(1_000_000, 1),
    }
    assert settings.proxies == TrustedProxies((IPv4Network("10.0.0.0/8"),))
    assert (settings.socket_mode, settings.file) == (0o606, "settings.toml")
    assert settings.admin is False


def test_a_host_may_be_a_unix_socket_whose_peer_is_trusted() -> None:
    """Only a process with rights to the socket can connect to it."""
    settings = StandaloneSettings.from_environment({"HOST": "unix:/run/vumi/vumi.sock"})

    assert settings.unix_socket == Path("/run/vumi/vumi.sock")
    assert settings.proxies == TrustedProxies(unix=True)


@pytest.mark.parametrize(("mode", "is_trusted"), [("666", False), ("602", False), ("664", True)])
def test_the_peer_of_a_unix_socket_for_all_users_is_not_trusted(
    mode: str, *, is_trusted: bool
) -> None:
    given = {"HOST": "unix:/run/vumi/vumi.sock", "SOCKET_MODE": mode}
    assert StandaloneSettings.from_environment(given).proxies.unix is is_trusted


@pytest.mark.parametrize("given", ["0660", "66", "680", "rw-", "-66"])
def test_a_mode_is_three_octal_digits(given: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        StandaloneSettings.from_environment({"SOCKET_MODE": given})
    assert str(refusal.value) == f"SOCKET_MODE must be three octal digits, like 660, not {given!r}"


def test_an_empty_host_or_folder_is_the_default() -> None:
    settings = StandaloneSettings.from_environment({"HOST": "", "DATA": ""})

    assert (settings.host, settings.folder) == ("127.0.0.1", Path("data"))


@pytest.mark.parametrize(("given", "port"), [("0", 0), ("1", 1), ("65535", 65_535)])
def test_a_port_within_bounds_is_accepted(given: str, port: int) -> None:
    assert StandaloneSettings.from_environment({"PORT": given}).port == port


@pytest.mark.parametrize("given", ["65536", "-1", "http", "80.5", " 80", "٨٠"])
def test_any_other_port_is_refused_by_name(given: str) -> None:
    with pytest.raises(SettingsError, match="PORT must be a whole number from 0 to 65535"):
        StandaloneSettings.from_environment({"PORT": given})


@pytest.mark.parametrize(
    "name",
    [
        "CLIENT_NEW_IDS_PER_MINUTE",
        "CLIENT_CLAIMS_PER_MINUTE",
        "CLIENT_PROOFS_PER_MINUTE",
        "CLIENT_REQUESTS_PER_SECOND",
    ],
)
@pytest.mark.parametrize("given", ["-1", "1000001", "1.5", "none"])
def test_any_other_limit_is_refused_by_name(name: str, given: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        StandaloneSettings.from_environment({name: given})
    assert str(refusal.value) == f"{name} must be a whole number from 0 to 1000000, not {given!r}"


def test_a_wrong_setting_of_every_engine_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match="VIEW_WINDOW_SECONDS must be a whole number from 1"):
        StandaloneSettings.from_environment({"VIEW_WINDOW_SECONDS": "0"})


@pytest.mark.parametrize("retention", [300, 301])
def test_a_retention_of_a_window_and_two_graces_is_the_least(retention: int) -> None:
    """60 + 2 * 120 = 300."""
    environment = {"VIEW_WINDOW_SECONDS": "60", "GRACE_SECONDS": "120"}

    settings = StandaloneSettings.from_environment(
        environment | {"RETENTION_SECONDS": str(retention)}
    )

    assert settings.product.retention_seconds == retention


@pytest.mark.parametrize("given", [{"RETENTION_SECONDS": "299"}, {"GRACE_SECONDS": "1771"}])
def test_a_retention_that_is_shorter_is_refused_by_name(given: dict[str, str]) -> None:
    """60 + 2 * 1771 = 3602, and the default is 3600."""
    environment = {"VIEW_WINDOW_SECONDS": "60", "GRACE_SECONDS": "120"} | given

    with pytest.raises(SettingsError, match="RETENTION_SECONDS must be at least 3"):
        StandaloneSettings.from_environment(environment)


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


def test_the_metrics_are_for_this_machine_by_default_and_for_tokens_alone_if_set() -> None:
    found = [
        StandaloneSettings.from_environment({"METRICS": given}).metrics
        for given in ("", "local", "token")
    ]
    assert found == [MetricsAccess.LOCAL, MetricsAccess.LOCAL, MetricsAccess.TOKEN]


def test_the_access_log_is_off_unless_it_is_switched_on() -> None:
    found = [
        StandaloneSettings.from_environment({"ACCESS_LOG": given}).access_log
        for given in ("", "off", "on")
    ]
    assert found == [False, False, True]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("METRICS", "METRICS must be local or token, not 'yes'"),
        ("ACCESS_LOG", "ACCESS_LOG must be on or off, not 'yes'"),
    ],
)
def test_a_setting_of_monitoring_that_is_no_choice_is_refused(name: str, message: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        StandaloneSettings.from_environment({name: "yes"})
    assert str(refusal.value) == message
