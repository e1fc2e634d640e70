"""The locks, up to date and with hashes, and the bills of materials that are made of them."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy import release, sbom, template
from deploy.template import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS: dict[str, list[str | dict[str, str]]] = PYPROJECT["dependency-groups"]
EXACT = re.compile(r"==[^*,]+")


def lock_of(group: str) -> Path:
    return ROOT / f"requirements/{group}.txt"


def direct(group: str) -> set[str]:
    """Return the requirements of a group and of those that it includes."""
    found: set[str] = set()
    for entry in GROUPS[group]:
        found |= {entry} if isinstance(entry, str) else direct(entry["include-group"])
    return found


def merged(requirements: Iterable[Requirement]) -> dict[str, tuple[str, set[str]]]:
    """Return the version and the extras of each package: a group may add extras to another's."""
    found: dict[str, tuple[str, set[str]]] = {}
    for one in requirements:
        _, extras = found.setdefault(canonicalize_name(one.name), (str(one.specifier), set()))
        extras |= one.extras
    return found


def versions(group: str) -> dict[str, str]:
    return {package.name: package.version for package in sbom.read_lock(lock_of(group))}


def test_every_group_has_a_lock_and_every_lock_a_group() -> None:
    assert {lock_of(group) for group in GROUPS} == {*ROOT.glob("requirements/*.txt")}


@pytest.mark.parametrize("group", GROUPS)
def test_a_lock_has_the_packages_of_its_group_and_what_they_need_with_hashes(group: str) -> None:
    """If this fails, run `make lock`."""
    locked = sbom.read_lock(lock_of(group))
    found = merged(one.requirement for one in locked if sbom.PROJECT in one.needed_by)
    wanted = merged(map(Requirement, direct(group)))
    assert {name: of[0] for name, of in found.items()} == {
        name: of[0] for name, of in wanted.items()
    }
    for name, (_, extras) in wanted.items():
        assert extras <= found[name][1]  # another package may need more of them
    known = {sbom.PROJECT, *versions(group)}
    for package in locked:
        assert EXACT.fullmatch(str(package.requirement.specifier)), package.requirement
        assert package.hashes, package.requirement
        assert package.needed_by, package.requirement
        assert set(map(canonicalize_name, package.needed_by)) <= known


@pytest.mark.parametrize("group", ["standalone", "mutants"])
def test_the_locks_of_one_environment_have_the_same_versions(group: str) -> None:
    """The tests run on the versions that users get."""
    locked, dev = versions(group), versions("dev")
    shared = locked.keys() & dev.keys()
    assert shared in (locked.keys(), dev.keys())
    assert {name: locked[name] for name in shared} == {name: dev[name] for name in shared}


@pytest.mark.parametrize(
    ("required", "group"),
    [
        (PYPROJECT["build-system"]["requires"], "build"),
        (PYPROJECT["project"]["dependencies"], "standalone"),
        (PYPROJECT["project"]["optional-dependencies"]["aws"], "deploy"),
    ],
)
def test_the_wheel_allows_the_versions_that_the_tests_run_on(
    required: list[str], group: str
) -> None:
    """It requires every direct package of one machine."""
    pinned = {Requirement(one).name: Requirement(one) for one in direct(group)}
    for requirement in map(Requirement, required):
        [pin] = pinned[requirement.name].specifier
        assert requirement.specifier.contains(pin.version), requirement
    if group == "standalone":
        assert {Requirement(one).name for one in required} == pinned.keys()


def test_every_installation_of_the_makefile_requires_hashes_and_wheels() -> None:
    makefile = (ROOT / "Makefile").read_text()
    commands = re.findall(r"(?:pip|PIP\)|PIP,\S+) (?:install|download|wheel).*", makefile)
    wheel, *others = commands
    assert " --no-index --find-links $(VENV)/wheels --no-deps " in wheel
    assert others == ["PIP) install $(OPTIONS_OF_PIP)", "PIP) download $(OPTIONS_OF_PIP)"]
    options = "--quiet --disable-pip-version-check --require-hashes $(WHEELS)"
    assert f"\nOPTIONS_OF_PIP = {options}\n" in makefile
    assert "\nWHEELS := --only-binary :all:\n" in makefile


# ---- the bills of materials


LOCKED = sbom.read_lock(template.ROOT / "requirements" / "standalone.txt")


def needs(bill: dict[str, Any], name: str) -> set[str]:
    """Return the references, without versions, to the packages that a part needs."""
    [found] = [entry for entry in bill["dependencies"] if entry["ref"].split("@")[0] == name]
    return {ref.split("@")[0].removeprefix("pkg:pypi/") for ref in found.get("dependsOn", [])}


def test_the_bill_of_a_zip_is_valid_has_its_hash_and_the_same_bytes_again(tmp_path: Path) -> None:
    package, bill = tmp_path / "deployment.zip", tmp_path / "deployment.cdx.json"
    package.write_bytes(b"a zip")
    bill.write_text(sbom.describe_package(package))
    release.validate_bill(bill)
    assert bill.read_text() == sbom.describe_package(package)
    described = json.loads(bill.read_text())
    digest = hashlib.sha256(b"a zip").hexdigest()
    assert needs(described, "vu-mi") == {"boto3", "botocore", "chalice", "python"}
    assert described["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": digest}]


def test_one_machine_has_each_package_with_a_licence_and_the_hashes_of_its_lock() -> None:
    bill = json.loads(sbom.describe_standalone())
    locked = {part.name: part for part in LOCKED}
    assert needs(bill, "vu-mi") == {part.name for part in LOCKED if sbom.PROJECT in part.needed_by}
    assert needs(bill, "pkg:pypi/granian") == {"click"}
    assert {part["name"] for part in bill["components"]} <= locked.keys()
    for part in bill["components"]:
        assert part["version"] == locked[part["name"]].version
        assert part["purl"] == f"pkg:pypi/{part['name']}@{part['version']}"
        assert part["licenses"]
        [files] = part["externalReferences"]
        assert {found["content"] for found in files["hashes"]} == {*locked[part["name"]].hashes}
