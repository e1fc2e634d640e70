"""The server and the packages that tests share, copies of the sources, parts of the template."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from deploy import bytecode, template
from deploy.http_api import APART
from deploy.package import package
from deploy.stage import FUNCTIONS as OF_CHALICE
from deploy.stage import SETTINGS, Folder, write_names
from deploy.template import ALL_FEATURES, decide
from tests import checkers
from tests.processes.programs import Server, finish, running

OUTPUTS = {
    **dict.fromkeys(SETTINGS.values(), "of another stack"),
    "TableStreamArn": "arn:aws:dynamodb:us-east-1:123456789012:table/other/stream/label",
}


def copy_sources(folder: Path) -> None:
    """Copy all that `python -m deploy package` reads."""
    for source in (template.ROOT / "app.py", template.ROOT / "requirements.txt"):
        shutil.copy(source, folder)
    for name in ("chalicelib", "vumi", "deploy", "requirements", ".chalice"):
        shutil.copytree(template.ROOT / name, folder / name)


def run_package(
    folder: Path, settings: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python -m deploy package` on a copy of the sources."""
    command = (sys.executable, "-m", "deploy", "package", "--stage", "dev", "--out", "made")
    return finish(*command, cwd=folder, env={**os.environ, **(settings or {})})


def package_after_chalice_deploy(folder: Path) -> Path:
    """Make a package of a copy that has the names of a stack; return its folder."""
    copy_sources(folder)
    write_names("dev", OUTPUTS, Folder(folder / ".chalice"))
    finished = run_package(folder)
    assert finished.returncode == 0, finished.stderr
    return folder / "made"


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folder of each stage, with the files of its package.

    The first process makes them, and the others wait for it. That of dev is made elsewhere, after
    `chalice deploy`.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    made = {stage: shared / f"package-{stage}" for stage in ("prod", "dev")}
    with (shared / "packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made["dev"].exists():
            work = tmp_path_factory.mktemp("prod")
            package("prod", work, bytecode.find_python(os.environ))
            work.rename(made["prod"])
            package_after_chalice_deploy(tmp_path_factory.mktemp("copy")).rename(made["dev"])
    return made


@pytest.fixture(scope="session")
def templates(packages: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """Return the template of each stage as CloudFormation sees it, after SAM's translation.

    The package's place in S3 is the one that `aws cloudformation package` would write.
    """
    templates = {}
    for stage, folder in packages.items():
        given = template.load(folder / "sam.yaml")
        for resource in given["Resources"].values():
            if resource["Type"] == "AWS::Serverless::Function":
                assert resource["Properties"]["CodeUri"] == "./deployment.zip"
                resource["Properties"]["CodeUri"] = "s3://bucket/deployment.zip"
        templates[stage] = checkers.translate(given)
    return templates


@pytest.fixture(scope="session")
def stack(templates: dict[str, dict[str, Any]]) -> Resources:
    """Return the resources of prod with all features; dev differs by its protection alone."""
    resources: Resources = decide(templates["prod"], ALL_FEATURES)["Resources"]
    return resources


@pytest.fixture(scope="session")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a stopped vu-mi: the badge `a` with 3 views. No test changes it."""
    folder = tmp_path_factory.mktemp("stopped") / "data"
    with running(folder) as server:
        server.visit("a", 3)
        assert server.stop()[0] == 0
    return folder


@pytest.fixture
def folder(stopped: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder, which the test may change."""
    return shutil.copytree(stopped, tmp_path / "data")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a server with the default settings; each test has its own badges."""
    with running(tmp_path_factory.mktemp("served")) as server:
        yield server


# ---- the resources that SAM makes from the template of the package

FUNCTIONS = {**OF_CHALICE, **{function: name for name, function in APART.items()}}
"""The resource of each function, by its name."""
Resources: TypeAlias = dict[str, dict[str, Any]]
OFF = {"Events": "off", "Wallets": "off"}
"""The parameters of a stack of badges alone."""


def of_type(stack: Resources, kind: str) -> dict[str, dict[str, Any]]:
    """Return the properties of the resources of a type."""
    return {name: part["Properties"] for name, part in stack.items() if part["Type"] == kind}


def made_with(given: dict[str, Any], **parameters: str) -> dict[str, Any]:
    """Return a template as CloudFormation makes it with these parameters."""
    return decide(given, _evaluate(given, parameters))


def _evaluate(template: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, bool]:
    """Return the truth of each condition, with these parameters and the defaults of all others."""
    values = {
        name: given.get(name, parameter.get("Default"))
        for name, parameter in template["Parameters"].items()
    }
    conditions = template["Conditions"]
    return {name: _is_true(condition, conditions, values) for name, condition in conditions.items()}


def _is_true(condition: Any, conditions: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    match condition:
        case {"Condition": name}:
            return _is_true(conditions[name], conditions, values)
        case {"Fn::Not": [inner]}:
            return not _is_true(inner, conditions, values)
        case {"Fn::Or": parts}:
            return any(_is_true(part, conditions, values) for part in parts)
        case {"Fn::And": parts}:
            return all(_is_true(part, conditions, values) for part in parts)
        case {"Fn::Equals": [one, other]}:
            return bool(_value(one, values) == _value(other, values))
    raise ValueError(f"unknown condition: {condition}")


def _value(part: Any, values: Mapping[str, Any]) -> Any:
    match part:
        case {"Ref": name}:
            return values[name]
        case {"Fn::Join": [separator, parts]}:
            joined: list[str] | str = _value(parts, values)
            return joined if isinstance(joined, str) else separator.join(joined)
    return part
