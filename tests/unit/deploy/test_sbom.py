"""The bills of materials: valid, complete, and the same bytes every time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deploy import locks, release_checks, sbom, template


@pytest.fixture
def package(tmp_path: Path) -> Path:
    made = tmp_path / "deployment.zip"
    made.write_bytes(b"a zip")
    return made


@pytest.fixture(params=["package", "standalone"])
def describe(request: pytest.FixtureRequest, package: Path) -> Callable[[], str]:
    bills = {
        "package": lambda: sbom.describe_package(package),
        "standalone": sbom.describe_standalone,
    }
    return bills[request.param]


def names(bill: dict[str, Any]) -> set[str]:
    return {part["name"] for part in bill["components"]}


def needs(bill: dict[str, Any], name: str) -> list[str]:
    """Return the references, without versions, to the packages that a part needs."""
    [found] = [entry for entry in bill["dependencies"] if entry["ref"].split("@")[0] == name]
    return [ref.split("@")[0] for ref in found.get("dependsOn", [])]


def test_it_is_valid_by_the_schema_of_cyclonedx(describe: Callable[[], str]) -> None:
    assert release_checks.find_error(describe()) is None


def test_two_bills_of_the_same_locks_have_the_same_bytes(describe: Callable[[], str]) -> None:
    assert describe() == describe()


def test_every_package_has_a_version_a_licence_and_the_hashes_of_its_lock() -> None:
    locked = {part.name: part for part in locks.read(template.ROOT / "requirements/standalone.txt")}
    for part in json.loads(sbom.describe_standalone())["components"]:
        assert part["version"] == locked[part["name"]].version
        assert part["purl"] == f"pkg:pypi/{part['name']}@{part['version']}"
        assert part["licenses"]
        [files] = part["externalReferences"]
        assert files["type"] == "distribution"
        assert {found["content"] for found in files["hashes"]} == {*locked[part["name"]].hashes}


def test_one_machine_has_its_web_server_and_what_that_needs() -> None:
    bill = json.loads(sbom.describe_standalone())
    assert names(bill) >= {"click", "granian", "python-ulid"}
    direct = ["pkg:pypi/click", "pkg:pypi/granian", "pkg:pypi/python-ulid"]
    assert needs(bill, "vu-mi") == direct
    assert needs(bill, "pkg:pypi/granian") == ["pkg:pypi/click"]


def test_the_bill_of_a_package_has_the_hash_of_its_zip(package: Path) -> None:
    project = json.loads(sbom.describe_package(package))["metadata"]["component"]
    digest = hashlib.sha256(b"a zip").hexdigest()
    assert project["hashes"] == [{"alg": "SHA-256", "content": digest}]
