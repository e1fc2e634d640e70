"""The settings that an operator gave: their precedence, their sources and their errors."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from chalicelib.events.webhooks import signing
from chalicelib.settings import SettingsError
from vumi.given_settings import MASK, GivenSettings, SettingInForce


def given(folder: Path, content: str, **environment: str) -> GivenSettings:
    path = folder / "settings.toml"
    path.write_text(content)
    return GivenSettings.read({"SETTINGS": str(path), **environment})


def refusal(settings: GivenSettings) -> str:
    with pytest.raises(SettingsError) as refused:
        settings.parse()
    return str(refused.value)


def test_the_environment_takes_precedence_over_the_file_and_it_over_the_default(
    tmp_path: Path,
) -> None:
    settings = given(tmp_path, 'PORT = 1\nDATA = "x"\nEVENTS = false', PORT="2", DATA="").parse()
    assert (settings.port, settings.folder, settings.product.events) == (2, Path("x"), False)
    assert settings.product.retention_seconds == 3_600


def test_without_a_file_the_environment_is_all() -> None:
    settings = GivenSettings.read({"PORT": "2", "SETTINGS": ""}).parse()
    assert (settings.port, settings.host) == (2, "127.0.0.1")


def test_each_setting_in_force_has_its_source_and_no_secret(tmp_path: Path) -> None:
    content = 'HOST = "::1"\nWEBHOOK_SECRETS = ["whsec_x"]\nIDS = []'
    found = given(tmp_path, content, PORT="2", GRACE_SECONDS="").in_force()
    by_name = {one.name: one for one in found}
    path = str(tmp_path / "settings.toml")
    for expected in (
        SettingInForce("HOST", "::1", path),
        SettingInForce("PORT", "2", "environment"),
        SettingInForce("GRACE_SECONDS", "600", "default"),
        SettingInForce("RETENTION_SECONDS", "3600", "default"),
        SettingInForce("WEBHOOK_SECRETS", MASK, path),
        SettingInForce("API_TOKEN_DIGESTS", "", "default"),
        SettingInForce("IDS", "", "default"),
        SettingInForce("SETTINGS", path, "environment"),
    ):
        assert by_name[expected.name] == expected
    assert "TABLE_NAME" not in by_name


def test_an_error_names_the_file_only_if_the_setting_is_from_it(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    message = "PORT must be a whole number from 0 to 65535, not '70000'"
    assert refusal(given(tmp_path, "PORT = 70000")) == f"{path}: {message}"
    assert refusal(given(tmp_path, "PORT = 1", PORT="70000")) == message
    assert refusal(GivenSettings.read({"PORT": "70000"})) == message


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("WEBHOOK_SECRETS", '["whsec_short"]', "WEBHOOK_SECRETS: secret 1 must be"),
        ("PROOFS", '["octocat"]', "PROOFS must be off, or PATTERN=URL"),
        ("WEBHOOK_ALLOW", '["10.0.0.1/8"]', "WEBHOOK_ALLOW must be comma-separated networks"),
        ("TRUSTED_PROXIES", '["proxy"]', "TRUSTED_PROXIES must be networks like"),
        ("RETENTION_SECONDS", "700", "RETENTION_SECONDS must be at least 1500"),
    ],
)
def test_an_error_of_any_check_names_the_file(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    refused = refusal(given(tmp_path, f"{name} = {content}"))
    assert refused.startswith(f"{tmp_path / 'settings.toml'}: {message}")
    assert "whsec_short" not in refused


def test_the_file_itself_is_not_a_setting_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="'SETTINGS' is no setting of"):
        given(tmp_path, 'SETTINGS = "other.toml"')


@pytest.mark.parametrize(
    ("content", "logged"),
    [(f'WEBHOOK_SECRETS = ["{signing.new_secret()}"]', 1), ("PORT = 1", 0)],
    ids=["with a secret", "without"],
)
def test_only_a_file_with_secrets_has_to_be_private(
    tmp_path: Path, content: str, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    settings = given(tmp_path, content)
    (tmp_path / "settings.toml").chmod(0o644)
    with caplog.at_level(logging.WARNING, "vu-mi"):
        settings.warn_of_readers()
    assert [one.message for one in caplog.records] == ["settings_file_not_private"] * logged
