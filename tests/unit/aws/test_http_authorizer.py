"""The authorizer of the HTTP API, with events and answers as AWS documents them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NoReturn

import pytest

from chalicelib.aws import http_authorizer, resources
from chalicelib.storage.errors import UnavailableError
from simulation.aws_events import authorizer_event
from simulation.memory_table import MemoryTable
from simulation.resources import GivenResources
from simulation.tables import FaultyTable
from tests.unit.aws.known_tokens import (
    BOOTSTRAP,
    BOOTSTRAP_NAME,
    SETTINGS,
    TOKEN,
    USER,
    USERS_TOKEN,
    known_tokens,
)

REFUSED = {"isAuthorized": False}


@pytest.fixture(autouse=True)
def table() -> Iterator[MemoryTable]:
    with known_tokens() as table:
        yield table


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
