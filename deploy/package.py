"""The package: a template and a zip, the same bytes for the same sources and version of Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import yaml

from deploy import bytecode, template
from deploy.stage import Folder, forget_names

SHIPPED = ("app.py", "chalicelib", ".chalice", "requirements.txt")
"""All that Chalice is shown of the project."""
FIRST_MOMENT = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can hold."""
READABLE = 0o644
SAMPLE_REGION = "us-east-1"
"""Chalice asks for a region; nothing of it stays in the package."""

PINNED = {"PIP_CONSTRAINT": str(template.ROOT / "constraints.txt"), "PYTHONDONTWRITEBYTECODE": "1"}
"""What pip brings along is pinned too."""


class PackagingError(Exception):
    """Chalice could not make the package; the message is what it said."""


def package(stage: str, out: Path) -> None:
    """Write `sam.yaml` and `deployment.zip` into a folder. Raises `PackagingError`."""
    out.mkdir(parents=True, exist_ok=True)
    work = out / "work"
    shutil.rmtree(work, ignore_errors=True)
    _copy_sources(work)
    _run_chalice(stage, work)
    made = work / "out"
    normalize(made / "deployment.zip", out / "deployment.zip")
    packaged = yaml.safe_load((made / "sam.yaml").read_text())
    (out / "sam.yaml").write_text(template.dump(template.for_stage(packaged, stage)))
    shutil.rmtree(work)


def _copy_sources(work: Path) -> None:
    """A clean copy: no bytecode, nothing of other stages, and nothing is left in the project."""
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
    command = ["package", "--stage", stage, "--merge-template", ".chalice/resources.yaml", "out"]
    finished = subprocess.run(  # noqa: S603  our own words
        [Path(sys.executable).with_name("chalice").absolute(), *command],
        cwd=work,
        env={"AWS_DEFAULT_REGION": SAMPLE_REGION, **os.environ, **PINNED},
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise PackagingError(f"chalice {' '.join(command)}\n{finished.stdout}{finished.stderr}")


def normalize(source: Path, target: Path, runtime: str = bytecode.RUNTIME) -> None:
    """Write a zip anew: sorted, every file of one time and one mode, compiled for the runtime.

    Where another Python makes it, it has no compiled files.
    """
    with ZipFile(source) as given, ZipFile(target, "w", ZIP_DEFLATED, compresslevel=9) as written:
        files = dict(_shipped(given))
        if bytecode.is_made(runtime):
            files |= _compiled(files)
        for name in sorted(files):
            entry = ZipInfo(name, FIRST_MOMENT)
            entry.compress_type = ZIP_DEFLATED
            entry.external_attr = READABLE << 16
            entry.create_system = 3  # Unix, wherever it is made
            written.writestr(entry, files[name])


def _shipped(given: ZipFile) -> Iterator[tuple[str, bytes]]:
    """What was compiled elsewhere has in it when and where that was."""
    for name in given.namelist():
        if not name.endswith((".pyc", "/")):
            yield name, given.read(name)


def _compiled(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {
        bytecode.name_of(name): bytecode.compiled(name, content)
        for name, content in files.items()
        if name.endswith(".py")
    }
