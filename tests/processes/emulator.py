"""AWS on loopback: an emulator as a process, the Makefile targets that deploy to it, its stacks."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit, urlunsplit

import boto3
from botocore.loaders import Loader

from chalicelib.aws.attribute_values import encode_item
from chalicelib.counting import keys
from chalicelib.counting.view import Windows
from chalicelib.events.event import Event, Target, TargetKind
from chalicelib.events.sweep import OVERDUE_SECONDS
from chalicelib.storage.items import Key
from chalicelib.ulids import milliseconds, new_ulid
from chalicelib.units import to_milliseconds
from chalicelib.wallets.wallet import Entry, Posting
from deploy import template
from simulation import aws_events as events
from simulation import proxies
from simulation.environment import ROOT, free_port
from simulation.server_process import request
from tests.processes.programs import PATIENCE_SECONDS, succeed, until
from vumi.cli.options import Invocation
from vumi.cli.program import execute

BIN = Path(sys.executable).parent
THESE_PROGRAMS = (f"DEPLOYING={BIN}", f"AWS={BIN / 'aws'}")
"""Arguments of make: the environment of the tests has all that a deployment needs."""
WITHOUT_PACKAGING = "--assume-old=package"
"""An argument of make: the package is there already."""
INSTALLED = Path(".venv") / "deploy.stamp"
"""The file that tells make, also a make that make calls, to install nothing."""
EMULATOR = BIN.parent / "emulator" / "bin" / "ministack"
DEPLOYED = ("app.py", "chalicelib", "vumi", "deploy", ".chalice", "Makefile")
"""The files that the targets need; the copy leaves out the project's own stages."""
CONSUMERS = ["put_views", "fold_views", "distribute_events", "deliver_events", "archive_entries"]
WAITERS = Path("models") / "lambda" / "2015-03-31" / "waiters-2.json"
"""The place of the waiters for functions in a folder, below the data that botocore reads first."""


