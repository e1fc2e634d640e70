"""The settings have defaults, bounds, and messages that say what is valid."""

from __future__ import annotations

import pytest

from chalicelib.events import sender
from chalicelib.events.sender import sender_of
from chalicelib.outgoing.urls import Allowed
from chalicelib.settings import Feature, Settings, SettingsError, required

USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"


def test_every_setting_is_read_and_other_variables_are_ignored() -> None:
    environment = {
        "TABLE_NAME": "views",
        "VIEWS_QUEUE_URL": "https://queue",
        "VIEW_WINDOW_SECONDS": "60",
        "GRACE_SECONDS": "7200",
        "RETENTION_SECONDS": "31622400",
        "DELIVERY_QUEUE_URL": "https://deliveries",
        "DISTRIBUTION_QUEUE_URL": "https://distribution",
        "API_TOKEN_DIGESTS": f" {'a' * 64} , {'0' * 64},",
        "ARCHIVE_BUCKET": "journals",
        "WEBHOOK_ALLOW": "10.0.0.0/8, fd00::/8",
        "WEBHOOK_SECRETS": "whsec_new, whsec_old",
        "EVENT_QUEUES": "mails=https://sqs/1?a=b, orders",
        "RETRY_SECONDS": "1, 604800,1",
        "PUBLIC_URL": "http://[::1]:8000/base/path",
        "HOME": "/root",
    }
    assert Settings.from_environment(environment) == Settings(
        "views",
        "https://queue",
        60,
        7_200,
        366 * 86_400,
        delivery_queue_url="https://deliveries",
        distribution_queue_url="https://distribution",
        api_token_digests=frozenset({"a" * 64, "0" * 64}),
        archive_bucket="journals",
        webhook_allow="10.0.0.0/8, fd00::/8",
        webhook_secrets=("whsec_new", "whsec_old"),
        event_queues={"mails": "https://sqs/1?a=b", "orders": ""},
        retry_seconds=(1, 604_800, 1),
        public_url="http://[::1]:8000/base/path/",
    )


WHOLE = "must be a whole number from"
WAITS = "must be whole numbers from 1 to 604800, separated by commas"
QUEUES = "must be name=URL, separated by commas, with names of 1 to 80 letters, digits, - and _;"
DIGESTS = (
    "must be SHA-256 digests of operators' tokens, 64 hex digits in lower case each, separated by"
    " commas; number 2 is not. Create users' tokens by the command token"
)
COUNTERS = (
    "must be some of komarev, hits.sh, dwyl, visitor-badge, moe-counter, hit-counter,"
    " seeyoufarm, hitscounter, separated by commas"
)
URL = "must be a URL like https://badges.example.com/path, without a query"
NO_URLS = ["a.example", "ftp://a.example", "https://", "https://a/?b", "https://a/<b>"]
NO_NUMBERS = ["-1", "+5", "1.5", "5s", "five", "\u0665", "\u00b2", "1_000", "9" * 5_000]


@pytest.mark.parametrize(
    ("name", "form", "valid", "wrong"),
    [
        ("VIEW_WINDOW_SECONDS", f"{WHOLE} 1 to 86400, not", "", ["0", "86401", "5 ", *NO_NUMBERS]),
        ("GRACE_SECONDS", f"{WHOLE} 1 to 86400, not", "", ["0", "86401"]),
        ("RETENTION_SECONDS", f"{WHOLE} 1 to 31622400, not", "", ["0", "31622401"]),
        ("HSTS_SECONDS", f"{WHOLE} 0 to 63072000, not", "", ["-1", "63072001"]),
        ("RETRY_SECONDS", f"{WAITS}, not", "5,", ["0", "604801", *NO_NUMBERS]),
        ("EVENT_QUEUES", f"{QUEUES} not", "mails,", ["=x", "a b=x", "x" * 81, "ü", "a/b=x", "a;b"]),
        ("DROP_IN", f"{COUNTERS}, not", "komarev,", ["hits"]),
        ("PUBLIC_URL", f"{URL}, not", "", NO_URLS),
        ("EVENTS", "must be on or off, not", "", ["Off", "false", "0", " off", "no"]),
        ("WALLETS", "must be on or off, not", "", ["Off"]),
    ],
)
def test_a_wrong_text_is_refused_by_name(
    name: str, form: str, valid: str, wrong: list[str]
) -> None:
    for text in wrong:
        with pytest.raises(SettingsError) as refusal:
            Settings.from_environment({name: f"{valid}{text}"})
        assert str(refusal.value) == f"{name} {form} {text!r}"


