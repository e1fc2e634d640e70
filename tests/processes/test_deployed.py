"""The one stack, deployed to an emulator, and the resources that it creates.

The emulator runs the HTTP API and its authorizer, the functions from the real zip, the event
source mappings of the queues, and the stream. It can't show removals by TTL in the stream or ticks
of the schedule: the tests send both to the deployed functions in AWS's form. Nor can it show IAM
(`test_policies.py` compares requests with policies), throttling, and alarms that fire or watch
an expression.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pytest

from chalicelib.counting import keys
from chalicelib.events import sender
from chalicelib.http import tokens
from simulation import aws_events as events
from simulation.environment import ROOT
from tests.processes.emulator import (
    CONSUMERS,
    WITHOUT_PACKAGING,
    Emulator,
    old_ulid,
    running,
)
from tests.processes.programs import until

BADGE = "/api/v1/views?id=octocat"
EVENTS = "/api/v1/events"
TOKEN = tokens.new_token()


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with running(tmp_path_factory.mktemp("emulator")) as emulator:
        yield emulator


def test_the_one_stack_counts_stores_and_folds_a_view(
    aws: Emulator, packages: dict[str, Path]
) -> None:
    """The package is the one of all tests."""
    aws.accept_package(packages["prod"], "prod")
    aws.client("s3").create_bucket(Bucket="packages")
    queue = aws.client("sqs").create_queue(QueueName="orders")["QueueUrl"]
    parameters = {
        "AlarmEmail": "ops@example.org",
        "ApiTokenDigests": tokens.digest(TOKEN),
        "EventQueues": f"orders={queue}",
        "EventQueueArns": "arn:aws:sqs:us-east-1:000000000000:orders",
        "WebhookSecrets": sender.new_secret(),
        "WebhookAllow": "127.0.0.0/8",
        "RetrySeconds": "1",
    }
    given = " ".join(f"{name}={value}" for name, value in parameters.items())
    of_stack = {"STAGE": "prod", "BUCKET": "packages", "PARAMETERS": given}
    printed = aws.make("deploy", WITHOUT_PACKAGING, **of_stack)
    url = printed.splitlines()[-1]
    found = re.fullmatch(r"https://(\w+)\.execute-api\.[\w.-]+/api/v1/views\?id=hello", url)
    assert found, f"no badge's URL at the end of {printed}"
    api, stack = found[1], aws.outputs("vu-mi-prod")
    table, stream = stack["TableName"], stack["TableStreamArn"]

    assert aws.get(api, "/healthz") == {"status": "ok"}
    for taken in range(3):
        badge = aws.get(api, BADGE)
        assert badge == {
            "schemaVersion": 1,
            "label": "views",
            "message": str(taken),
            "color": "blue",
        }
        until(lambda taken=taken: len(aws.views(table)) == taken + 1, "the view is put")  # type: ignore[misc]
    marker = aws.put_old_views(table, 2, hours=3)
    assert aws.get(api, BADGE + "&peek=1")["message"] == "5", "before the fold"
    for _ in range(2):
        aws.fold("vu-mi-prod-fold_views", stream, marker)
        assert aws.count(table) == 2, "delivered twice, folded once"
        assert aws.get(api, BADGE + "&peek=1")["message"] == "5", "after the fold"
    assert len(aws.views(table)) == 5, "the views stay"


def test_the_stream_carries_the_removal_of_a_marker_to_the_fold_and_no_other_record(
    aws: Emulator,
) -> None:
    """Other items are removed before the marker; the filter leaves them out."""
    stack, look = aws.outputs("vu-mi-prod"), partial(aws.mapping, "vu-mi-prod-fold_views")
    table, ran = stack["TableName"], aws.invocations("vu-mi-prod-fold_views")
    for removed in (keys.view("hand", old_ulid()), keys.day("hand", "2026-01-01")):
        aws.put(table, removed)
        aws.delete(table, removed)
    marker = aws.put_old_views(table, 1, "hand")
    aws.put(table, marker)
    aws.delete(table, marker)
    until(lambda: aws.count(table, "hand") == 1, "the view is folded")
    until(lambda: look()["LastProcessingResult"].startswith("OK"), "the mapping says so")
    assert look()["LastProcessingResult"] == "OK - 1 records"
    assert aws.invocations("vu-mi-prod-fold_views") == ran + 1


def events_url(aws: Emulator, path: str = "") -> str:
    return aws.url(aws.outputs("vu-mi-prod")["HttpApiId"], EVENTS + path)


def done(aws: Emulator, event_id: str) -> dict[str, Any]:
    """Wait until an event of the stack is done, and return it."""

    def look() -> dict[str, Any] | None:
        _, event = aws.ask(events_url(aws, f"/{event_id}"), "GET", TOKEN)
        return None if event["status"] == "ACTIVE" else event

    return until(look, f"the event {event_id} is done")


def test_the_api_answers_in_the_form_of_our_errors_but_not_the_authorizers(aws: Emulator) -> None:
    """No route has the first two requests, so the default route answers them.

    A request without a token does not reach the handler, so no such event exists.
    """
    api = aws.outputs("vu-mi-prod")["HttpApiId"]
    for method, path, code in (
        ("GET", "/nowhere", (404, "not_found")),
        ("PUT", "/api/v1/views", (405, "method_not_allowed")),
    ):
        status, body = aws.ask(aws.url(api, path), method)
        assert (status, body["error"]["code"]) == code
    wanted = {"id": "refused", "delay": 0, "target": {"log": True}}
    unauthorized, forbidden = ((401, {"message": "Unauthorized"}), (403, {"message": "Forbidden"}))
    assert aws.ask(events_url(aws), "POST", "", wanted) == unauthorized
    for token in (tokens.new_token(), "too-short"):
        assert aws.ask(events_url(aws), "POST", token, wanted) == forbidden
    assert aws.ask(events_url(aws, "/refused"), "GET", TOKEN)[0] == 404


def test_a_token_that_the_command_creates_opens_the_routes_of_its_holder(aws: Emulator) -> None:
    user = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
    printed = {
        "ci": aws.make("token", STAGE="prod", DO="create --name ci"),
        "eva": aws.vumi("token", "create", "--name", "eva", "--user", user),
    }
    opened = {}
    for name, made in printed.items():
        [token] = re.findall(rf"^Token {name}, shown only once: (\S+)$", made, re.MULTILINE)
        opened[name] = aws.ask(events_url(aws, "/none"), "GET", token)[0]
    assert opened == {"ci": 404, "eva": 403}
    assert "revoked: " in aws.vumi("token", "revoke", "ci")
    listed = aws.vumi("token", "list")
    assert ("  ci  " in listed, "  eva  " in listed) == (False, True)


@pytest.mark.parametrize(
    ("event_id", "target"), [("to-log", {"log": True}), ("to-queue", {"queue": "orders"})]
)
def test_an_event_is_delivered_at_its_time(
    aws: Emulator, event_id: str, target: dict[str, Any]
) -> None:
    wanted = {"id": event_id, "delay": 1, "target": target, "payload": {"n": 1}}
    status, made = aws.ask(events_url(aws), "POST", TOKEN, wanted)
    assert (status, made["status"]) == (201, "ACTIVE")
    event = done(aws, event_id)
    assert event["status"] == "SUCCESS"
    [attempt] = event["attempts"]
    assert attempt["started"] >= made["at"]


def test_the_sweep_is_scheduled_and_enqueues_an_event_without_a_message(aws: Emulator) -> None:
    """The distribution then enqueues the event."""
    targets = aws.client("events").list_rule_names_by_target(TargetArn=aws.sweep_of("vu-mi-prod"))
    [rule] = targets["RuleNames"]
    described = aws.client("events").describe_rule(Name=rule)
    assert (described["ScheduleExpression"], described["State"]) == ("rate(1 minute)", "ENABLED")
    aws.forget_message_of_event(aws.outputs("vu-mi-prod")["TableName"])
    aws.sweep("vu-mi-prod")
    assert done(aws, "swept")["status"] == "SUCCESS"


def test_the_stream_carries_a_removed_entry_to_the_archive_and_no_other_item(aws: Emulator) -> None:
    aws.check_archive("vu-mi-prod")


def restore(aws: Emulator, **words: str) -> str:
    """Run the commands of docs/operate-on-aws.md with these words; return the last one's output."""
    text = (ROOT / "docs/operate-on-aws.md").read_text().partition("\n## Restore\n")[2]
    printed = ""
    for block in re.findall(r"^   ```sh\n(.*?)^   ```$", text, re.MULTILINE | re.DOTALL):
        if found := re.search(r"^arn:\S+", printed):
            words["STREAM_ARN"] = found[0]
        script = reduce(lambda made, word: made.replace(*word), words.items(), block)
        printed = aws.shell(script)
    return printed


