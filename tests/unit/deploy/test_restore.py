"""A restore stops TTL and the consumers, except that of the archive."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import boto3
import pytest
from moto import mock_aws

from deploy.completion import FUNCTIONS
from deploy.restore import Restore
from simulation.aws_table import create_table

STACK = "vu-mi-prod"


@dataclass
class FakeLambda:
    """A Lambda client with one event source mapping per function, named like the function."""

    enabled: dict[str, bool] = field(default_factory=dict)

    def list_event_source_mappings(self, FunctionName: str) -> dict[str, Any]:  # noqa: N803
        return {"EventSourceMappings": [{"UUID": FunctionName}]}

    def get_event_source_mapping(self, UUID: str) -> dict[str, str]:  # noqa: N803
        return {"State": "Enabled" if self.enabled[UUID] else "Disabled"}

    def update_event_source_mapping(self, UUID: str, *, Enabled: bool) -> None:  # noqa: N803
        self.enabled[UUID] = Enabled


def lambdas(*, enabled: bool) -> FakeLambda:
    return FakeLambda({f"{STACK}-{function}": enabled for function in FUNCTIONS})


@pytest.mark.parametrize("enabled", [True, False])
def test_all_consumers_are_enabled_and_all_but_the_archives_disabled(*, enabled: bool) -> None:
    """Entries removed before the restored time are only in the old stream."""
    functions = lambdas(enabled=not enabled)
    tables = boto3.client("dynamodb", region_name="us-east-1")
    Restore(tables, cast("Any", functions), STACK).enable_consumers(enabled=enabled)
    resting = {name for name, runs in functions.enabled.items() if not runs}
    assert resting == (set() if enabled else {*functions.enabled} - {f"{STACK}-archive_entries"})


@mock_aws
def test_a_restored_table_expires_nothing_until_its_consumers_run_again() -> None:
    """Its views may be older than the retention, so TTL could remove them before their fold.

    DynamoDB refuses to switch TTL on twice.
    """
    tables = boto3.client("dynamodb", region_name="us-east-1")
    create_table(tables, "vu-mi")
    functions = lambdas(enabled=True)
    restore = Restore(tables, cast("Any", functions), STACK)
    restored = restore.run("vu-mi", datetime.now(UTC))

    def expires() -> str:
        described = tables.describe_time_to_live(TableName=restored.table)
        return described["TimeToLiveDescription"]["TimeToLiveStatus"]

    switched: list[object] = []
    event = "provide-client-params.dynamodb.UpdateTimeToLive"
    tables.meta.events.register(event, lambda params, **_: switched.append(params))
    assert (expires(), functions.enabled[f"{STACK}-fold_views"]) == ("DISABLED", False)
    for _ in range(2):
        restore.resume(restored.table)
        assert (expires(), functions.enabled[f"{STACK}-fold_views"]) == ("ENABLED", True)
    assert len(switched) == 1
