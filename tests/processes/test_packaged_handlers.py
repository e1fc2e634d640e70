"""The handlers of the template: each works in a process that has only the zip and boto3."""

from __future__ import annotations

import compileall
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import pytest

from chalicelib.http import tokens
from deploy import template
from simulation import aws_events as events
from simulation.environment import ENVIRONMENT
from tests.processes.programs import succeed

AWS = "chalicelib.aws."
GET_VIEWS, API, AUTHORIZE, PAUSE = (
    f"{AWS}{name}.handler" for name in ("get_views", "api_handler", "http_authorizer", "pause_api")
)
"""The handlers of the HTTP API and of its alarm, which need no Chalice."""
APP, CHALICE_AUTHORIZE = "app.app", f"{AWS}chalice_routes.authorize"
"""The handlers of the REST API, which `chalice deploy` creates."""
CONSUMERS = f"{AWS}consumers."
ARCHIVE = f"{CONSUMERS}archive_entries"
TOKEN = tokens.new_token()
OF_THE_RUNTIME = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3")
"""boto3 and its dependencies, which Lambda's Python has in addition to the standard library."""
RUN = """
import importlib, json, sys
given = json.loads(sys.stdin.read())
sys.path += given["path"]
module, name = given["handler"].rsplit(".", 1)
handler = getattr(importlib.import_module(module), name)
imported = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
if given["event"]:
    handler(given["event"], None)
print(json.dumps([imported, [*sys.modules]]))
"""


class Ran(NamedTuple):
    """The modules that a handler imported before its event, with their files, and in all."""

    imported: dict[str, str | None]
    later: list[str]


@pytest.fixture(scope="module")
def package(packages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the unzipped package; beside it is a folder with what the runtime brings."""
    folder = tmp_path_factory.mktemp("lambda")
    with ZipFile(packages["prod"] / "deployment.zip") as zipped:
        zipped.extractall(folder / "package")
    # The zip has compiled files for Lambda's Python, and this one would compile at each start.
    assert compileall.compile_dir(folder / "package", quiet=1)
    (folder / "runtime").mkdir()
    for name in OF_THE_RUNTIME:
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        source = Path(found.origin)
        source = source.parent if source.name == "__init__.py" else source
        (folder / "runtime" / source.name).symlink_to(source)
    return folder / "package"


def run(package: Path, handler: str, event: dict[str, Any]) -> Ran:
    """Run one cold start in a process that sees only these folders: -I and -S leave others out."""
    path = [str(package), str(package.with_name("runtime"))]
    printed = succeed(
        *(sys.executable, "-I", "-S", "-B", "-c", RUN),
        cwd=package,
        given=json.dumps({"path": path, "handler": handler, "event": event}),
        env={
            "PATH": os.environ["PATH"],
            **ENVIRONMENT,
            "AWS_REGION": "us-east-1",
            "DELIVERY_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/deliveries",
            "API_TOKEN_DIGESTS": tokens.digest(TOKEN),
        },
    )
    return Ran(*json.loads(printed.splitlines()[-1]))


@pytest.fixture(scope="module")
def ran(packages: dict[str, Path], package: Path) -> dict[str, Ran]:
    """Run each handler with an event that needs no request to AWS: no id, message or record.

    The sweep and the alarm have no such event, so theirs are only imported.
    """
    given = {
        GET_VIEWS: events.http_api_event("/api/v1/views"),
        API: events.http_api_event("/api/v1/views"),
        AUTHORIZE: events.authorizer_event(f"Bearer {TOKEN}"),
        APP: events.http_event(),
        CHALICE_AUTHORIZE: {
            "type": "TOKEN",
            "methodArn": "arn:aws:execute-api:us-east-1:123456789012:api/prod/POST/timers",
            "authorizationToken": f"Bearer {TOKEN}",
        },
        f"{CONSUMERS}sweep_events": {},
        PAUSE: {},
    }
    resources = template.load(packages["prod"] / "sam.yaml")["Resources"].values()
    of_stack = {part.get("Properties", {}).get("Handler") for part in resources} - {None}
    assert {GET_VIEWS, API, AUTHORIZE, PAUSE, ARCHIVE} < of_stack
    no_message = events.sqs_event({})
    handlers = {APP, CHALICE_AUTHORIZE} | of_stack
    return {one: run(package, one, given.get(one, no_message)) for one in handlers}


def test_a_handler_has_all_that_it_needs_from_the_package_alone(
    package: Path, ran: dict[str, Ran]
) -> None:
    for handler, one in ran.items():
        files = {name: Path(file) for name, file in one.imported.items() if file}
        assert "chalicelib.aws.resources" in files
        assert ("chalice.app" in files) is (handler not in {GET_VIEWS, API, AUTHORIZE, PAUSE})
        for name in {"chalice.app", "chalicelib.aws.resources"} & set(files):
            assert files[name].is_relative_to(package)
        ours = {"vumi", "tests", "deploy", "bench"}
        assert not {name for name in files if name.split(".")[0] in ours | {"granian"}}
        assert not {name for name, file in files.items() if "site-packages" in file.parts}
        assert not {"boto3", "botocore", "moto"} & set(one.imported)


def test_only_the_archive_uses_botocore_of_the_runtime(ran: dict[str, Ran]) -> None:
    """`put_views` makes a client for DynamoDB. The API answers a bad id without one."""
    put_views = ran[f"{CONSUMERS}put_views"].later
    assert {"chalicelib.aws.json_client", "chalicelib.tls"} <= {*put_views}, "before any request"
    assert {name for name, one in ran.items() if "botocore" in one.later} <= {ARCHIVE}
    for handler in (GET_VIEWS, API, APP):
        assert "chalicelib.aws.json_client" not in ran[handler].later
    outgoing = {f"chalicelib.outgoing.{name}" for name in ("fetching", "http_client", "urls")}
    assert not outgoing & {*ran[GET_VIEWS].later, *ran[API].later}
    assert not any("boto3" in one.later for one in ran.values())


def test_the_function_of_views_imports_no_other_feature(ran: dict[str, Ran]) -> None:
    """Its cold start delays a badge."""
    imported = {*ran[GET_VIEWS].later}
    features = {name.split(".")[1] for name in imported if name.startswith("chalicelib.")}
    assert not {"api", "description", "events", "wallets"} & features
    assert not {"chalicelib.owners.claiming", "chalicelib.owners.routes"} & imported
    assert not {"chalicelib.history.history", "chalicelib.history.chart", "gzip"} & imported
