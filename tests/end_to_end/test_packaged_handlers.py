"""The handlers of the template: each works in a process that has only the zip and boto3."""

from __future__ import annotations

import compileall
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from app import app
from chalicelib.http import tokens
from deploy import template
from simulation import aws_events as events

GET_VIEWS, API = "chalicelib.aws.get_views.handler", "chalicelib.aws.api_handler.handler"
AUTHORIZE = "chalicelib.aws.http_authorizer.handler"
APP, CHALICE_AUTHORIZE = "app.app", "chalicelib.aws.authorizer.authorize"
"""The handlers of the REST API, which `chalice deploy` creates."""
SWEEP = "chalicelib.aws.consumers.sweep_timers"
ARCHIVE = "chalicelib.aws.consumers.archive_entries"
OF_VIEWS = ("chalicelib.aws.consumers.put_views", "chalicelib.aws.consumers.fold_views")
CONSUMERS = (
    *OF_VIEWS,
    "chalicelib.aws.consumers.distribute_timers",
    "chalicelib.aws.consumers.fire_timers",
    ARCHIVE,
)
OF_THE_HTTP_API = (GET_VIEWS, API, AUTHORIZE)
"""They need no Chalice."""
OF_THE_STACK = (*OF_THE_HTTP_API, SWEEP, *CONSUMERS)
HANDLERS = (*OF_THE_STACK, APP, CHALICE_AUTHORIZE)
TOKEN = tokens.new_token()
OF_THE_RUNTIME = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3")
"""boto3 and its dependencies, which Lambda's Python has in addition to the standard library."""
FOR_OLDER = ("typing_extensions",) if sys.version_info < (3, 12) else ()
"""A package that only older versions of Python than Lambda's need."""
RUN = """
import importlib, json, sys
given = json.loads(sys.stdin.read())
sys.path += given["path"]
module, name = given["handler"].rsplit(".", 1)
handler = getattr(importlib.import_module(module), name)
imported = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
try:
    answer = handler(given["event"], None)
except Exception as raised:
    answer = {"raised": str(raised)}
print(json.dumps({"imported": imported, "answer": answer, "later": sorted(sys.modules)}))
"""


@dataclass(frozen=True)
class Ran:
    """The answer of a handler, and the modules that it imported before its event and in all."""

    imported: dict[str, str | None]
    answer: dict[str, Any]
    later: set[str]


