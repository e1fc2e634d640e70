"""The checks of a release: two builds are equal, and what they install works."""

from __future__ import annotations

import hashlib
import json
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zipfile import ZipFile

import boto3
from cyclonedx.schema import SchemaVersion

from chalicelib.lazy import lazy
from deploy import template
from deploy.package import PackagingError, run

if TYPE_CHECKING:
    from cyclonedx.validation import json as bills
else:
    bills = lazy("cyclonedx.validation.json")  # its import takes seconds

CHECKSUMS = "SHA256SUMS"
IMPORT = """
import importlib, json, sys
path, handlers = json.loads(sys.argv[1])
sys.path += path
for handler in handlers:
    module, _, name = handler.rpartition(".")
    getattr(importlib.import_module(module), name)
ours = ("chalicelib", "chalice")
print(json.dumps({name: sys.modules[name].__file__ for name in ours if name in sys.modules}))
"""
FUNCTION_SETTINGS = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    "TABLE_NAME": "vu-mi",
    "VIEWS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/views",
}


class ReleaseError(PackagingError):
    """A release can't be made, or its files are wrong. The message says why."""


def compare(made: Path, again: Path) -> None:
    """Raise `ReleaseError` if two builds differ."""
    first, second = (
        {path.name: path.read_bytes() for path in folder.iterdir()} for folder in (made, again)
    )
    names = sorted(first.keys() | second.keys())
    differing = [name for name in names if first.get(name) != second.get(name)]
    if differing:
        raise ReleaseError(f"two builds of the same commit differ: {', '.join(differing)}")


def check(folder: Path, version: str, python: str, environment: Mapping[str, str]) -> None:
    """Check the files of a release. Raises `PackagingError`.

    `python` has the version that Lambda runs, and pip finds packages by the `environment`.
    """
    for bill in folder.glob("*.cdx.json"):
        validate_bill(bill)
    [package] = folder.glob("*.zip")
    import_handlers(package, package.with_suffix(".yaml"), python)
    for file in (*folder.glob("*.whl"), *folder.glob("*.tar.gz")):
        install(file, version, environment)


def write_checksums(folder: Path) -> None:
    """Write the SHA-256 of each file of a folder, as `sha256sum --check` reads them."""
    lines = [f"{_hash(path)}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / CHECKSUMS).write_text("".join(lines))


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def validate_bill(bill: Path) -> None:
    """Raise `ReleaseError` if a bill of materials breaks the schema of CycloneDX."""
    error = bills.JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill.read_text())
    if error is not None:
        raise ReleaseError(f"{bill.name} is not valid CycloneDX: {error}")


def import_handlers(package: Path, stack: Path, python: str) -> None:
    """Import each handler of a template in a process that sees only the zip and boto3.

    Raises `PackagingError`, if our modules come from somewhere else too.
    """
    handlers = sorted(
        resource["Properties"]["Handler"]
        for resource in template.load(stack)["Resources"].values()
        if resource["Type"] == "AWS::Serverless::Function"
    )
    with TemporaryDirectory() as folder, ZipFile(package) as zipped:
        zipped.extractall(folder)
        runtime = Path(boto3.__file__).parent.parent
        given = json.dumps([[folder, str(runtime)], handlers])
        command = [python, "-I", "-S", "-B", "-c", IMPORT, given]
        files = json.loads(run(command, Path(folder), FUNCTION_SETTINGS))
        foreign = sorted(name for name, file in files.items() if not file.startswith(folder))
    if foreign or not handlers:
        raise ReleaseError(f"{package.name} does not have {', '.join(foreign) or 'any handler'}")


def install(file: Path, version: str, environment: Mapping[str, str]) -> None:
    """Install a wheel or an sdist where nothing is, and import a count. Raises `PackagingError`."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder, symlinks=True)
        program = folder / "bin" / "vumi"
        target = ("--python", folder / "bin" / "python")
        run([sys.executable, "-m", "pip", *target, "install", file], folder, environment)
        printed = run([program, "--version"], folder, {})
        if printed != f"vumi {version}\n":
            raise ReleaseError(f"{file.name} is not version {version}: it printed {printed!r}")
        (folder / "counts.csv").write_text("id,count\nrelease,1\n")
        run([program, "import", "--new", "counts.csv"], folder, {"DATA": "data"})
