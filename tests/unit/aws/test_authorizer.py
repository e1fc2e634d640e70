"""The authorizer as API Gateway calls it: its policy opens all routes or none."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any

import pytest
from chalice.app import AuthRequest

from app import app
from chalicelib.aws import resources
from chalicelib.aws.authorizer import CACHED_SECONDS, authorize
from chalicelib.http import tokens
from chalicelib.settings import Settings
from simulation.resources import GivenResources

TOKEN = tokens.new_token()
DIGEST = tokens.digest(TOKEN)
USERS_TOKEN = tokens.new_token()
USERS_DIGEST = tokens.digest(USERS_TOKEN)
USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
ARN = "arn:aws:execute-api:us-east-1:123456789012:abcdef/api/GET/timers/e"


@pytest.fixture(autouse=True)
def _set_known_tokens() -> Iterator[None]:
    settings = Settings(
        api_token_digests=frozenset({DIGEST, USERS_DIGEST, tokens.digest("another")}),
        token_users={USERS_DIGEST: USER},
    )
    resources.use(GivenResources(settings=settings))
    yield
    resources.use(None)


def asked(header: str, arn: str = ARN) -> dict[str, Any]:
    """Return the authorizer's answer to API Gateway."""
    response = authorize(
        {"type": "TOKEN", "authorizationToken": header, "methodArn": arn}, SimpleNamespace()
    )
    answer: dict[str, Any] = response
    return answer


def opened(policy: dict[str, Any]) -> list[str]:
    [statement] = policy["policyDocument"]["Statement"]
    assert (statement["Effect"], statement["Action"]) == ("Allow", "execute-api:Invoke")
    resources_of: list[str] = statement["Resource"]
    return resources_of


def test_a_token_opens_all_routes_because_the_answer_is_cached_for_all() -> None:
    for arn in (ARN, ARN.replace("GET/timers/e", "POST/api/v1/events")):
        policy = asked(f"Bearer {TOKEN}", arn)
        assert opened(policy) == ["arn:aws:execute-api:us-east-1:123456789012:abcdef/api/*/*"]
        assert policy["principalId"] == DIGEST
        assert policy["context"] == {"role": "operator", "user": ""}


def test_a_users_token_opens_wallets_alone_and_names_its_user() -> None:
    policy = asked(f"Bearer {USERS_TOKEN}")
    api = "arn:aws:execute-api:us-east-1:123456789012:abcdef/api"
    assert opened(policy) == [
        f"{api}/{method}/api/v1/{path}"
        for path in ("wallets", "wallets/*")
        for method in ("GET", "PATCH", "POST", "PUT")
    ]
    assert policy["principalId"] == USERS_DIGEST
    assert policy["context"] == {"role": "user", "user": USER}


def test_a_users_token_opens_no_path_that_only_ends_like_a_wallets() -> None:
    """A `*` in a policy matches slashes too."""
    event = ARN.replace("timers/e", "api/v1/events/e/api/v1/wallets/x")
    assert not any(fnmatchcase(event, one) for one in opened(asked(f"Bearer {USERS_TOKEN}")))
    wallet = ARN.replace("timers/e", "api/v1/wallets/x/balance")
    assert any(fnmatchcase(wallet, one) for one in opened(asked(f"Bearer {USERS_TOKEN}")))


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", DIGEST],
    ids=["none", "no token", "another", "no bearer", "a digest"],
)
def test_an_unknown_token_opens_nothing_and_is_logged_without_its_text(
    caplog: pytest.LogCaptureFixture, header: str
) -> None:
    with caplog.at_level(logging.INFO):
        policy = asked(header)
    assert opened(policy) == []
    assert policy["principalId"] == "nobody"
    assert policy["context"] == {}
    assert caplog.messages == ["token_refused"]
    assert vars(caplog.records[0])["fields"] == {"function": "authorize"}
    assert not header or header not in str(caplog.records[0].__dict__)


def test_a_token_is_in_no_answer_and_no_log_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert TOKEN not in str(asked(f"Bearer {TOKEN}"))
    assert TOKEN not in caplog.text
    assert "token_refused" not in caplog.messages


def test_every_route_of_events_and_wallets_except_badges_has_it() -> None:
    behind = {
        (method, path)
        for path, methods in app.routes.items()
        for method, route in methods.items()
        if route.authorizer is not None
    }
    assert behind == {
        ("POST", "/timers"),
        ("GET", "/timers/{timer_id}"),
        ("GET", "/api/v1/events"),
        ("POST", "/api/v1/events"),
        ("GET", "/api/v1/events/{event_id}"),
        ("DELETE", "/api/v1/events/{event_id}"),
        ("POST", "/echoAtTime"),
        ("POST", "/api/v1/wallets"),
        ("GET", "/api/v1/wallets/me"),
        ("PATCH", "/api/v1/wallets/{wallet_id}"),
        ("GET", "/api/v1/wallets/{wallet_id}/balance"),
        ("GET", "/api/v1/wallets/{wallet_id}/transactions"),
        ("PUT", "/api/v1/wallets/{wallet_id}/deposit"),
        ("PUT", "/api/v1/wallets/{wallet_id}/transfer/{target_id}"),
    }


def test_an_answer_is_cached_for_five_minutes() -> None:
    [handler] = [one for one in app.builtin_auth_handlers if one.name == "authorize"]
    assert handler.ttl_seconds == CACHED_SECONDS == 300


def test_it_reads_the_event_of_chalice() -> None:
    assert AuthRequest("TOKEN", "Bearer x", ARN).token == "Bearer x"  # noqa: S105  a header
