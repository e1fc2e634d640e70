"""The settings of one machine: their values, precedence, sources, forms in a file, and errors."""

from __future__ import annotations

import logging
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from chalicelib.events import sender
from chalicelib.resources import Action
from chalicelib.settings import Settings, SettingsError
from simulation.logs import logged_events
from vumi.cli.serve import address
from vumi.metrics.access import MetricsAccess
from vumi.server.clients import Rate, TrustedProxies
from vumi.settings import FORMS, MASK, GivenSettings, StandaloneSettings, known_settings


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


def test_limits_and_proxies_are_those_that_are_set() -> None:
    names = ("CLIENT_CLAIMS_PER_MINUTE", "CLIENT_CHANGES_PER_MINUTE", "CLIENT_NEW_IDS_PER_DAY")
    settings = read(
        **dict.fromkeys(names, "0"),
        CLIENT_NEW_IDS_PER_MINUTE="7",
        CLIENT_PROOFS_PER_MINUTE="9",
        CLIENT_REQUESTS_PER_SECOND="1000000",
        TRUSTED_PROXIES="10.0.0.0/8",
    )
    assert settings.client_rates == {
        Action.NEW_ID: Rate(7, 60),
        Action.PROOF: Rate(9, 60),
        Action.REQUEST: Rate(1_000_000, 1),
    }
    assert settings.proxies == TrustedProxies((IPv4Network("10.0.0.0/8"),))


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


KNOWN = known_settings()
SECRET = "whsec_c2VjcmV0"  # noqa: S105  a value that no message may have


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings.toml"


def given(path: Path, content: str, **environment: str) -> GivenSettings:
    path.write_text(content)
    return GivenSettings.read({"SETTINGS": str(path), **environment})


def refusal(path: Path, content: str, **environment: str) -> str:
    """Return the error of a file, which it calls FILE."""
    with pytest.raises(SettingsError) as refused:
        given(path, content, **environment).parse()
    return str(refused.value).replace(str(path), "FILE")


def test_the_environment_takes_precedence_over_the_file_and_it_over_the_default(
    path: Path,
) -> None:
    settings = given(path, 'PORT = 1\nDATA = "x"\nEVENTS = false', PORT="2", DATA="").parse()
    assert (settings.port, settings.folder, settings.product.events) == (2, Path("x"), False)
    assert settings.product.retention_seconds == 3_600
    settings = GivenSettings.read({"PORT": "2", "SETTINGS": ""}).parse()
    assert (settings.port, settings.host) == (2, "127.0.0.1")


def test_each_setting_in_force_has_its_source_and_no_secret(path: Path) -> None:
    content = 'HOST = "::1"\nWEBHOOK_SECRETS = ["whsec_x"]\nIDS = []'
    found = given(path, content, PORT="2", GRACE_SECONDS="").in_force()
    by_name = {one["name"]: (one["value"], one["source"]) for one in found}
    expected = {
        "HOST": ("::1", str(path)),
        "PORT": ("2", "environment"),
        "GRACE_SECONDS": ("600", "default"),
        "RETENTION_SECONDS": ("3600", "default"),
        "WEBHOOK_SECRETS": (MASK, str(path)),
        "API_TOKEN_DIGESTS": ("", "default"),
        "IDS": ("", "default"),
        "SETTINGS": (str(path), "environment"),
    }
    assert expected.items() <= by_name.items()
    assert "TABLE_NAME" not in by_name