@dataclass(frozen=True)
class Lambda:
    """Two folders: the unzipped package, and what the runtime brings."""

    package: Path
    runtime: Path

    def run(self, handler: str, event: dict[str, Any], **environment: str) -> Ran:
        """Run one cold start in a process that sees only these folders.

        -I and -S leave all others out. `environment` has the variables that Lambda adds.
        """
        path = [str(self.package), str(self.runtime)]
        finished = subprocess.run(  # noqa: S603  our own words
            [sys.executable, "-I", "-S", "-B", "-c", RUN],
            input=json.dumps({"path": path, "handler": handler, "event": event}),
            cwd=self.package,
            env={
                "PATH": os.environ["PATH"],
                "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "none",
                "AWS_SECRET_ACCESS_KEY": "none",
                "TABLE_NAME": "vu-mi",
                "VIEWS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/views",
                "TIMERS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/timers",
                "API_TOKEN_DIGESTS": tokens.digest(TOKEN),
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        told = json.loads(finished.stdout.splitlines()[-1])
        return Ran(told["imported"], told["answer"], set(told["later"]))


@pytest.fixture(scope="module")
def aws(packages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Lambda:
    folder = tmp_path_factory.mktemp("lambda")
    with ZipFile(packages["prod"] / "deployment.zip") as zipped:
        zipped.extractall(folder / "package")
    # The zip has compiled files for Lambda's Python, and this one would compile at each start.
    assert compileall.compile_dir(folder / "package", quiet=1)
    (folder / "runtime").mkdir()
    for name in (*OF_THE_RUNTIME, *FOR_OLDER):
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        source = Path(found.origin)
        source = source.parent if source.name == "__init__.py" else source
        (folder / "runtime" / source.name).symlink_to(source)
    return Lambda(folder / "package", folder / "runtime")


@pytest.fixture(scope="module")
def ran(aws: Lambda) -> dict[str, Ran]:
    """Run each handler with an event that needs no request to AWS: no id, message or record.

    The sweep has no such event. It has no queue here, and raises an error that says so.
    """
    given = {
        GET_VIEWS: events.http_api_event("/api/v1/views"),
        API: events.http_api_event("/api/v1/views"),
        AUTHORIZE: events.authorizer_event(f"Bearer {TOKEN}"),
        APP: events.http_event(),
        CHALICE_AUTHORIZE: asked_by(TOKEN),
        SWEEP: events.tick(),
        **{consumer: events.sqs_event({}) for consumer in CONSUMERS},
    }
    return {handler: aws.run(handler, event) for handler, event in given.items()}


def asked_by(token: str) -> dict[str, Any]:
    """Return the event that a REST API sends to its authorizer."""
    arn = "arn:aws:execute-api:us-east-1:123456789012:api/prod/POST/timers"
    return {"type": "TOKEN", "methodArn": arn, "authorizationToken": f"Bearer {token}"}


def test_the_handlers_equal_those_of_the_template_and_the_app(packages: dict[str, Path]) -> None:
    """They are those of the HTTP API, its authorizer, the event sources and the schedule."""
    for folder in packages.values():
        resources = template.load(folder / "sam.yaml")["Resources"].values()
        deployed = [
            resource["Properties"]["Handler"]
            for resource in resources
            if resource["Type"] == "AWS::Serverless::Function"
        ]
        assert sorted(deployed) == sorted(OF_THE_STACK)
    assert {source.handler_string for source in app.event_sources} == {SWEEP, *CONSUMERS}
    [authorizer] = app.builtin_auth_handlers
    assert authorizer.handler_string == CHALICE_AUTHORIZE


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_handler_has_all_that_it_needs_from_the_package_alone(
    aws: Lambda, ran: dict[str, Ran], handler: str
) -> None:
    files = {name: Path(file) for name, file in ran[handler].imported.items() if file}
    assert "chalicelib.aws.resources" in files
    assert ("chalice.app" in files) is (handler not in OF_THE_HTTP_API)
    for name in {"chalice.app", "chalicelib.aws.resources", "ulid"} & set(files):
        assert files[name].is_relative_to(aws.package)
    ours = {"vumi", "tests", "deploy", "bench"}
    assert not {name for name in files if name.split(".")[0] in ours | {"granian"}}
    assert not {name for name, file in files.items() if "site-packages" in file.parts}


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_handler_answers_its_first_event(ran: dict[str, Ran], handler: str) -> None:
    answer = ran[handler].answer
    if handler in CONSUMERS:
        assert answer == {"batchItemFailures": []}
    elif handler == AUTHORIZE:
        context = {"role": "operator", "user": ""}
        assert answer == {"isAuthorized": True, "context": context}
    elif handler == CHALICE_AUTHORIZE:
        assert answer["principalId"] == "operator"
        assert resources_opened(answer)
    elif handler == SWEEP:
        no_queue = "DISTRIBUTION_QUEUE_URL is not set; it must be the URL of an SQS queue"
        assert answer == {"raised": no_queue}
    else:
        assert answer["statusCode"] == 200
        assert json.loads(answer["body"])["message"] == "give an id: ?id=owner/name"


def resources_opened(answer: dict[str, Any]) -> list[str]:
    """Return the resources that an authorizer's answer opens."""
    [statement] = answer["policyDocument"]["Statement"]
    assert statement["Effect"] == "Allow"
    opened: list[str] = statement["Resource"]
    return opened


def test_a_malformed_token_opens_nothing(aws: Lambda) -> None:
    event = events.authorizer_event("Bearer too-short")
    assert aws.run(AUTHORIZE, event).answer == {"isAuthorized": False}
    answer = aws.run(CHALICE_AUTHORIZE, asked_by("too-short")).answer
    assert answer["principalId"] == "nobody"
    assert resources_opened(answer) == []


@pytest.mark.parametrize("handler", HANDLERS)
def test_importing_a_handler_loads_no_aws_client_library(ran: dict[str, Ran], handler: str) -> None:
    """This is outside Lambda, where tests and `chalice package` import the handlers."""
    assert not {"boto3", "botocore", "moto"} & set(ran[handler].imported)


def test_only_the_archive_uses_botocore_of_the_runtime(ran: dict[str, Ran]) -> None:
    """`put_views` makes a client for DynamoDB. The API answers a bad id without one."""
    assert "chalicelib.aws.json_client" in ran["chalicelib.aws.consumers.put_views"].later
    assert {one for one in HANDLERS if "botocore" in ran[one].later} <= {ARCHIVE}
    for handler in (GET_VIEWS, API, APP):
        assert "chalicelib.aws.json_client" not in ran[handler].later
    outgoing = {f"chalicelib.outgoing.{name}" for name in ("fetching", "http_client", "urls")}
    assert not outgoing & (ran[GET_VIEWS].later | ran[API].later)
    assert not any("boto3" in one.later for one in ran.values())


def test_the_function_of_views_imports_no_other_feature(ran: dict[str, Ran]) -> None:
    """Its cold start delays a badge."""
    imported = ran[GET_VIEWS].later
    features = {name.split(".")[1] for name in imported if name.startswith("chalicelib.")}
    assert not {"api", "description", "events", "wallets"} & features
    assert not {"chalicelib.owners.claiming", "chalicelib.owners.routes"} & imported
    assert not {"chalicelib.history.history", "chalicelib.history.chart", "gzip"} & imported


def test_the_process_sees_no_other_packages(aws: Lambda) -> None:
    """A handler that needs a package of the development environment fails here."""
    (aws.package / "needs_yaml.py").write_text("import yaml\n")
    with pytest.raises(AssertionError, match="No module named 'yaml'"):
        aws.run("needs_yaml.handler", {})
