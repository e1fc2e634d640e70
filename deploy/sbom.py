"""The bills of materials: the packages that run on AWS and on one machine, in CycloneDX's JSON.

They have no time and no random number, so the same locks give the same bytes. A lock is a file of
exact versions, with the hashes of the files of each release. Source: CycloneDX 1.6, "JSON
Reference".
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from chalicelib import VERSION
from deploy import template

PROJECT = "vu-mi"
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")
NEEDED_BY = re.compile(r"^    # (?:via |  )(?!-c )(\S+)", re.MULTILINE)
"""A name in the comment in which uv says who needs a package."""
ENTRY = re.compile(r"^(?=[^\s#])", re.MULTILINE)
LAMBDA_PACKAGES = ("boto3", "botocore")
"""The packages of Lambda's runtime that the functions import. AWS chooses their versions."""

Component: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class LockedPackage:
    """A package of a lock, with the SHA-256 hashes of its files and the packages that need it."""

    requirement: Requirement
    hashes: tuple[str, ...]
    needed_by: tuple[str, ...]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        return str(self.requirement.specifier).removeprefix("==")


def read_lock(lock: Path) -> list[LockedPackage]:
    """Read the packages of a lock."""
    return [_parse(entry) for entry in ENTRY.split(lock.read_text())[1:]]


def _parse(entry: str) -> LockedPackage:
    line = entry.partition("\n")[0].partition(" --hash")[0].removesuffix("\\")
    return LockedPackage(
        Requirement(line), tuple(HASH.findall(entry)), tuple(NEEDED_BY.findall(entry))
    )


def describe_package(package: Path) -> str:
    """Return the bill of a zip: the packages in it, and those of Lambda's runtime."""
    chalice = [part for part in _read("requirements/deploy.txt") if part.name == "chalice"]
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    runtime = template.load()["Resources"]["APIHandler"]["Properties"]["Runtime"]
    python = {
        "type": "platform",
        "name": "python",
        "version": runtime.removeprefix("python"),
        "bom-ref": "python",
    }
    return _write(chalice, [digest], [*map(_provided_package, LAMBDA_PACKAGES), python])


def describe_standalone() -> str:
    """Return the bill of the program on one machine."""
    return _write(_read("requirements/standalone.txt"))


def _read(lock: str) -> list[LockedPackage]:
    """Read the packages of a lock that this Python on this platform gets."""
    locked = ((part, part.requirement.marker) for part in read_lock(template.ROOT / lock))
    return [part for part, marker in locked if marker is None or marker.evaluate()]


def _write(
    packages: Sequence[LockedPackage],
    digests: Sequence[str] = (),
    provided: Sequence[Component] = (),
) -> str:
    project = {
        "type": "application",
        "name": PROJECT,
        "version": VERSION,
        "bom-ref": PROJECT,
        "licenses": [{"expression": "MIT"}],
        "hashes": _hashes(digests),
    }
    components = {part.name: _component(part) for part in packages}
    needed = {
        name: [components[part.name]["bom-ref"] for part in packages if name in part.needed_by]
        for name in (PROJECT, *components)
    }
    needed[PROJECT] += [part["bom-ref"] for part in provided]
    references = {PROJECT: PROJECT, **{name: one["bom-ref"] for name, one in components.items()}}
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": project},
        "components": [*components.values(), *provided],
        "dependencies": [{"ref": references[one], "dependsOn": needed[one]} for one in references],
    }
    return json.dumps(bill, indent=2, sort_keys=True) + "\n"


def _component(package: LockedPackage) -> Component:
    """Return a package with the hashes of all files of its release: pip chooses one of them."""
    url = f"pkg:pypi/{package.name}@{package.version}"
    described = metadata.metadata(package.name)
    if "License-Expression" in described:
        licence: Component = {"expression": described["License-Expression"]}
    else:
        licence = {"license": {"name": described["License"]}}
    files = {"type": "distribution", "url": url, "hashes": _hashes(package.hashes)}
    return {
        "type": "library",
        "name": package.name,
        "version": package.version,
        "bom-ref": url,
        "purl": url,
        "licenses": [licence],
        "externalReferences": [files],
    }


def _provided_package(name: str) -> Component:
    url = f"pkg:pypi/{name}"
    described = "Part of Lambda's runtime. AWS chooses its version."
    return {"type": "library", "name": name, "bom-ref": url, "purl": url, "description": described}


def _hashes(digests: Iterable[str]) -> list[Component]:
    return [{"alg": "SHA-256", "content": digest} for digest in digests]
