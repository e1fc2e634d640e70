"""The settings of one machine: the address to listen on and the data folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from chalicelib.settings import Settings, SettingsError
from vumi.__main__ import address
from vumi.settings import StandaloneSettings


def test_without_any_setting_it_listens_to_this_machine_only() -> None:
    settings = StandaloneSettings.from_environment({})

    product = Settings(retention_seconds=3_600)
    assert settings == StandaloneSettings("127.0.0.1", 8000, Path("data"), product)


def test_every_setting_is_read() -> None:
    environment = {
        "HOST": "::1",
        "PORT": "9000",
        "DATA": "/srv/vu-mi",
        "VIEW_WINDOW_SECONDS": "60",
        "GRACE_SECONDS": "120",
        "RETENTION_SECONDS": "7200",
    }

    settings = StandaloneSettings.from_environment(environment)

    product = Settings(view_window_seconds=60, grace_seconds=120, retention_seconds=7_200)
    assert settings == StandaloneSettings("::1", 9000, Path("/srv/vu-mi"), product)


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
