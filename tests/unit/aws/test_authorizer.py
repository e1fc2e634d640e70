"""The authorizer as API Gateway calls it: its policy opens all routes or none."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.aws.authorizer import authorize
from simulation.memory_table import MemoryTable
from tests.unit.aws.known_tokens import (
    BOOTSTRAP,
    BOOTSTRAP_NAME,
    TOKEN,
    USER,
    USERS_TOKEN,
    known_tokens,
)

ARN = "arn:aws:execute-api:us-east-1:123456789012:abcdef/api/GET/timers/e"


@pytest.fixture(autouse=True)
def table() -> Iterator[MemoryTable]:
    with known_tokens() as table:
        yield table


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


def test_a_users_token_opens_no_path_that_only_ends_like_a_wallets() -> None:
    """A `*` in a policy matches slashes too."""
    event = ARN.replace("timers/e", "api/v1/events/e/api/v1/wallets/x")
    assert not any(fnmatchcase(event, one) for one in opened(asked(f"Bearer {USERS_TOKEN}")))
    wallet = ARN.replace("timers/e", "api/v1/wallets/x/balance")
    assert any(fnmatchcase(wallet, one) for one in opened(asked(f"Bearer {USERS_TOKEN}")))


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