def test_nothing_is_open_and_views_are_kept_longer_than_any_queue_keeps_a_message() -> None:
    settings = Settings.from_environment({})
    assert (settings.api_token_digests, settings.event_queues) == (frozenset(), {})
    assert not settings.can_sign
    assert settings.retention_seconds > 14 * 86_400
    assert 31 * 3_600 < sum(settings.retry_seconds) < 32 * 3_600


def test_a_view_is_kept_for_a_window_and_two_graces_at_least() -> None:
    """Until it is old it may be delivered again, and until its marker ends it is not folded."""
    lengths = {"VIEW_WINDOW_SECONDS": "5", "GRACE_SECONDS": "10"}
    assert Settings.from_environment({**lengths, "RETENTION_SECONDS": "25"}).retention_seconds == 25
    with pytest.raises(SettingsError) as refusal:
        Settings.from_environment({**lengths, "RETENTION_SECONDS": "24"})
    assert str(refusal.value) == (
        "RETENTION_SECONDS must be at least 25 (VIEW_WINDOW_SECONDS and twice GRACE_SECONDS),"
        " not 24"
    )


def test_an_engine_has_a_default_of_its_own_for_the_retention() -> None:
    defaults = {"RETENTION_SECONDS": "3600"}
    assert Settings.from_environment({}, defaults).retention_seconds == 3_600
    assert Settings.from_environment({"RETENTION_SECONDS": ""}, defaults).retention_seconds == 3_600
    set_here = {"RETENTION_SECONDS": "5000"}
    assert Settings.from_environment(set_here, defaults).retention_seconds == 5_000


def test_the_text_of_the_settings_has_no_secret() -> None:
    assert "whsec_" not in repr(Settings(webhook_secrets=("whsec_new",)))


def test_a_missing_setting_without_a_default_is_refused_by_name() -> None:
    assert required("TABLE_NAME", "views", "the name of the table") == "views"
    with pytest.raises(SettingsError, match="TABLE_NAME is not set; it must be the name of"):
        required("TABLE_NAME", "", "the name of the table")


@pytest.mark.parametrize("name", ["API_TOKEN_DIGESTS", "EVENT_QUEUES", "RETRY_SECONDS"])
@pytest.mark.parametrize("nothing", ["", " ", ",", " , "])
def test_an_empty_list_is_the_default(name: str, nothing: str) -> None:
    assert Settings.from_environment({name: nothing}) == Settings()


def test_a_malformed_digest_is_named_by_its_position_because_it_may_be_a_token() -> None:
    malformed = ["a" * 63, "a" * 65, "A" * 64, "g" * 64, "the token itself", "\u0660" * 64]
    for wrong in (*malformed, f"{'b' * 64}=", f"{'b' * 64}={USER}"):
        with pytest.raises(SettingsError) as refusal:
            Settings.from_environment({"API_TOKEN_DIGESTS": f"{'a' * 64},{wrong}"})
        assert str(refusal.value) == f"API_TOKEN_DIGESTS {DIGESTS}"


@pytest.mark.parametrize(
    ("name", "text", "can_sign"),
    [
        ("WEBHOOK_SECRETS", "whsec_new", True),
        ("HAS_WEBHOOK_SECRETS", "true", True),
        ("HAS_WEBHOOK_SECRETS", "", False),
        ("HAS_WEBHOOK_SECRETS", "false", False),
        ("HAS_WEBHOOK_SECRETS", "1", False),
    ],
)
def test_webhooks_can_be_signed_here_or_by_another_function(
    name: str, text: str, *, can_sign: bool
) -> None:
    assert Settings.from_environment({name: text}).can_sign is can_sign


def test_a_queue_listed_twice_is_refused() -> None:
    """One of two URLs would be ignored silently."""
    with pytest.raises(SettingsError, match="EVENT_QUEUES has mails twice; list it once"):
        Settings.from_environment({"EVENT_QUEUES": "mails=https://a,orders,mails=https://b"})


def test_a_sender_has_the_secrets_and_networks_of_the_settings() -> None:
    secret = sender.new_secret()
    assert sender_of(Settings()) is None
    made = sender_of(Settings(webhook_secrets=(secret,), webhook_allow="10.0.0.0/8"))
    assert made is not None
    assert made.http.allowed == Allowed.parse("10.0.0.0/8")


@pytest.mark.parametrize(
    ("environment", "features"),
    [
        ({"EVENTS": "", "WALLETS": "on"}, {Feature.EVENTS, Feature.WALLETS}),
        ({"EVENTS": "off"}, {Feature.WALLETS}),
    ],
)
def test_features_are_on_unless_they_are_switched_off(
    environment: dict[str, str], features: set[Feature]
) -> None:
    assert Settings.from_environment(environment).features == features
