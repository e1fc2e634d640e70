"""The package: its bytes, its zip, its templates according to cfn-lint, and its handlers.

Each handler works in a process that has only the zip and boto3.
"""

from __future__ import annotations

import compileall
import copy
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import sys
import tarfile
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import pytest
from packaging.utils import canonicalize_name

from chalicelib.http import tokens
from deploy import __main__ as deploying
from deploy import template
from simulation import aws_events as events
from simulation.environment import ENVIRONMENT
from tests import checkers
from tests.processes.conftest import copy_sources, run_package
from tests.processes.programs import succeed

STAGES = ["prod", "dev"]
MAX_BYTES = 1_100_000
"""Lambda unpacks the package at a cold start; boto3 alone would be about 15 MB."""


def read(folder: Path) -> dict[str, Any]:
    return copy.deepcopy(_load(folder / "sam.yaml"))


_load = cache(template.load)


def names(folder: Path) -> list[str]:
    with ZipFile(folder / "deployment.zip") as zipped:
        return zipped.namelist()


FILES = {"sam.yaml", "deployment.zip", "deployment.cdx.json", "standalone.cdx.json"}


def test_a_package_from_another_machine_or_after_chalice_deploy_has_the_same_bytes(
    packages: dict[str, Path],
) -> None:
    """The package of dev is made elsewhere, so it has the names of no stack of there."""
    prod, dev = (packages[stage] for stage in STAGES)
    for name in FILES - {"sam.yaml"}:
        assert (dev / name).read_bytes() == (prod / name).read_bytes()
    given = read(prod)
    _name_stage(given, "dev")
    expected = template.dump(template.for_stage(given, "dev"))
    assert (dev / "sam.yaml").read_text() == expected


def _name_stage(given: dict[str, Any], stage: str) -> None:
    """Replace the stage in the tag that Chalice gives its functions."""
    for part in given["Resources"].values():
        tags = part.get("Properties", {}).get("Tags", {})
        if "aws-chalice" in tags:
            tags["aws-chalice"] = re.sub("stage=[a-z]+", f"stage={stage}", tags["aws-chalice"])


def test_a_dependency_without_a_hash_in_the_lock_is_not_packaged(tmp_path: Path) -> None:
    copy_sources(tmp_path)
    with ZipFile(tmp_path / "wheel-1.0-py3-none-any.whl", "w") as made:
        made.writestr("wheel-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: wheel\n")
    (tmp_path / "requirements.txt").write_text("wheel==1.0\n")
    finished = run_package(tmp_path, {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)})
    assert finished.returncode == 1
    assert "Hashes are required" in finished.stderr
    assert not (tmp_path / "made" / "deployment.zip").exists()


def test_a_dependency_without_a_wheel_is_not_built(tmp_path: Path) -> None:
    """A build would run code of packages that have no hash in the lock."""
    copy_sources(tmp_path)
    with tarfile.open(tmp_path / "sdist-1.0.tar.gz", "w:gz") as made:
        for name in ("PKG-INFO", "setup.py"):
            made.addfile(tarfile.TarInfo(f"sdist-1.0/{name}"), io.BytesIO())
    digest = hashlib.sha256((tmp_path / "sdist-1.0.tar.gz").read_bytes()).hexdigest()
    (tmp_path / "requirements.txt").write_text(f"sdist==1.0 --hash=sha256:{digest}\n")
    finished = run_package(tmp_path, {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)})
    assert finished.returncode == 1
    assert "Could not satisfy the requirement: sdist==1.0" in finished.stderr


def test_the_zip_is_small_and_has_the_app_the_runtime_of_chalice_and_the_requirements(
    packages: dict[str, Path],
) -> None:
    tops = {name.split("/")[0] for name in names(packages["prod"])}
    modules = {name for name in tops - {"__pycache__"} if not name.endswith(".dist-info")}
    assert modules == {"app.py", "chalice", "chalicelib"}
    assert (packages["prod"] / "deployment.zip").stat().st_size < MAX_BYTES


def test_the_bill_of_the_package_has_what_is_in_the_zip_and_in_the_runtime(
    packages: dict[str, Path],
) -> None:
    """Chalice copies its own runtime into the zip, without its metadata."""
    bill = json.loads((packages["prod"] / "deployment.cdx.json").read_text())
    listed = {(part["name"], part.get("version")) for part in bill["components"]}
    zipped = metadata.distributions(path=[str(packages["prod"] / "deployment.zip")])
    packed = {(canonicalize_name(part.name), part.version) for part in zipped}
    runtime = {("boto3", None), ("botocore", None), ("python", "3.13")}
    assert listed == packed | runtime | {("chalice", metadata.version("chalice"))}
    digest = hashlib.sha256((packages["prod"] / "deployment.zip").read_bytes()).hexdigest()
    assert bill["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": digest}]


def test_the_zip_has_the_sources_as_they_are(packages: dict[str, Path]) -> None:
    files = [template.ROOT / "app.py", *(template.ROOT / "chalicelib").rglob("*.*")]
    sources = {
        path.relative_to(template.ROOT).as_posix(): path.read_bytes()
        for path in files
        if path.suffix != ".pyc"
    }
    with ZipFile(packages["prod"] / "deployment.zip") as zipped:
        ours = [name for name in zipped.namelist() if name.startswith(("app.py", "chalicelib/"))]
        given = {name: zipped.read(name) for name in ours if not name.endswith(".pyc")}
    assert given == sources


def test_the_templates_have_no_findings(packages: dict[str, Path], tmp_path: Path) -> None:
    """All of prod is checked at once with the resources that differ in dev, under other names."""
    prod, dev = (read(packages[stage]) for stage in STAGES)
    _name_stage(dev, "prod")
    given, of_dev = prod.pop("Resources"), dev.pop("Resources")
    assert (dev, of_dev.keys()) == (prod, given.keys())
    others = {name: part for name, part in of_dev.items() if part != given[name]}
    assert "Table" in others
    written = tmp_path / "sam.yaml"
    written.write_text(template.dump({**prod, "Resources": {**given, **_renamed(others)}}))
    assert checkers.lint(written) == []


def _renamed(resources: dict[str, Any]) -> dict[str, Any]:
    """Return resources under other names, also where they refer to each other."""
    text = json.dumps(resources)
    for name in resources:
        text = text.replace(f'"{name}"', f'"{name}OfDev"')
    renamed: dict[str, Any] = json.loads(text)
    return renamed


def test_the_template_of_the_table_and_the_queues_alone_has_no_findings(tmp_path: Path) -> None:
    assert deploying.main(["resources", "--stage", "prod", "--out", str(tmp_path)]) == 0
    written = tmp_path / "resources.yaml"
    assert template.load(written) == template.extract_standalone(template.load())
    assert checkers.lint(written) == []


# ---- the handlers

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
    shutil.unpack_archive(packages["prod"] / "deployment.zip", folder / "package")
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