def test_a_restored_stack_continues_the_counts_of_the_backup(aws: Emulator) -> None:
    """2 views are folded and 3 are live.

    2 have no marker, so the restore folds them; 1 comes later: 8. The emulator does not read from
    a template that backups are on.
    """
    before = aws.outputs("vu-mi-prod")
    aws.put_old_views(before["TableName"], 2)
    aws.client("dynamodb").update_continuous_backups(
        TableName=before["TableName"],
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
    )
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    words = {"TABLE_NAME": before["TableName"], "2026-11-20T10:00:00Z": now}
    started = restore(aws, **words, **{"my-bucket": "packages"})
    assert re.findall(r"vu-mi-prod-(\w+)\s+Ena", started) == ["put_views", "deliver_events"]
    after = aws.outputs("vu-mi-prod")
    table, stream = after["TableName"], after["TableStreamArn"]
    assert table != before["TableName"]
    assert stream.split("/stream/")[1] > before["TableStreamArn"].split("/stream/")[1]
    described = aws.client("dynamodb").describe_table(TableName=table)["Table"]
    assert described["DeletionProtectionEnabled"]
    ttl = aws.client("dynamodb").describe_time_to_live(TableName=table)
    assert ttl["TimeToLiveDescription"]["AttributeName"] == "ttl"

    assert aws.count(table) == 4, "folded before TTL is on"
    assert aws.get(before["HttpApiId"], BADGE)["message"] == "7"
    until(lambda: len(aws.views(table)) == 8, "the view is put into the restored table")
    assert aws.get(before["HttpApiId"], BADGE + "&peek=1")["message"] == "8"
    mapped = {function: aws.mapping(f"vu-mi-prod-{function}") for function in CONSUMERS}
    assert mapped["fold_views"]["EventSourceArn"] == stream
    assert {one["State"] for one in mapped.values()} == {"Enabled"}


