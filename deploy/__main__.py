"""`python -m deploy`: what the Makefile's targets for AWS call, one step each."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.clients import aws_client
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.aws.sqs import SqsQueue
from chalicelib.concurrency import map_parallel
from chalicelib.events.webhooks import signing
from chalicelib.http import tokens
from chalicelib.settings import Settings, SettingsError
from chalicelib.storage.errors import StorageError
from chalicelib.views.windows import Windows
from deploy import bytecode, completion, package, redrive, restore, stage, template
from deploy import folding as scanning
from vumi.admin import command, counts_file, folding, redrive_command
from vumi.admin.importing import Import
from vumi.admin.redriving import Redrive

WRONG = (
    BotoCoreError,
    ClientError,
    OSError,
    SettingsError,
    StorageError,
    command.CutShortError,
    completion.IncompleteError,
    counts_file.WrongFileError,
    folding.NotFoldedError,
    package.PackagingError,
    restore.NotRestoredError,
)
"""What the operator is told in one line; anything else is a fault of ours."""
UNCOMPILED = (
    "Without compiled files, which only the Python of Lambda makes: each cold start compiles"
    " anew. make clean, then PYTHON=python3.13 at the next make, gives it them."
)


def main(arguments: Sequence[str]) -> int:
    """Do one step; returns the exit status."""
    given = _parser().parse_args(arguments)
    try:
        given.step(given)
    except WRONG as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m deploy", description=__doc__)
    steps = parser.add_subparsers(required=True, metavar="STEP")
    for name, step in STEPS.items():
        adding = steps.add_parser(name, help=step.__doc__, description=step.__doc__)
        adding.set_defaults(step=step)
        if step is not _secrets:
            adding.add_argument("--stage", required=True, help="dev, prod or one of your own")
        if step in {_package, _resources, _restore}:
            adding.add_argument("--out", type=Path, required=True, help="the folder to write into")
        if step not in {_package, _resources, _secrets}:
            adding.add_argument("--stack", help="the stack's name; vu-mi-STAGE if left out")
        if step is _restore:
            adding.add_argument(
                "--at",
                type=_moment,
                required=True,
                help="as the table was then: 2026-11-20T10:00:00Z",
            )
        if step is _import:
            command.add_options(adding)
        if step is _redrive_events:
            redrive_command.add_options(adding)
    return parser


def _package(given: argparse.Namespace) -> None:
    """Make the template and the zip of one stack."""
    package.package(given.stage, given.out)
    size = (given.out / "deployment.zip").stat().st_size
    print(f"{given.out}: sam.yaml and deployment.zip, {size / 1000:.0f} KB")
    if not bytecode.is_made():
        print(UNCOMPILED)


def _resources(given: argparse.Namespace) -> None:
    """Write the template of the table and the queues alone."""
    alone = template.stand_alone(template.for_stage(template.load(), given.stage))
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "resources.yaml").write_text(template.dump(alone))


def _names(given: argparse.Namespace) -> None:
    """Write the names of a stack's resources into .chalice/config.json."""
    found = stage.outputs(boto3.client("cloudformation"), _stack(given))
    stage.write_names(given.stage, found, stage.Folder())


def _complete(given: argparse.Namespace) -> None:
    """Set on the functions and event source mappings of a stage what Chalice can't."""
    done = completion.Completion(boto3.client("lambda"), stage.Folder()).run(given.stage)
    for function, options in done.items():
        print(f"{function}: {', '.join(options)}")


def _url(given: argparse.Namespace) -> None:
    """Print the URL of a badge of a stage that `chalice deploy` deployed."""
    deployed = json.loads(stage.Folder().deployed(given.stage).read_text())["resources"]
    api = next(resource for resource in deployed if resource["resource_type"] == "rest_api")
    print(f"{api['rest_api_url']}api/v1/views?id=hello")


def _import(given: argparse.Namespace) -> None:
    """Import counts from a CSV file: each becomes the base of its badge."""
    rows = counts_file.read(given.file)
    table = _table(stage.outputs(boto3.client("cloudformation"), _stack(given)))
    command.run(rows, Import(table, map_parallel, time.time, given.replace, given.dry_run))


def _redrive(given: argparse.Namespace) -> None:
    """Send the dead letters of views again."""
    found = stage.outputs(boto3.client("cloudformation"), _stack(given))
    outcomes = redrive.Redrive(
        boto3.client("sqs"),
        found["ViewsDeadLettersUrl"],
        SqsQueue(aws_client("sqs"), found["ViewsQueueUrl"]),
        time.time,
        Settings.from_environment(os.environ).retention_seconds,
    ).run()
    for outcome in redrive.Outcome:
        if outcomes[outcome] or outcome is redrive.Outcome.SENT:
            print(f"{outcomes[outcome]} {outcome.value}.")


def _fold(given: argparse.Namespace) -> None:
    """Fold all badges that have views to fold."""
    found = stage.outputs(boto3.client("cloudformation"), _stack(given))
    windows = Windows.of(Settings.from_environment(os.environ))
    job = folding.FoldAll(scanning.folder(_table(found), windows, time.time), map_parallel)
    retries = Config(retries={"mode": "standard", "total_max_attempts": 12})
    client = boto3.client("dynamodb", config=retries)
    folding.run(job, scanning.badge_ids(client, found["TableName"]))


def _redrive_events(given: argparse.Namespace) -> None:
    """Let events that were given up be tried anew."""
    found = stage.outputs(boto3.client("cloudformation"), _stack(given))
    queue = SqsQueue(aws_client("sqs"), found["TimersQueueUrl"])
    redrive_command.run(Redrive(_table(found), queue, time.time), given.event)


def _secrets(_: argparse.Namespace) -> None:
    """Make a token, its digest, and a secret for webhooks."""
    token = tokens.new_token()
    print(f"token, for whoever uses the token routes:  {token}")
    print(f"ApiTokenDigests={tokens.digest(token)}")
    print(f"WebhookSecrets={signing.new_secret()}")


def _restore(given: argparse.Namespace) -> None:
    """Stop the consumers and restore the table; `make restore` goes on from there."""
    source = stage.outputs(boto3.client("cloudformation"), _stack(given))["TableName"]
    restored = _restoring(given).run(source, given.at)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "restored").write_text(restored.parameters() + "\n")
    print(f"{source} as it was at {given.at:%Y-%m-%d %H:%M:%S %Z} is {restored.table}")


def _resume(given: argparse.Namespace) -> None:
    """Let the table expire its items and the consumers run again."""
    table = stage.outputs(boto3.client("cloudformation"), _stack(given))["TableName"]
    _restoring(given).resume(table)


def _restoring(given: argparse.Namespace) -> restore.Restore:
    return restore.Restore(boto3.client("dynamodb"), boto3.client("lambda"), _stack(given))


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time with its zone; give one like 2026-11-20T10:00:00Z"
        )
    return moment.astimezone(UTC)


def _table(outputs: Mapping[str, str]) -> DynamoTable:
    return DynamoTable(aws_client("dynamodb"), outputs["TableName"])


def _stack(given: argparse.Namespace) -> str:
    return given.stack or f"vu-mi-{given.stage}"


STEPS = {
    "package": _package,
    "resources": _resources,
    "names": _names,
    "complete": _complete,
    "url": _url,
    "import": _import,
    "redrive": _redrive,
    "fold": _fold,
    "redrive-events": _redrive_events,
    "secrets": _secrets,
    "restore": _restore,
    "resume": _resume,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