class Emulator:
    """A running emulator, and a copy of the project that deploys to it."""

    def __init__(self, endpoint: str, folder: Path) -> None:
        self.endpoint = endpoint
        self.folder = folder
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """Return the client of a service, which all tests share."""
        if service not in self._clients:
            self._clients[service] = boto3.client(service, endpoint_url=self.endpoint)  # type: ignore[call-overload]
        return self._clients[service]

    def make(self, target: str, *options: str, **variables: str) -> str:
        """Run a target of the Makefile; return its output."""
        given = [f"{name}={value}" for name, value in variables.items()]
        return self._run("make", *THESE_PROGRAMS, *options, target, *given)

    def shell(self, script: str) -> str:
        """Run a script in which `make`, `aws` and `vumi` work on the emulator."""
        make = " ".join(("make", *THESE_PROGRAMS, WITHOUT_PACKAGING))
        functions = f'make() {{ command {make} "$@"; }}; vumi() {{ {BIN}/python -m vumi "$@"; }}'
        return self._run("sh", "-ec", f"export PATH={BIN}:$PATH; {functions}\n{script}")

    def accept_package(self, package: Path, stage: str) -> None:
        """Put a package where `make package` would, with what the emulator accepts."""
        built = self._built(stage)
        shutil.copytree(package, built)
        _leave_out_expressions(built / "sam.yaml")

    def create_stack(self, name: str, stage: str, bucket: str, **parameters: str) -> None:
        """Create another stack from the package that `make deploy` has uploaded to a bucket."""
        template_body = (self._built(stage) / "packaged.yaml").read_bytes()
        self.client("s3").put_object(Bucket=bucket, Key=name, Body=template_body)
        self.client("cloudformation").create_stack(
            StackName=name,
            TemplateURL=f"{self.endpoint}/{bucket}/{name}",
            Parameters=[
                {"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()
            ],
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        )

    def _built(self, stage: str) -> Path:
        return self.folder / "build" / stage

    def vumi(self, *arguments: str, stack: str = "vu-mi-prod") -> str:
        """Run a command of the program on a stack, in this process; return its output."""
        with (
            patch.dict(os.environ, AWS_ENDPOINT_URL=self.endpoint),
            redirect_stdout(StringIO()) as output,
        ):
            status = execute([*arguments, "--stack", stack], Invocation(os.environ, time.time))
            assert status == 0, output.getvalue()
        return output.getvalue()

    def _run(self, *command: str) -> str:
        # Omit the flags of the make that runs the tests, or this make would use them.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MAKE", "MFLAGS"))
        }
        here = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_DATA_PATH": str(self.folder / WAITERS.parts[0]),
        }
        return succeed(*command, cwd=self.folder, env=inherited | here)

    def get(self, api: str, path: str) -> dict[str, Any]:
        """Send a GET to a deployed HTTP API; return the badge of the response."""
        status, badge = self.ask(self.url(api, path), "GET")
        assert status == 200
        return badge

    def ask(
        self, url: str, method: str, token: str = "", body: object = None
    ) -> tuple[int, dict[str, Any]]:
        """Send a request about events to a deployed HTTP API; return the status and the body."""
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        content = None if body is None else json.dumps(body).encode()
        status, _, answer = request(*_split(url), method, content, headers)
        return status, json.loads(answer)

    def url(self, api: str, path: str) -> str:
        """Return the URL of a path of an HTTP API on the emulator."""
        return f"{self.endpoint}/_aws/execute-api/{api}{path}"

    def invocations(self, function: str) -> int:
        """Return how often a function ran, according to its log."""
        client = self.client("logs")
        lines = client.filter_log_events(logGroupName=f"/aws/lambda/{function}")["events"]
        return sum(line["message"].startswith("START") for line in lines)

    # stacks: what they contain, and what their functions do with events

    def outputs(self, stack: str) -> dict[str, str]:
        described = self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
        return {output["OutputKey"]: output["OutputValue"] for output in described["Outputs"]}

    def items(self, table: str, badge: str = "octocat") -> dict[str, dict[str, Any]]:
        """Return the items of a badge by their sort keys, in DynamoDB's form."""
        scanned = self.client("dynamodb").scan(TableName=table, ConsistentRead=True)["Items"]
        return {item["SK"]["S"]: item for item in scanned if item["PK"]["S"] == f"USER#{badge}"}

    def views(self, table: str) -> list[str]:
        return sorted(key for key in self.items(table) if key.startswith(keys.VIEW))

    def count(self, table: str, badge: str = "octocat") -> int:
        """Return the number of a badge's views that are in its summary."""
        summary = self.items(table, badge).get(keys.SUMMARY, {})
        return int(summary.get("count", {"N": "0"})["N"])

    def put(self, table: str, key: Key) -> None:
        item = {"PK": {"S": key.pk}, "SK": {"S": key.sk}}
        self.client("dynamodb").put_item(TableName=table, Item=item)

    def delete(self, table: str, key: Key) -> None:
        place = {"PK": {"S": key.pk}, "SK": {"S": key.sk}}
        self.client("dynamodb").delete_item(TableName=table, Key=place)

    def put_old_views(self, table: str, amount: int, badge: str = "octocat", hours: int = 2) -> Key:
        """Put views of hours ago; return the key of their window's marker."""
        ulids = [old_ulid(hours) for _ in range(amount)]
        for ulid in ulids:
            self.put(table, keys.view(badge, ulid))
        return keys.marker(badge, Windows().mark(max(map(milliseconds, ulids))))

    def fold(self, function: str, stream: str, marker: Key) -> None:
        """Send the removal of a marker by TTL to the deployed function, as the stream would."""
        record = events.removal(1, *marker, arn=stream)
        answer = self.client("lambda").invoke(
            FunctionName=function, Payload=json.dumps(events.stream_event([record]))
        )
        assert "FunctionError" not in answer, answer["Payload"].read()
        assert json.load(answer["Payload"]) == {"batchItemFailures": []}

    def mapping(self, function: str) -> dict[str, Any]:
        listed = self.client("lambda").list_event_source_mappings(FunctionName=function)
        return dict(listed["EventSourceMappings"][0])

    def sweep_of(self, stack: str) -> str:
        name = f"{stack}-sweep_events"
        found = self.client("lambda").get_function_configuration(FunctionName=name)
        arn: str = found["FunctionArn"]
        return arn

    def sweep(self, stack: str) -> None:
        """Invoke the sweep; the emulator's own schedule may have done so a moment before."""
        answer = self.client("lambda").invoke(
            FunctionName=self.sweep_of(stack), Payload=json.dumps(events.tick())
        )
        assert "FunctionError" not in answer, answer["Payload"].read()
        assert json.load(answer["Payload"])["sent"] in {0, 1}

    def forget_message_of_event(self, table: str) -> None:
        """Store only the item of an event, as if its message was lost.

        The event is overdue, so each sweep finds it, also after one of the emulator's own schedule.
        """
        past = int(time.time() * 1000) - 2 * to_milliseconds(OVERDUE_SECONDS)
        event = Event("swept", past, past, Target(TargetKind.LOG), '"hello"', "swept")
        self.client("dynamodb").put_item(TableName=table, Item=encode_item(event.new_item()))

    def check_archive(self, stack: str) -> None:
        """Remove an entry and its wallet: the stream carries the entry alone to the archive."""
        found, function = self.outputs(stack), f"{stack}-archive_entries"
        entry = Entry(old_ulid(), Posting("n", 5, old_ulid()), 1_767_225_600_000)
        wallet, ran = entry.posting.target, self.invocations(function)
        client, table = self.client("dynamodb"), found["TableName"]
        item = encode_item(entry.item(wallet))
        of_wallet = Key(item["PK"]["S"], "WALLET")
        self.put(table, of_wallet)
        client.put_item(TableName=table, Item=item)
        self.delete(table, of_wallet)
        self.delete(table, Key(item["PK"]["S"], item["SK"]["S"]))
        bucket, s3 = found["ArchiveBucket"], self.client("s3")

        def objects() -> list[dict[str, Any]]:
            listed = s3.list_objects_v2(Bucket=bucket, Prefix="journal/2026/01/01/")
            return list(listed.get("Contents", []))

        until(objects, "the entry is archived")
        until(
            lambda: self.mapping(function)["LastProcessingResult"] == "OK - 1 records",
            "the mapping says so",
        )
        assert self.invocations(function) == ran + 1
        [kept] = objects()
        body = s3.get_object(Bucket=bucket, Key=kept["Key"])["Body"].read()
        line = json.loads(gzip.decompress(body))
        assert (line["id"], line["wallet"], line["amount"]) == (entry.entry_id, wallet, "5")


