"""The authorizers of both APIs, with events and answers as AWS documents them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from chalicelib.aws import http_authorizer, resources
from chalicelib.aws.chalice_routes import authorize
from chalicelib.http import tokens
from chalicelib.settings import Settings
from chalicelib.storage.errors import UnavailableError
from simulation.aws_events import authorizer_event
from simulation.resources import GivenResources
from simulation.storage import FaultyTable, MemoryTable, store_token

TOKEN, BOOTSTRAP, USERS_TOKEN = (name * 6 for name in ("operator", "bootstrap", "users"))
SETTINGS = Settings(api_token_digests=frozenset({tokens.digest(BOOTSTRAP)}))
BOOTSTRAP_NAME = f"API_TOKEN_DIGESTS {tokens.digest(BOOTSTRAP)[:12]}"
USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
ARN = "arn:aws:execute-api:us-east-1:123456789012:abcdef/api/GET/timers/e"
REFUSED = {"isAuthorized": False}


@pytest.fixture(autouse=True)
def table() -> Iterator[MemoryTable]:
    """Give the functions on AWS a table with the tokens."""
    table = MemoryTable()
    store_token(table, TOKEN)
    store_token(table, USERS_TOKEN, USER)
    resources.use(GivenResources(table, settings=SETTINGS))
    yield table
    resources.use(None)


# ---- of a REST API: its policy opens all routes or none


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
        for token, name in ((TOKEN, "a-test"), (BOOTSTRAP, BOOTSTRAP_NAME)):
            policy = asked(f"Bearer {token}", arn)
            assert opened(policy) == ["arn:aws:execute-api:us-east-1:123456789012:abcdef/api/*/*"]
            assert policy["principalId"] == "operator"
            assert policy["context"] == {"role": "operator", "user": "", "name": name}


def test_a_users_token_opens_wallets_alone_and_names_its_user() -> None:
    policy = asked(f"Bearer {USERS_TOKEN}")
    api = "arn:aws:execute-api:us-east-1:123456789012:abcdef/api"
    assert opened(policy) == [
        f"{api}/{method}/api/v1/{path}"
        for path in ("wallets", "wallets/*")
        for method in ("GET", "PATCH", "POST", "PUT")
    ]
    assert policy["principalId"] == USER
    assert policy["context"] == {"role": "user", "user": USER, "name": "a-test"}


@pytest.mark.parametrize("header", ["", f"Basic {TOKEN}", f"Bearer {TOKEN}x"])
def test_another_header_opens_nothing_and_is_logged(
    caplog: pytest.LogCaptureFixture, header: str
) -> None:
    with caplog.at_level(logging.INFO):
        policy = asked(header)
    assert vars(caplog.records[0])["fields"]["function"] == "authorize"
    assert opened(policy) == []
    assert policy["principalId"] == "nobody"
    assert policy["context"] == {}


# ---- of an HTTP API


def unreadable(table: MemoryTable) -> FaultyTable:
    def fail(_: str) -> NoReturn:
        raise UnavailableError("throttled")

    return FaultyTable(table, before_read=fail)


def ask(header: str, path: str = "/api/v1/events") -> object:
    return http_authorizer.handler(authorizer_event(header, path), None)


@pytest.mark.parametrize("path", ["/api/v1/events", "/timers", "/api/v1/wallets/me"])
def test_the_answer_names_the_caller_and_is_the_same_for_every_route(path: str) -> None:
    """API Gateway caches it for every route."""
    for token, name in ((TOKEN, "a-test"), (BOOTSTRAP, BOOTSTRAP_NAME)):
        context = {"role": "operator", "user": "", "name": name}
        answer = {"isAuthorized": True, "context": context}
        assert ask(f"Bearer {token}", path) == answer
    context = {"role": "user", "user": USER, "name": "a-test"}
    of_user = {"isAuthorized": True, "context": context}
    assert ask(f"Bearer {USERS_TOKEN}", path) == of_user


@pytest.mark.parametrize("header", ["", f"Bearer {TOKEN},Bearer {TOKEN}"])
def test_a_malformed_token_is_refused_without_a_read(table: MemoryTable, header: str) -> None:
    """An HTTP API has no `identityValidationExpression`."""
    resources.use(GivenResources(unreadable(table), settings=SETTINGS))
    assert ask(header) == REFUSED


def test_an_unknown_token_is_refused_and_logged_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        assert ask(f"Bearer {TOKEN}x") == REFUSED
        assert ask(f"Bearer {TOKEN}") != REFUSED
    [record] = caplog.records
    fields = {"function": "authorize", "reason": "unknown", "left_out": 0}
    assert (record.getMessage(), vars(record)["fields"]) == ("token_refused", fields)


def test_an_unreadable_table_is_a_failure_which_api_gateway_does_not_cache(
    table: MemoryTable,
) -> None:
    resources.use(GivenResources(unreadable(table), settings=SETTINGS))
    assert ask(f"Bearer {BOOTSTRAP}") != REFUSED
    with pytest.raises(UnavailableError):
        ask(f"Bearer {TOKEN}")
