"""The resources of a process: those given by a test, or those that the environment names."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from typing import cast

import pytest

from chalicelib.aws import resources
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.aws.resources import AwsResources, gc_disabled
from chalicelib.counting.view import ViewMessages
from chalicelib.settings import SettingsError
from simulation.resources import GivenResources
from simulation.storage import MemoryTable

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/vu-mi-views"


@pytest.fixture(autouse=True)
def _remove_given_resources() -> Iterator[None]:
    resources.use(None)
    yield
    resources.use(None)


@pytest.fixture
def aws() -> AwsResources:
    names = {"TABLE_NAME": "views", "VIEWS_QUEUE_URL": URL, "ARCHIVE_BUCKET": "journals"}
    return AwsResources(os.environ | names)


def test_given_resources_are_used_until_they_are_removed() -> None:
    table = MemoryTable()
    mine = GivenResources(table=table)
    resources.use(mine)
    assert cast("object", resources.current()) is mine
    resources.use(None)
    assert isinstance(resources.current(), AwsResources)


def test_without_given_resources_the_environment_names_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TABLE_NAME", "views")
    monkeypatch.setenv("GRACE_SECONDS", "60")
    made = resources.current()
    assert isinstance(made, AwsResources)
    assert (made.settings.table_name, made.settings.grace_seconds) == ("views", 60)
    monkeypatch.setenv("TABLE_NAME", "changed since")
    assert resources.current() is made
    assert made.settings.table_name == "views"


@pytest.mark.parametrize("function", [None, "api_handler"])
def test_logging_is_configured_only_on_lambda(
    monkeypatch: pytest.MonkeyPatch, function: str | None
) -> None:
    if function is not None:
        monkeypatch.setenv(resources.ON_LAMBDA, function)
    before = list(logging.getLogger().handlers)
    resources.current()
    assert (logging.getLogger().handlers == before) is (function is None)


@pytest.mark.parametrize(("function", "made"), [("put_views", {"table", "archive"}), (None, set())])
def test_lambda_starts_with_the_clients_that_the_settings_name(
    monkeypatch: pytest.MonkeyPatch, function: str | None, made: set[str]
) -> None:
    """A function without a queue has no client for one."""
    if function is not None:
        monkeypatch.setenv(resources.ON_LAMBDA, function)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("TABLE_NAME", "views")
    monkeypatch.setenv("ARCHIVE_BUCKET", "journals")
    resources.connect()
    assert set(vars(resources.current())) & set(resources.CONNECTED) == made


def test_a_wrong_setting_does_not_stop_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request is answered, and the log names the setting."""
    monkeypatch.setenv(resources.ON_LAMBDA, "put_views")
    monkeypatch.setenv("TABLE_NAME", "views")
    monkeypatch.setenv("GRACE_SECONDS", "soon")
    resources.connect()
    with pytest.raises(SettingsError, match="GRACE_SECONDS must be"):
        _ = resources.current().table


def test_the_table_and_the_queue_are_made_once(aws: AwsResources) -> None:
    assert isinstance(aws.table, DynamoTable)
    assert isinstance(aws.views_queue, ViewMessages)
    assert aws.table is aws.table
    assert aws.views_queue is aws.views_queue


def test_a_function_needs_only_the_settings_of_what_it_uses() -> None:
    folding = AwsResources(os.environ | {"TABLE_NAME": "views"})
    assert isinstance(folding.table, DynamoTable)
    with pytest.raises(SettingsError, match="VIEWS_QUEUE_URL is not set"):
        _ = folding.views_queue
    with pytest.raises(SettingsError, match="TABLE_NAME is not set"):
        _ = AwsResources({"VIEWS_QUEUE_URL": URL}).table


def test_the_collector_is_off_during_the_block_and_on_afterwards() -> None:
    with gc_disabled():
        assert not gc.isenabled()
    assert gc.isenabled()