def test_a_stack_of_badges_alone_counts_views_and_says_that_events_are_off(aws: Emulator) -> None:
    """It is created from the same package."""
    stack_name = "vu-mi-badges"
    aws.create_stack(stack_name, "prod", "packages", Events="off", Wallets="off")
    stack = aws.outputs(stack_name)
    assert stack.keys().isdisjoint({"DeliveryQueueUrl", "DistributionQueueUrl", "ArchiveBucket"})
    api = stack["HttpApiId"]
    assert aws.get(api, BADGE)["message"] == "0"
    until(lambda: len(aws.views(stack["TableName"])) == 1, "the view is put")
    for path in (EVENTS, "/api/v1/wallets/me", "/timers/1"):
        status, body = aws.ask(aws.url(api, path), "GET")
        assert (status, body["error"]["code"]) == (404, "switched_off")
    assert aws.get(api, f"{EVENTS}/1/badge")["isError"]
    functions = aws.client("lambda").get_paginator("list_functions").paginate()
    names = {one["FunctionName"] for page in functions for one in page["Functions"]}
    own = {name.removeprefix(f"{stack_name}-") for name in names if name.startswith(stack_name)}
    assert own == {"api_handler", "get_views", "put_views", "fold_views"}
    assert "folded 0 views" in aws.vumi("fold", "--all", stack=stack_name)


def test_the_alarm_on_views_a_day_switches_what_the_public_reaches_off_and_on(
    aws: Emulator,
) -> None:
    """Each state comes twice. The emulator has no such alarm, so the test sends its events."""
    stack_name = "vu-mi-limited"
    off = {"Events": "off", "Wallets": "off"}
    aws.create_stack(stack_name, "prod", "packages", MaxViewsPerDay="100", **off)
    stack, client = aws.outputs(stack_name), aws.client("lambda")
    api, table = stack["HttpApiId"], stack["TableName"]

    def tell(state: str) -> dict[str, Any]:
        payload = json.dumps(events.alarm(state))
        return client.invoke(FunctionName=f"{stack_name}-pause_api", Payload=payload)  # type: ignore[no-any-return]

    assert aws.get(api, BADGE)["message"] == "0"
    for _ in range(2):
        assert json.load(tell("ALARM")["Payload"]) == {"paused": True}
    for path in (BADGE, "/healthz", "/nowhere"):
        assert aws.ask(aws.url(api, path), "GET")[0] >= 429, path
    until(lambda: len(aws.views(table)) == 1, "the view before it is put: its function goes on")
    for _ in range(2):
        assert json.load(tell("OK")["Payload"]) == {"paused": False}
    assert aws.get(api, BADGE)["message"] == "1"
    assert aws.ask(aws.url(api, "/nowhere"), "GET")[0] == 404
    assert "must be ALARM or OK" in tell("INSUFFICIENT_DATA")["Payload"].read().decode()


def test_the_documented_commands_switch_a_stack_off_and_on(aws: Emulator) -> None:
    text = (ROOT / "docs/operate-on-aws.md").read_text().partition("\n## Views a day\n")[2]
    [off, on, back] = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[:3]
    api = aws.outputs("vu-mi-limited")["HttpApiId"]
    for commands, is_on in ((off, False), (on, True), (off, False), (back, True)):
        aws.shell(commands.replace("vu-mi-prod", "vu-mi-limited"))
        assert (aws.ask(aws.url(api, BADGE), "GET")[0] == 200) is is_on, commands
