"""The settings file: its values become the texts of the environment, or are refused by name."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from chalicelib.settings import SettingsError
from vumi.settings import known_settings
from vumi.settings_file import FORMS, read_texts, warn_of_readers

KNOWN = known_settings()
SECRET = "whsec_c2VjcmV0"  # noqa: S105  a value that no message may have


def texts(folder: Path, content: str) -> dict[str, str]:
    path = folder / "settings.toml"
    path.write_text(content)
    return read_texts(path, KNOWN)


def refusal(folder: Path, content: str) -> str:
    with pytest.raises(SettingsError) as refused:
        texts(folder, content)
    return str(refused.value).replace(str(folder / "settings.toml"), "FILE")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('HOST = "::1"', "::1"),
        ("PORT = 9_000", "9000"),
        ("EVENTS = false", "off"),
        ("EVENTS = true", "on"),
        ('IDS = ["owner/*", "a b"]', "owner/*,a b"),
        ("IDS = []", ""),
        ("RETRY_SECONDS = [5, 30]", "5,30"),
        ('EVENT_QUEUES = ["mails", "orders"]', "mails,orders"),
        (
            '[EVENT_QUEUES]\nmails = "https://sqs/1?a=b"\norders = ""',
            "mails=https://sqs/1?a=b,orders=",
        ),
    ],
)
def test_a_value_is_the_text_of_the_environment(tmp_path: Path, line: str, text: str) -> None:
    assert list(texts(tmp_path, line).values()) == [text]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOST", "1"),
        ("HOST", '["127.0.0.1"]'),
        ("HOST", '"a\\u0000b"'),
        ("PORT", '"8000"'),
        ("PORT", "80.5"),
        ("PORT", "true"),
        ("EVENTS", '"on"'),
        ("EVENTS", "1"),
        ("IDS", '"owner/*"'),
        ("IDS", '["a,b"]'),
        ("IDS", "[1]"),
        ("IDS", '{ a = "b" }'),
        ("RETRY_SECONDS", '["5"]'),
        ("RETRY_SECONDS", "[true]"),
        ("RETRY_SECONDS", "5"),
        ("EVENT_QUEUES", '"mails"'),
        ("EVENT_QUEUES", "{ mails = 1 }"),
        ("EVENT_QUEUES", '{ "a=b" = "" }'),
        ("EVENT_QUEUES", '{ mails = "https://a,orders" }'),
        ("DATA", "2026-11-22"),
    ],
)
def test_a_value_of_another_form_is_refused_by_name(tmp_path: Path, name: str, value: str) -> None:
    assert (
        refusal(tmp_path, f"{name} = {value}") == f"FILE: {name} must be {FORMS[KNOWN[name].form]}"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("PROT = 1", "FILE: 'PROT' is no setting of one machine; did you mean PORT?"),
        ("port = 1", "FILE: 'port' is no setting of one machine; did you mean PORT?"),
        (
            "xyz = 1",
            "FILE: 'xyz' is no setting of one machine; docs/settings.md lists all settings",
        ),
        (
            '"a\\nb" = 1',
            "FILE: 'a\\nb' is no setting of one machine; docs/settings.md lists all settings",
        ),
        (
            "[server]\nPORT = 1",
            "FILE: 'server' is no setting of one machine; docs/settings.md lists",
        ),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(
    tmp_path: Path, line: str, message: str
) -> None:
    assert refusal(tmp_path, line).startswith(message)


def test_a_setting_of_a_stack_is_unknown_to_one_machine(tmp_path: Path) -> None:
    assert refusal(tmp_path, 'TABLE_NAME = "x"').startswith("FILE: 'TABLE_NAME' is no setting of")


@pytest.mark.parametrize(
    "content",
    [
        f'WEBHOOK_SECRETS = "{SECRET}"',
        f'WEBHOOK_SECRETS = ["{SECRET},"]',
        f'WEBHOOK_SECRET = "{SECRET}"',
        f'WEBHOOK_SECRETS = ["{SECRET}"',
        f"WEBHOOK_SECRETS = {SECRET}",
        f'WEBHOOK_SECRETS = ["{SECRET}"]\nWEBHOOK_SECRETS = ["{SECRET}"]',
    ],
)
def test_no_message_has_a_secret(tmp_path: Path, content: str) -> None:
    assert SECRET not in refusal(tmp_path, content)


def test_a_file_that_is_not_toml_is_refused_with_the_place(tmp_path: Path) -> None:
    message = refusal(tmp_path, "PORT = 1\nHOST 127.0.0.1\n")
    assert message.startswith("SETTINGS: FILE is not valid TOML: ")
    assert "line 2" in message
    path = tmp_path / "latin-1.toml"
    path.write_bytes(b'HOST = "\xe9"')
    with pytest.raises(SettingsError, match="is not valid TOML"):
        read_texts(path, KNOWN)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        read_texts(tmp_path / "none.toml", KNOWN)
    expected = f"SETTINGS: {tmp_path / 'none.toml'} can't be read: No such file or directory"
    assert str(refused.value) == expected


@pytest.mark.parametrize(("mode", "logged"), [(0o600, 0), (0o640, 0), (0o644, 1), (0o602, 1)])
def test_a_file_of_secrets_with_rights_of_all_users_is_logged(
    tmp_path: Path, mode: int, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A group has its rights from the operator."""
    path = tmp_path / "settings.toml"
    path.touch()
    path.chmod(mode)
    with caplog.at_level(logging.WARNING, "vu-mi"):
        warn_of_readers(path)
    fields = {
        "function": "vu-mi",
        "file": str(path),
        "mode": f"{mode:o}",
        "fix": f"chmod o= {path}",
    }
    assert [one.__dict__["fields"] for one in caplog.records] == [fields] * logged
