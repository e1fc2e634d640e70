"""The package: a template, a zip and bills of materials in CycloneDX's JSON.

They have the same bytes for the same sources, with any version of Python: a Python of the version
that Lambda runs makes the compiled files. A bill names the packages that run on AWS, or on one
machine, from the locks. A lock has the hashes of the files of each release. Source: CycloneDX 1.6,
"JSON Reference".
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from chalicelib import VERSION
from chalicelib.lazy import lazy
from deploy import bytecode, template
from deploy.stage import Folder, forget_names

if TYPE_CHECKING:
    from deploy import http_api
else:
    http_api = lazy("deploy.http_api")

SHIPPED = ("app.py", "chalicelib", ".chalice", "requirements.txt")
"""The parts of the project that Chalice packages."""
EARLIEST_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can store."""
FILE_MODE = 0o644
SAMPLE_REGION = "us-east-1"
"""Chalice needs a region. The package does not depend on it."""

PIP_ENVIRONMENT = {
    "PIP_NO_DEPS": "1",
    "PIP_REQUIRE_HASHES": "1",
    "PIP_ONLY_BINARY": ":all:",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""The environment that makes pip refuse files without a hash, and sources, which it builds."""

PROJECT = "vu-mi"
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")
NEEDED_BY = re.compile(r"^    # (?:via |  )(?!-c )(\S+)", re.MULTILINE)
"""A name in the comment in which uv says who needs a package."""
ENTRY = re.compile(r"^(?=[^\s#])", re.MULTILINE)
LAMBDA_PACKAGES = ("boto3", "botocore")
"""The packages of Lambda's runtime that the functions import. AWS chooses their versions."""

Component: TypeAlias = dict[str, Any]


class PackagingError(Exception):
    """A program failed. The message is its output."""


def package(stage: str, out: Path, python: str | None) -> None:
    """Write the template, the zip and the bills into a folder. Raises `PackagingError`.

    `python` makes the compiled files. Without it, the zip has none.
    """
    out.mkdir(parents=True, exist_ok=True)
    work = out / "work"
    shutil.rmtree(work, ignore_errors=True)
    _copy_sources(work)
    _run_chalice(stage, work)
    made = work / "out"
    normalize(made / "deployment.zip", out / "deployment.zip", python)
    packaged = http_api.replace_rest_api(template.load(made / "sam.yaml"))
    (out / "sam.yaml").write_text(template.dump(template.for_stage(packaged, stage)))
    (out / "deployment.cdx.json").write_text(describe_package(out / "deployment.zip"))
    (out / "standalone.cdx.json").write_text(describe_standalone())
    shutil.rmtree(work)


def _copy_sources(work: Path) -> None:
    """Copy the sources without bytecode and other stages, so that the project stays unchanged."""
    ignored = shutil.ignore_patterns("__pycache__", "deployments", "deployed")
    for name in SHIPPED:
        source = template.ROOT / name
        if source.is_dir():
            shutil.copytree(source, work / name, ignore=ignored)
        else:
            work.mkdir(exist_ok=True)
            shutil.copy(source, work / name)
    forget_names(Folder(work / ".chalice"))


def _run_chalice(stage: str, work: Path) -> None:
    chalice = Path(sys.executable).with_name("chalice").absolute()
    options = ["--stage", stage, "--merge-template", ".chalice/resources.yaml"]
    environment = {"AWS_DEFAULT_REGION": SAMPLE_REGION, **os.environ, **PIP_ENVIRONMENT}
    run([chalice, "package", *options, "out"], work, environment)


def run(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str], umask: int = -1
) -> str:
    """Run a program in a folder, and return its output. Raises `PackagingError`."""
    finished = subprocess.run(  # noqa: S603  fixed arguments
        command,
        cwd=folder,
        env=environment,
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise PackagingError(f"{' '.join(map(str, command))}\n{finished.stdout}{finished.stderr}")
    return finished.stdout


def normalize(source: Path, target: Path, python: str | None) -> None:
    """Rewrite a zip with sorted names, one time and mode for all files, and compiled files."""
    with ZipFile(source) as given:
        # Files that were compiled elsewhere contain a path and a time.
        names = [name for name in given.namelist() if not name.endswith((".pyc", "/"))]
        files = {name: given.read(name) for name in names}
    if python is not None:
        files |= bytecode.compile_with(python, source)
    with ZipFile(target, "w", ZIP_DEFLATED, compresslevel=9) as written:
        for name in sorted(files):
            entry = ZipInfo(name, EARLIEST_TIME)
            entry.compress_type = ZIP_DEFLATED
            entry.external_attr = FILE_MODE << 16
            entry.create_system = 3  # Unix, on every machine
            written.writestr(entry, files[name])


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
