"""Which consumers rest while a table is restored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import boto3
import pytest

from deploy.completion import FUNCTIONS
from deploy.restore import Restore

STACK = "vu-mi-prod"


@dataclass
class FakeLambda:
    """Lambda with one event source mapping for each function, named as the function is."""

    enabled: dict[str, bool] = field(default_factory=dict)

    def list_event_source_mappings(self, FunctionName: str) -> dict[str, Any]:  # noqa: N803
        return {"EventSourceMappings": [{"UUID": FunctionName}]}

    def get_event_source_mapping(self, UUID: str) -> dict[str, str]:  # noqa: N803
        return {"State": "Enabled" if self.enabled[UUID] else "Disabled"}

    def update_event_source_mapping(self, UUID: str, *, Enabled: bool) -> None:  # noqa: N803
        self.enabled[UUID] = Enabled


@pytest.mark.parametrize("enabled", [True, False])
def test_all_consumers_run_again_and_all_rest_but_the_archives(*, enabled: bool) -> None:
    """What was removed before the moment of a restore is in the old stream alone."""
    mappings = {f"{STACK}-{function}": not enabled for function in FUNCTIONS}
    functions = FakeLambda(dict(mappings))
    tables = boto3.client("dynamodb", region_name="us-east-1")
    Restore(tables, cast("Any", functions), STACK).enable_consumers(enabled=enabled)
    resting = {name for name, runs in functions.enabled.items() if not runs}
    assert resting == (set() if enabled else {*mappings} - {f"{STACK}-archive_entries"})
