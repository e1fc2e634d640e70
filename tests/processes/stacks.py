"""The stacks on the emulator: what they contain, and what their functions do with events."""

from __future__ import annotations

import gzip
import json
import time
from typing import Any

from chalicelib.aws.attribute_values import encode_item
from chalicelib.counting import keys
from chalicelib.counting.windows import Windows
from chalicelib.events.event import Event, Target, TargetKind
from chalicelib.events.sweep import OVERDUE_SECONDS
from chalicelib.storage.items import Key
from chalicelib.ulids import milliseconds, new_ulid
from chalicelib.units import to_milliseconds
from chalicelib.wallets.wallet import Entry, Posting
from simulation import aws_events as events
from tests.processes.emulator import Emulator
from tests.processes.programs import until

CONSUMERS = ["put_views", "fold_views", "distribute_events", "deliver_events", "archive_entries"]


def outputs(aws: Emulator, stack: str) -> dict[str, str]:
    described = aws.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    return {output["OutputKey"]: output["OutputValue"] for output in described["Outputs"]}


def items(aws: Emulator, table: str, badge: str = "octocat") -> dict[str, dict[str, Any]]:
    """Return the items of a badge by their sort keys, in DynamoDB's form."""
    scanned = aws.client("dynamodb").scan(TableName=table, ConsistentRead=True)["Items"]
    return {item["SK"]["S"]: item for item in scanned if item["PK"]["S"] == f"USER#{badge}"}


def views(aws: Emulator, table: str, badge: str = "octocat") -> list[str]:
    return sorted(key for key in items(aws, table, badge) if key.startswith(keys.VIEW))


def count(aws: Emulator, table: str, badge: str = "octocat") -> int:
    """Return the number of a badge's views that are in its summary."""
    summary = items(aws, table, badge).get(keys.SUMMARY, {})
    return int(summary.get("count", {"N": "0"})["N"])


def put(aws: Emulator, table: str, key: Key) -> None:
    item = {"PK": {"S": key.pk}, "SK": {"S": key.sk}}
    aws.client("dynamodb").put_item(TableName=table, Item=item)


def delete(aws: Emulator, table: str, key: Key) -> None:
    place = {"PK": {"S": key.pk}, "SK": {"S": key.sk}}
    aws.client("dynamodb").delete_item(TableName=table, Key=place)


def old_ulid(hours: int = 2) -> str:
    """Return the ULID of a view of hours ago, later than its grace and the operator's margin."""
    return new_ulid(int((time.time() - hours * 3_600) * 1000))


def put_old_views(
    aws: Emulator, table: str, amount: int, badge: str = "octocat", hours: int = 2
) -> Key:
    """Put views of hours ago; return the key of their window's marker."""
    ulids = [old_ulid(hours) for _ in range(amount)]
    for ulid in ulids:
        put(aws, table, keys.view(badge, ulid))
    return keys.marker(badge, Windows().mark(max(map(milliseconds, ulids))))


def fold(aws: Emulator, function: str, stream: str, marker: Key) -> None:
    """Send the removal of a marker by TTL to the deployed function, as the stream would."""
    record = events.removal(1, *marker, arn=stream)
    answer = aws.client("lambda").invoke(
        FunctionName=function, Payload=json.dumps(events.stream_event([record]))
    )
    assert "FunctionError" not in answer, answer["Payload"].read()
    assert json.load(answer["Payload"]) == {"batchItemFailures": []}


def mapping(aws: Emulator, function: str) -> Any:
    client = aws.client("lambda")
    return lambda: client.list_event_source_mappings(FunctionName=function)["EventSourceMappings"][
        0
    ]


def sweep_of(aws: Emulator, stack: str) -> str:
    name = f"{stack}-sweep_events"
    found = aws.client("lambda").get_function_configuration(FunctionName=name)
    arn: str = found["FunctionArn"]
    return arn


def sweep(aws: Emulator, stack: str) -> None:
    """Invoke the sweep; the emulator's own schedule may have done so a moment before."""
    answer = aws.client("lambda").invoke(
        FunctionName=sweep_of(aws, stack), Payload=json.dumps(events.tick())
    )
    assert "FunctionError" not in answer, answer["Payload"].read()
    assert json.load(answer["Payload"])["sent"] in {0, 1}


def forget_message_of_event(aws: Emulator, table: str) -> None:
    """Store only the item of an event, as if its message was lost.

    The event is overdue, so each sweep finds it, also after a sweep of the emulator's own schedule.
    """
    past = int(time.time() * 1000) - 2 * to_milliseconds(OVERDUE_SECONDS)
    event = Event("swept", past, past, Target(TargetKind.LOG), '"hello"', "swept")
    aws.client("dynamodb").put_item(TableName=table, Item=encode_item(event.new_item()))


def check_archive(aws: Emulator, stack: str) -> None:
    """Remove an entry and its wallet: the stream carries the entry alone to the archive."""
    found, function = outputs(aws, stack), f"{stack}-archive_entries"
    entry = Entry(old_ulid(), Posting("n", 5, old_ulid()), 1_767_225_600_000)
    wallet, ran = entry.posting.target, aws.invocations(function)
    client, table = aws.client("dynamodb"), found["TableName"]
    item = encode_item(entry.item(wallet))
    of_wallet = Key(item["PK"]["S"], "WALLET")
    put(aws, table, of_wallet)
    client.put_item(TableName=table, Item=item)
    delete(aws, table, of_wallet)
    delete(aws, table, Key(item["PK"]["S"], item["SK"]["S"]))
    bucket, s3 = found["ArchiveBucket"], aws.client("s3")

    def objects() -> list[dict[str, Any]]:
        listed = s3.list_objects_v2(Bucket=bucket, Prefix="journal/2026/01/01/")
        return list(listed.get("Contents", []))

    until(objects, "the entry is archived")
    look = mapping(aws, function)
    until(lambda: look()["LastProcessingResult"] == "OK - 1 records", "the mapping says so")
    assert aws.invocations(function) == ran + 1
    [kept] = objects()
    body = s3.get_object(Bucket=bucket, Key=kept["Key"])["Body"].read()
    line = json.loads(gzip.decompress(body))
    assert (line["id"], line["wallet"], line["amount"]) == (entry.entry_id, wallet, "5")
