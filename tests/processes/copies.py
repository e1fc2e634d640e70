"""Copies of the sources, as on another machine, and the packages that are made of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from deploy import template
from deploy.stage import SETTINGS, Folder, write_names

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
    return subprocess.run(
        [sys.executable, "-m", "deploy", "package", "--stage", "dev", "--out", "made"],
        cwd=folder,
        env={**os.environ, **(settings or {})},
        check=False,
        capture_output=True,
        text=True,
    )


def package_after_chalice_deploy(folder: Path) -> Path:
    """Make a package of a copy that has the names of a stack; return its folder."""
    copy_sources(folder)
    write_names("dev", OUTPUTS, Folder(folder / ".chalice"))
    finished = run_package(folder)
    assert finished.returncode == 0, finished.stderr
    return folder / "made"