def test_an_error_names_the_file_only_if_the_setting_is_from_it(path: Path) -> None:
    message = "PORT must be a whole number from 0 to 65535, not '70000'"
    assert refusal(path, "PORT = 70000") == f"FILE: {message}"
    assert refusal(path, "PORT = 1", PORT="70000") == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('WEBHOOK_SECRETS = ["whsec_short"]', "FILE: WEBHOOK_SECRETS: secret 1 must be"),
        ('PROOFS = ["octocat"]', "FILE: PROOFS must be off, or PATTERN=URL"),
        ('WEBHOOK_ALLOW = ["10.0.0.1/8"]', "FILE: WEBHOOK_ALLOW must be comma-separated networks"),
        ('TRUSTED_PROXIES = ["proxy"]', "FILE: TRUSTED_PROXIES must be networks like"),
        ("RETENTION_SECONDS = 700", "FILE: RETENTION_SECONDS must be at least 1500"),
        ("PROT = 1", "FILE: 'PROT' is no setting of one machine; did you mean PORT?"),
        ("port = 1", "FILE: 'port' is no setting of one machine; did you mean PORT?"),
        ("xyz = 1", "FILE: 'xyz' is no setting of one machine; docs/settings.md lists all"),
        ('"a\\nb" = 1', "FILE: 'a\\nb' is no setting of one machine; docs/settings.md lists all"),
        ("[server]\nPORT = 1", "FILE: 'server' is no setting of one machine; docs/settings.md"),
        ('TABLE_NAME = "x"', "FILE: 'TABLE_NAME' is no setting of"),
        ('SETTINGS = "other.toml"', "FILE: 'SETTINGS' is no setting of"),
        ("PORT = 1\nHOST 127.0.0.1\n", "SETTINGS: FILE is not valid TOML: "),
        (f'WEBHOOK_SECRETS = "{SECRET}"', "FILE: WEBHOOK_SECRETS must be a list of strings"),
        (f'WEBHOOK_SECRETS = ["{SECRET},"]', "FILE: WEBHOOK_SECRETS must be a list of strings"),
        (f'WEBHOOK_SECRET = "{SECRET}"', "FILE: 'WEBHOOK_SECRET' is no setting of one machine"),
        (f'WEBHOOK_SECRETS = ["{SECRET}"', "SETTINGS: FILE is not valid TOML: "),
        (f"WEBHOOK_SECRETS = {SECRET}", "SETTINGS: FILE is not valid TOML: "),
        (f'IDS = ["{SECRET}"]\nIDS = ["{SECRET}"]', "SETTINGS: FILE is not valid TOML: "),
    ],
)
def test_a_wrong_file_is_refused_with_the_fix_and_without_a_secret(
    path: Path, content: str, message: str
) -> None:
    refused = refusal(path, content)
    assert refused.startswith(message)
    assert SECRET not in refused
    assert "whsec_short" not in refused


def test_a_file_that_cannot_be_read_is_named(path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        GivenSettings.read({"SETTINGS": str(path)})
    assert str(refused.value) == f"SETTINGS: {path} can't be read: No such file or directory"
    path.write_bytes(b'PORT = 1\nHOST = "\xe9"')
    with pytest.raises(SettingsError, match="is not valid TOML"):
        GivenSettings.read({"SETTINGS": str(path)})


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
def test_a_value_is_the_text_of_the_environment(path: Path, line: str, text: str) -> None:
    assert list(given(path, line).of_file.values()) == [text]


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
def test_a_value_of_another_form_is_refused_by_name(path: Path, name: str, value: str) -> None:
    message = f"FILE: {name} must be {FORMS[KNOWN[name].form]}"
    assert refusal(path, f"{name} = {value}") == message


@pytest.mark.parametrize(("mode", "logged"), [(0o600, 0), (0o640, 0), (0o644, 1), (0o602, 1)])
def test_a_file_of_secrets_with_rights_of_all_users_is_logged(
    path: Path, mode: int, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A group has its rights from the operator."""
    path.touch(mode)
    path.chmod(mode)
    given(path, "PORT = 1").warn()
    assert logged_events(caplog) == [], "it has no secret"
    given(path, f'WEBHOOK_SECRETS = ["{sender.new_secret()}"]').warn()
    fields = {"file": str(path), "mode": f"{mode:o}", "fix": f"chmod o= {path}"}
    expected = (logging.WARNING, "settings_file_not_private", fields)
    assert logged_events(caplog) == [expected] * logged


def test_a_name_in_the_environment_that_is_nearly_a_setting_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    others = {"HOSTNAME": "x", "HOME": "x", "PATH": "x", "PORT": "1"}
    GivenSettings(others | {"PROT": "9000"}).warn()
    expected = {"name": "PROT", "fix": "did you mean PORT?"}
    assert logged_events(caplog) == [(logging.WARNING, "setting_unknown", expected)]
