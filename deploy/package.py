"""The package: a template, a zip and bills of materials.

They have the same bytes for the same sources, with any version of Python: a Python of the version
that Lambda runs makes the compiled files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from chalicelib.lazy import lazy
from deploy import bytecode, template
from deploy.stage import Folder, forget_names

if TYPE_CHECKING:
    from deploy import http_api, sbom
else:
    http_api, sbom = lazy("deploy.http_api"), lazy("deploy.sbom")

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
"""The environment that makes pip refuse files without a hash, and sources, which it would build.
"""


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
    (out / "deployment.cdx.json").write_text(sbom.describe_package(out / "deployment.zip"))
    (out / "standalone.cdx.json").write_text(sbom.describe_standalone())
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
