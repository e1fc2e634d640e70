"""A restore stops the consumers, repeats calls that fail for a while, and undoes what fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from deploy import template
from deploy.completion import FUNCTIONS
from deploy.patience import MAX_ATTEMPTS, Patience
from deploy.restore import Restore
from deploy.restored_table import NotRestoredError, RestoredTables
from simulation.aws_clients import client_error

STACK = "vu-mi-prod"
AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
SOURCE, TARGET = "vu-mi", "vu-mi-prod-20261120T100000"
PROPERTIES = template.load()["Resources"]["Table"]["Properties"]
TAGS = [{"Key": "team", "Value": "badges"}, {"Key": "aws:cloudformation:stack-id", "Value": "x"}]


class Failures:
    """The next errors of each operation, and the calls so far."""

    def __init__(self) -> None:
        self.following: dict[str, list[Exception]] = {}
        self.calls: list[str] = []

    def fail(self, operation: str, code: str, times: int = 1) -> None:
        self.following[operation] = [client_error(code)] * times

    def call(self, operation: str) -> None:
        self.calls.append(operation)
        if following := self.following.get(operation):
            raise following.pop(0)


@dataclass
class FakeLambda:
    """A Lambda client with one event source mapping per function, named like the function."""

    enabled: dict[str, bool]
    failures: Failures = field(default_factory=Failures)

    def list_event_source_mappings(self, FunctionName: str) -> dict[str, Any]:  # noqa: N803
        self.failures.call("list_event_source_mappings")
        if FunctionName not in self.enabled:
            raise client_error("ResourceNotFoundException")
        return {"EventSourceMappings": [{"UUID": FunctionName}]}

    def get_event_source_mapping(self, UUID: str) -> dict[str, str]:  # noqa: N803
        self.failures.call("get_event_source_mapping")
        return {"State": "Enabled" if self.enabled[UUID] else "Disabled"}

    def update_event_source_mapping(self, UUID: str, *, Enabled: bool) -> None:  # noqa: N803
        self.failures.call("update_event_source_mapping")
        self.enabled[UUID] = Enabled


class FakeTables:
    """A DynamoDB client, as far as a restore uses it.

    A new table is not found by the first descriptions, and then is created for some more.
    """

    def __init__(self) -> None:
        self.failures = Failures()
        self.missing_for = 2
        self.creating_for = 2
        self.backups = {SOURCE: "ENABLED"}
        self.ttl: dict[str, str] = {}
        self.tags = {arn(SOURCE): TAGS}
        self.tables: dict[str, dict[str, Any]] = {
            SOURCE: {"TableStatus": "ACTIVE", "TableArn": arn(SOURCE), "TableName": SOURCE}
        }

    def describe_continuous_backups(self, TableName: str) -> dict[str, Any]:  # noqa: N803
        self.failures.call("describe_continuous_backups")
        status = self.backups.get(TableName, "DISABLED")
        times = {
            "EarliestRestorableDateTime": AT - timedelta(days=1),
            "LatestRestorableDateTime": AT + timedelta(hours=1),
        }
        found = {"PointInTimeRecoveryStatus": status} | (times if status == "ENABLED" else {})
        return {"ContinuousBackupsDescription": {"PointInTimeRecoveryDescription": found}}

    def restore_table_to_point_in_time(
        self,
        SourceTableName: str,  # noqa: N803
        TargetTableName: str,  # noqa: N803
        RestoreDateTime: datetime,  # noqa: N803
    ) -> None:
        self.failures.call("restore_table_to_point_in_time")
        if TargetTableName in self.tables:
            raise client_error("TableAlreadyExistsException")
        self.add(TargetTableName, SourceTableName, RestoreDateTime)

    def add(self, table: str, source: str, restored_to: datetime) -> None:
        summary = {"SourceTableArn": arn(source), "RestoreDateTime": restored_to}
        self.tables[table] = {
            "TableName": table,
            "TableStatus": "CREATING",
            "TableArn": arn(table),
            "RestoreSummary": summary,
        }

    def describe_table(self, TableName: str) -> dict[str, Any]:  # noqa: N803
        self.failures.call("describe_table")
        table = self.tables.get(TableName)
        if table is not None and table["TableStatus"] == "CREATING" and self.missing_for:
            self.missing_for -= 1
            table = None
        if table is None:
            raise client_error("ResourceNotFoundException")
        described = dict(table)
        if self.creating_for:
            self.creating_for -= 1
        elif table["TableStatus"] == "CREATING":
            table["TableStatus"] = "ACTIVE"
        return {"Table": described}

    def update_table(self, TableName: str, **changes: Any) -> None:  # noqa: N803
        self.failures.call("update_table")
        if "StreamSpecification" in changes:
            assert "LatestStreamArn" not in self.tables[TableName], "DynamoDB refuses it twice"
            self.tables[TableName]["LatestStreamArn"] = f"{arn(TableName)}/stream/new"
        self.tables[TableName].update(changes)

    def update_continuous_backups(
        self,
        TableName: str,  # noqa: N803
        PointInTimeRecoverySpecification: dict[str, Any],  # noqa: N803
    ) -> None:
        self.failures.call("update_continuous_backups")
        if PointInTimeRecoverySpecification["PointInTimeRecoveryEnabled"]:
            self.backups[TableName] = "ENABLED"

    def get_paginator(self, operation: str) -> FakeTables:
        assert operation == "list_tags_of_resource"
        return self

    def paginate(self, ResourceArn: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        self.failures.call("list_tags_of_resource")
        for tag in self.tags.get(ResourceArn, []):
            yield {"Tags": [tag]}

    def tag_resource(self, ResourceArn: str, Tags: list[dict[str, str]]) -> None:  # noqa: N803
        self.failures.call("tag_resource")
        self.tags[ResourceArn] = Tags

    def describe_time_to_live(self, TableName: str) -> dict[str, Any]:  # noqa: N803
        status = self.ttl.get(TableName, "DISABLED")
        return {"TimeToLiveDescription": {"TimeToLiveStatus": status}}

    def update_time_to_live(
        self,
        TableName: str,  # noqa: N803
        TimeToLiveSpecification: dict[str, Any],  # noqa: N803
    ) -> None:
        self.failures.call("update_time_to_live")
        assert TableName not in self.ttl, "DynamoDB refuses to switch it on twice"
        assert TimeToLiveSpecification == {"AttributeName": "ttl", "Enabled": True}
        self.ttl[TableName] = "ENABLED"


def arn(table: str) -> str:
    return f"arn:aws:dynamodb:us-east-1:123456789012:table/{table}"


class Stack:
    """A stack on fakes, and its restore."""

    def __init__(self, *, properties: Any = PROPERTIES) -> None:
        self.tables = FakeTables()
        self.present = [*FUNCTIONS]
        self.lambdas = FakeLambda({f"{STACK}-{function}": True for function in FUNCTIONS})
        self.pauses: list[float] = []
        self.checked: list[str] = []
        self.check: Callable[[str], None] = self.inspect
        self.properties = properties

    @property
    def restore(self) -> Restore:
        patience = Patience(self.pause)
        tables = RestoredTables(cast("Any", self.tables), self.properties, patience)
        return Restore(tables, cast("Any", self.lambdas), "prod", STACK, self.present, self.check)

    def inspect(self, table: str) -> None:
        assert self.tables.tables[table]["TableStatus"] == "ACTIVE"
        self.checked.append(table)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    @property
    def stopped(self) -> set[str]:
        enabled = self.lambdas.enabled.items()
        return {name.removeprefix(f"{STACK}-") for name, runs in enabled if not runs}


@pytest.fixture
def stack() -> Stack:
    return Stack()


CONSUMERS = {*FUNCTIONS} - {"archive_entries"}


@pytest.mark.parametrize("enabled", [True, False])
def test_all_consumers_are_enabled_and_all_but_the_archives_disabled(
    stack: Stack, *, enabled: bool
) -> None:
    """Entries removed before the restored time are only in the old stream."""
    stack.lambdas.enabled = dict.fromkeys(stack.lambdas.enabled, not enabled)
    stack.restore.enable_consumers(enabled=enabled)
    assert stack.stopped == (set() if enabled else CONSUMERS)


def test_a_restored_table_has_all_properties_but_ttl_while_the_consumers_are_stopped(
    stack: Stack,
) -> None:
    """Its views may be older than the retention, so TTL could remove them before their fold."""
    restored = stack.restore.run(SOURCE, AT)
    assert restored.parameters() == (
        f"RestoredTable={TARGET} RestoredStream={arn(TARGET)}/stream/new"
    )
    table = stack.tables.tables[TARGET]
    assert table["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "OLD_IMAGE"}
    assert table["DeletionProtectionEnabled"]
    assert stack.tables.backups[TARGET] == "ENABLED"
    assert stack.tables.tags[arn(TARGET)] == TAGS[:1], "AWS's own tags can't be set"
    assert (stack.checked, stack.stopped, stack.tables.ttl) == ([TARGET], CONSUMERS, {})


def test_a_resumed_stack_expires_items_and_consumes(stack: Stack) -> None:
    """It is safe to repeat: DynamoDB refuses to switch a stream or TTL on twice."""
    stack.restore.run(SOURCE, AT)
    for _ in range(2):
        stack.restore.resume(TARGET)
        assert (stack.tables.ttl, stack.stopped) == ({TARGET: "ENABLED"}, set())


def test_resuming_brings_a_restored_table_to_the_properties_of_the_template(stack: Stack) -> None:
    """CloudFormation does not manage a restored table."""
    stack.restore.run(SOURCE, AT)
    stack.tables.tables[TARGET]["DeletionProtectionEnabled"] = False
    stack.tables.backups[TARGET] = "DISABLED"
    stack.restore.resume(TARGET)
    assert stack.tables.tables[TARGET]["DeletionProtectionEnabled"]
    assert stack.tables.backups[TARGET] == "ENABLED"


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("describe_continuous_backups", "InternalServerError"),
        ("restore_table_to_point_in_time", "LimitExceededException"),
        ("restore_table_to_point_in_time", "ThrottlingException"),
        ("restore_table_to_point_in_time", "TableInUseException"),
        ("describe_table", "ThrottlingException"),
        ("update_table", "ResourceInUseException"),
        ("update_table", "LimitExceededException"),
        ("update_continuous_backups", "ContinuousBackupsUnavailableException"),
        ("update_continuous_backups", "TableNotFoundException"),
        ("tag_resource", "ResourceNotFoundException"),
        ("update_time_to_live", "LimitExceededException"),
    ],
)
def test_an_error_of_dynamodb_that_passes_within_20_minutes_is_waited_for(
    stack: Stack, operation: str, code: str
) -> None:
    stack.tables.failures.fail(operation, code, MAX_ATTEMPTS - 1)
    stack.restore.run(SOURCE, AT)
    stack.restore.resume(TARGET)
    assert sum(stack.pauses) >= 20 * 60
    assert (stack.tables.backups[TARGET], stack.tables.ttl) == ("ENABLED", {TARGET: "ENABLED"})


def test_an_error_that_does_not_pass_within_20_minutes_fails_and_starts_the_consumers(
    stack: Stack,
) -> None:
    code = "ContinuousBackupsUnavailableException"
    stack.tables.failures.fail("update_continuous_backups", code, MAX_ATTEMPTS)
    with pytest.raises(Exception, match=code):
        stack.restore.run(SOURCE, AT)
    assert stack.stopped == set()


@pytest.mark.parametrize(
    "operation",
    [
        "restore_table_to_point_in_time",
        "describe_table",
        "update_table",
        "update_continuous_backups",
        "list_tags_of_resource",
        "tag_resource",
    ],
)
def test_the_consumers_run_again_after_any_failure_and_a_repeated_restore_continues(
    stack: Stack, operation: str
) -> None:
    stack.tables.failures.fail(operation, "AccessDeniedException")
    with pytest.raises(Exception, match="AccessDeniedException"):
        stack.restore.run(SOURCE, AT)
    assert stack.stopped == set()
    assert stack.restore.run(SOURCE, AT).table == TARGET
    assert stack.stopped == CONSUMERS


def test_the_consumers_run_again_if_the_content_is_wrong(stack: Stack) -> None:
    def refuse(table: str) -> None:
        raise NotRestoredError(f"{table} is wrong")

    stack.check = refuse
    with pytest.raises(NotRestoredError, match=f"{TARGET} is wrong"):
        stack.restore.run(SOURCE, AT)
    assert stack.stopped == set()


def test_the_consumers_run_again_if_the_operator_interrupts(stack: Stack) -> None:
    """DynamoDB continues the restore, which the next run adopts."""

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    stack.check = interrupt
    with pytest.raises(KeyboardInterrupt):
        stack.restore.run(SOURCE, AT)
    assert stack.stopped == set()
    stack.check = stack.inspect
    assert stack.restore.run(SOURCE, AT).table == TARGET


def test_consumers_that_can_not_be_started_are_reported_with_the_command(stack: Stack) -> None:
    """Both errors are in the message."""
    stack.check = lambda _: stack.lambdas.failures.fail(
        "update_event_source_mapping", "AccessDeniedException"
    )
    stack.tables.failures.fail("update_table", "ValidationException")
    with pytest.raises(NotRestoredError) as failed:
        stack.restore.run(SOURCE, AT)
    message = str(failed.value)
    assert "ValidationException" in message
    assert "AccessDeniedException" in message
    assert message.endswith("start them: make resume STAGE=prod STACK=vu-mi-prod")


def test_a_table_without_backups_is_refused_before_the_consumers_stop(stack: Stack) -> None:
    stack.tables.backups.clear()
    with pytest.raises(NotRestoredError, match="vu-mi has no point-in-time recovery"):
        stack.restore.run(SOURCE, AT)
    assert (stack.stopped, stack.lambdas.failures.calls) == (set(), [])


def test_a_time_after_the_last_backup_is_refused_with_the_times_that_are_possible(
    stack: Stack,
) -> None:
    stack.restore.run(SOURCE, AT + timedelta(hours=1))
    with pytest.raises(NotRestoredError) as refused:
        stack.restore.run(SOURCE, AT + timedelta(hours=1, seconds=1))
    assert "from 2026-11-19 10:00:00+00:00 to 2026-11-20 11:00:00+00:00" in str(refused.value)


def test_a_target_that_was_restored_from_this_table_to_this_time_is_adopted(stack: Stack) -> None:
    stack.tables.missing_for = 0
    stack.tables.add(TARGET, SOURCE, AT)
    assert stack.restore.run(SOURCE, AT).table == TARGET
    assert "restore_table_to_point_in_time" not in stack.tables.failures.calls
    assert stack.checked == [TARGET]


def test_a_restore_whose_answer_was_lost_is_adopted(stack: Stack) -> None:
    """It fails after DynamoDB has begun it, so its repetition finds the table."""
    begin = stack.tables.restore_table_to_point_in_time

    def lose_answer(**request: Any) -> None:
        begin(**request)
        raise client_error("InternalServerError")

    cast("Any", stack.tables).restore_table_to_point_in_time = lose_answer
    assert stack.restore.run(SOURCE, AT).table == TARGET


@pytest.mark.parametrize(
    ("source", "restored_to"), [("another", AT), (SOURCE, AT - timedelta(seconds=1))]
)
def test_a_target_of_another_origin_is_refused(
    stack: Stack, source: str, restored_to: datetime
) -> None:
    stack.tables.add(TARGET, source, restored_to)
    with pytest.raises(NotRestoredError, match=f"there is a table {TARGET}, but it is not vu-mi"):
        stack.restore.run(SOURCE, AT)
    assert stack.stopped == set()


def test_a_target_that_was_not_restored_is_refused(stack: Stack) -> None:
    stack.tables.add(TARGET, SOURCE, AT)
    del stack.tables.tables[TARGET]["RestoreSummary"]
    with pytest.raises(NotRestoredError, match="delete that table, or choose another time"):
        stack.restore.run(SOURCE, AT)


def test_a_table_that_is_being_deleted_is_refused(stack: Stack) -> None:
    stack.tables.add(TARGET, SOURCE, AT)
    stack.tables.tables[TARGET]["TableStatus"] = "DELETING"
    with pytest.raises(NotRestoredError, match=f"{TARGET} is DELETING, not ACTIVE"):
        stack.restore.run(SOURCE, AT)


def test_a_restore_that_is_deployed_already_is_only_configured(stack: Stack) -> None:
    """The stack writes to the table, so its content can't be checked."""
    stack.restore.run(SOURCE, AT)
    stack.checked.clear()
    stack.tables.failures.calls.clear()
    assert stack.restore.run(TARGET, AT).table == TARGET
    assert not {"restore_table_to_point_in_time", "tag_resource"} & {*stack.tables.failures.calls}
    assert (stack.checked, stack.stopped) == ([], CONSUMERS)


def test_a_restored_table_of_a_disposable_stage_is_not_protected() -> None:
    resources = template.for_stage(template.load(), "dev")["Resources"]
    stack = Stack(properties=resources["Table"]["Properties"])
    stack.restore.run(SOURCE, AT)
    assert not stack.tables.tables[TARGET].get("DeletionProtectionEnabled")
