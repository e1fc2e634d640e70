"""The files of a release, with the same bytes wherever they are made.

They are made twice from the commit, in folders and with rights that differ, compared, and checked
by installing them. pip asks no index: it gets the wheels of the locks.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zipfile import ZipFile

import boto3
from cyclonedx.schema import SchemaVersion

from chalicelib import VERSION
from chalicelib.lazy import lazy
from deploy import bytecode, template
from deploy.package import PackagingError, run

if TYPE_CHECKING:
    from cyclonedx.validation import json as bills
else:
    bills = lazy("cyclonedx.validation.json")  # its import takes seconds

NOTES = "RELEASE_NOTES.md"
BUILD_SDIST = "import sys; from hatchling.build import build_sdist; build_sdist(sys.argv[1])"
BUILDS = (("a", 0o022), ("another/folder", 0o077))
"""The folder and the umask of each build."""
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)#]+)[^)]*\)")
"""A link to another file of the project."""
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


@dataclass(frozen=True)
class Tools:
    """The programs of a build: the Python with hatchling, and the environment of all of them."""

    hatchling: Path
    environment: Mapping[str, str]


def release(root: Path, out: Path, wheels: Path) -> None:
    """Make and check the files of the release of a checkout. Raises `PackagingError`."""
    refuse_dirty(root)
    notes = find_notes((root / "CHANGELOG.md").read_text(), VERSION)
    python = bytecode.find_python(os.environ)
    if python is None:
        raise ReleaseError(
            f"a release needs Python {bytecode.VERSION}, for the compiled files of the zip: install"
            f" it, or set {bytecode.SETTING}"
        )
    with TemporaryDirectory(prefix="vu-mi-release-") as folder:
        work = Path(folder)
        tools = prepare_tools(root, work / "tools", wheels)
        made = [_build(root, work / name, umask, notes, tools) for name, umask in BUILDS]
        compare(*made)
        check(made[0], python, tools.environment)
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(made[0], out)


def refuse_dirty(root: Path) -> None:
    """Raise `ReleaseError` if files of a checkout are not committed."""
    changed = _git(root, "status", "--porcelain").splitlines()
    if changed:
        raise ReleaseError(
            f"{len(changed)} files are not committed, such as {changed[0][3:]}: commit or remove"
            " them, because a release is made from a commit"
        )


def find_notes(changelog: str, version: str) -> str:
    """Return the section of a released version, without relative links, which is read elsewhere.

    Raises `ReleaseError`.
    """
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n"
    found = re.search(heading + r"(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ReleaseError(
            f"CHANGELOG.md has no section of version {version}: add `## [{version}] - YYYY-MM-DD`,"
            " or change chalicelib/__init__.py"
        )
    text = found[1].strip() + "\n"
    return LINK.sub(lambda link: link[1] if link[1] == link[2] else f"{link[1]} ({link[2]})", text)


def _git(root: Path, *command: str | Path) -> str:
    return run(["git", "-C", root, *command], root, os.environ)


def prepare_tools(root: Path, folder: Path, wheels: Path) -> Tools:
    """Install hatchling where nothing else is; every pip gets the wheels of a folder alone."""
    environment = {
        **os.environ,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_CACHE_DIR": "1",
        "PIP_NO_INDEX": "1",
        "SOURCE_DATE_EPOCH": _git(root, "log", "-1", "--format=%ct").strip(),
    }
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    lock = ["--require-hashes", "-r", "requirements/build.txt"]
    run([sys.executable, "-m", "pip", "--python", python, "install", *lock], root, environment)
    return Tools(python, environment)


def _build(root: Path, folder: Path, umask: int, notes: str, tools: Tools) -> Path:
    """Make all files of a release in a new folder, from a clone of the commit."""
    sdist = build_sdist(root, folder, umask, tools)
    sources, out, package = folder / "sources", sdist.parent, folder / "package"
    python = (sys.executable, "-m")
    for command in (
        (*python, "pip", "wheel", "--no-deps", "--wheel-dir", out, sdist),
        (*python, "deploy", "package", "--stage", "prod", "--out", package),
    ):
        run(command, sources, tools.environment, umask)
    _name_package(package, out)
    (out / NOTES).write_text(notes)
    write_checksums(out)
    return out


def build_sdist(root: Path, folder: Path, umask: int, tools: Tools) -> Path:
    """Make the sdist in a new folder, from a clone of the commit."""
    sources, out = folder / "sources", folder / "out"
    out.mkdir(parents=True)
    run(["git", "clone", "--quiet", root, sources], root, tools.environment, umask)
    run([tools.hatchling, "-c", BUILD_SDIST, out], sources, tools.environment, umask)
    [sdist] = out.iterdir()
    return sdist


def _name_package(package: Path, out: Path) -> None:
    """Give the files of a package names of this version; the template names its zip."""
    names = {
        "deployment.zip": f"vu-mi-{VERSION}-lambda.zip",
        "deployment.cdx.json": f"vu-mi-{VERSION}-lambda.cdx.json",
        "standalone.cdx.json": f"vu-mi-{VERSION}-standalone.cdx.json",
    }
    for name, named in names.items():
        shutil.copy(package / name, out / named)
    stack = (package / "sam.yaml").read_text()
    written = stack.replace("deployment.zip", names["deployment.zip"])
    (out / f"vu-mi-{VERSION}-lambda.yaml").write_text(written)


def compare(made: Path, again: Path) -> None:
    """Raise `ReleaseError` if two builds differ."""
    first, second = (
        {path.name: path.read_bytes() for path in folder.iterdir()} for folder in (made, again)
    )
    names = sorted(first.keys() | second.keys())
    differing = [name for name in names if first.get(name) != second.get(name)]
    if differing:
        raise ReleaseError(f"two builds of the same commit differ: {', '.join(differing)}")


def check(folder: Path, python: str, environment: Mapping[str, str]) -> None:
    """Check the files of a release. Raises `PackagingError`.

    `python` has the version that Lambda runs, and pip finds packages by the `environment`.
    """
    for bill in folder.glob("*.cdx.json"):
        validate_bill(bill)
    [package] = folder.glob("*.zip")
    import_handlers(package, package.with_suffix(".yaml"), python)
    for file in (*folder.glob("*.whl"), *folder.glob("*.tar.gz")):
        install(file, environment)


def write_checksums(folder: Path) -> None:
    """Write the SHA-256 of each file of a folder, as `sha256sum --check` reads them."""
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    lines = [f"{hashes[name]}  {name}\n" for name in sorted(hashes)]
    (folder / "SHA256SUMS").write_text("".join(lines))


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


def install(file: Path, environment: Mapping[str, str]) -> None:
    """Install a wheel or an sdist where nothing is, and import a count. Raises `PackagingError`."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder, symlinks=True)
        program = folder / "bin" / "vumi"
        target = ("--python", folder / "bin" / "python")
        run([sys.executable, "-m", "pip", *target, "install", file], folder, environment)
        printed = run([program, "--version"], folder, {})
        if printed != f"vumi {VERSION}\n":
            raise ReleaseError(f"{file.name} is not version {VERSION}: it printed {printed!r}")
        (folder / "counts.csv").write_text("id,count\nrelease,1\n")
        run([program, "import", "--new", "counts.csv"], folder, {"DATA": "data"})