def old_ulid(hours: int = 2) -> str:
    """Return the ULID of a view of hours ago, later than its grace and the operator's margin."""
    return new_ulid(int((time.time() - hours * 3_600) * 1000))


@contextmanager
def running(folder: Path) -> Iterator[Emulator]:
    """Start the emulator on a free port; stop it at the end of the block."""
    assert EMULATOR.exists(), "the emulator is not installed; run: make test"
    port = free_port()
    settings = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port)}
    endpoint = f"http://127.0.0.1:{port}"
    with started([EMULATOR], folder, endpoint, **settings):
        yield Emulator(endpoint, _copy(folder / "project"))


def started(
    command: Sequence[str | Path], folder: Path, url: str, **settings: str
) -> AbstractContextManager[None]:
    """Run a program in a folder, which answers at a URL on entry; stop it at the end."""
    (_, port), _ = _split(url)
    return proxies.started(command, folder, port, settings, lambda: _answers(url))


def _answers(url: str) -> bool:
    try:
        return bool(request(*_split(url)))
    except OSError:
        return False


def _split(url: str) -> tuple[tuple[str, int], str]:
    """Return the address and the target of a URL."""
    parts = urlsplit(url)
    target = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    return (str(parts.hostname), int(parts.port or 0)), target


def _copy(folder: Path) -> Path:
    """Copy the project as it is committed, so without the records of any deployment."""
    folder.mkdir()
    left_out = shutil.ignore_patterns("__pycache__", "deployed", "deployments")
    for source in (*map(ROOT.joinpath, DEPLOYED), *ROOT.glob("requirements*")):
        if source.is_dir():
            shutil.copytree(source, folder / source.name, ignore=left_out)
        else:
            shutil.copy2(source, folder / source.name)
    _leave_out_expressions(folder / ".chalice" / "resources.yaml")
    _shorten_waits(folder / WAITERS)
    (folder / INSTALLED).parent.mkdir()
    (folder / INSTALLED).touch()
    return folder


def _leave_out_expressions(path: Path) -> None:
    """Remove the alarms on an expression of metrics, which the emulator refuses."""
    resources = template.load(path)
    resources["Resources"] = {
        name: part
        for name, part in resources["Resources"].items()
        if "Metrics" not in part.get("Properties", {})
    }
    path.write_text(template.dump(resources))


def _shorten_waits(path: Path) -> None:
    """Write waiters that ask ten times a second: a function of the emulator is ready at once.

    botocore's own wait for 5 seconds, and Chalice waits for each function.
    """
    models = Loader().load_service_model("lambda", "waiters-2")
    for waiter in models["waiters"].values():
        waiter.update(delay=0.1, maxAttempts=10 * PATIENCE_SECONDS)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(models))
