"""Signatures, verified by the library that receivers use."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from chalicelib.events.webhooks.signing import BadSecretError, BadWebhookIdError, Signer, new_secret

BODY = json.dumps({"event": "☕", "at": 1}, ensure_ascii=False).encode()
# The signature that Standard Webhooks' own tests expect of these four.
KNOWN_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105
KNOWN_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
KNOWN_TIME = 1_614_265_330
KNOWN_BODY = b'{"test": 2432232314}'
KNOWN_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def now() -> int:
    """Return the real time, because the library compares a signature's time with the real clock."""
    return int(time.time())


def secret_of(size: int) -> str:
    return "whsec_" + base64.b64encode(bytes(range(size))).decode()


def test_the_signature_is_that_of_the_specification() -> None:
    assert Signer([KNOWN_SECRET]).headers(KNOWN_ID, KNOWN_TIME, KNOWN_BODY) == {
        "webhook-id": KNOWN_ID,
        "webhook-timestamp": "1614265330",
        "webhook-signature": KNOWN_SIGNATURE,
    }


@given(st.text(), st.binary(min_size=24, max_size=64))
def test_every_body_and_every_secret_verify(text: str, key: bytes) -> None:
    secret = "whsec_" + base64.b64encode(key).decode()
    headers = Signer([secret]).headers("evt_1", now(), text.encode())
    Webhook(secret).verify(text.encode(), headers, json_parse=False)


def test_while_a_secret_is_changed_receivers_of_either_verify_and_no_others() -> None:
    present, older = new_secret(), new_secret()
    headers = Signer([present, older]).headers("evt_1", now(), BODY)
    first, second = headers["webhook-signature"].split(" ")
    for secret, signature in ((present, first), (older, second)):
        Webhook(secret).verify(BODY, headers)
        Webhook(secret).verify(BODY, headers | {"webhook-signature": signature})
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        Webhook(new_secret()).verify(BODY, headers)
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        Webhook(older).verify(BODY, headers | {"webhook-signature": first})


def test_a_new_secret_is_new_and_has_32_bytes() -> None:
    secrets = {new_secret() for _ in range(50)}
    assert len(secrets) == 50
    for secret in secrets:
        assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
        Signer([secret])


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        (secret_of(23), "must be 24 to 64 bytes in base64, not 23"),
        (secret_of(65), "must be 24 to 64 bytes in base64, not 65"),
        ("whsec_", "not 0"),
        ("", "must begin with whsec_"),
        (secret_of(32).removeprefix("whsec_"), "must begin with whsec_"),
        (secret_of(32).replace("whsec_", "WHSEC_"), "must begin with whsec_"),
        (secret_of(32).rstrip("="), "base64 with padding"),
        (secret_of(32) + "=", "base64 with padding"),
        (secret_of(32) + "\n", "base64 with padding"),
        (secret_of(64).replace("+", "-").replace("/", "_"), "base64 with padding"),
        ("whsec_" + "é" * 40, "base64 with padding"),
    ],
)
def test_a_bad_secret_is_refused_by_its_place_and_never_shown(secret: str, said: str) -> None:
    with pytest.raises(BadSecretError, match=r"^secret 2 ") as refused:
        Signer([new_secret(), secret])
    assert said in str(refused.value)
    assert len(secret) < 10 or secret.removeprefix("whsec_")[:8] not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_nothing_is_signed_without_a_secret() -> None:
    nothing: tuple[Sequence[str], ...] = ([], "", KNOWN_SECRET)
    for secrets in nothing:
        with pytest.raises(BadSecretError, match="give a list of secrets"):
            Signer(secrets)


def test_a_signer_does_not_show_its_secrets() -> None:
    signer = Signer([KNOWN_SECRET])
    key = base64.b64decode(KNOWN_SECRET.removeprefix("whsec_"))
    assert KNOWN_SECRET[6:] not in repr(signer)
    assert repr(key) not in repr(signer)


@pytest.mark.parametrize("webhook_id", ["", "a.b", "a b", "a\r\nX: 1", "é", "a" * 201, "a\n"])
def test_an_id_that_could_be_read_two_ways_is_refused(webhook_id: str) -> None:
    with pytest.raises(BadWebhookIdError, match="without a full stop"):
        Signer([KNOWN_SECRET]).headers(webhook_id, now(), BODY)


@pytest.mark.parametrize("webhook_id", ["a", "a" * 200, "evt_01K", "!-/~"])
def test_any_other_visible_id_is_signed(webhook_id: str) -> None:
    headers = Signer([KNOWN_SECRET]).headers(webhook_id, now(), BODY)
    Webhook(KNOWN_SECRET).verify(BODY, headers)
