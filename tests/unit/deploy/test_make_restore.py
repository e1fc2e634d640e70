"""`make restore` runs its steps in order, and says how to continue after a step that fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy import template

PYTHON = """#!/bin/sh
echo "$3" >> steps
case "$3" in restore) mkdir -p build/prod; echo "RestoredTable=t" > build/prod/restored;; esac
[ "$3" != "$FAILING" ]
"""
AWS = """#!/bin/sh
echo "$2" >> steps
[ "$2" != "$FAILING" ]
"""
STEPS = ["restore", "package", "package", "deploy", "describe-stacks", "fold", "resume"]
"""The step `package` of the project, and that of the AWS CLI."""


def restore(folder: Path, failing: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the target with programs that only write their step, of which one fails."""
    environment = folder / "venv"
    programs = environment / "deploy" / "bin"
    programs.mkdir(parents=True)
    for name, script in (("python", PYTHON), ("aws", AWS)):
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    shutil.copy2(template.ROOT / "Makefile", folder)
    _mark_installed(environment, folder)
    given = (f"VENV={environment}", f"AWS={programs / 'aws'}", "STAGE=prod", "BUCKET=b")
    finished = subprocess.run(  # noqa: S603  our own words
        ["make", "restore", *given, "AT=2026-11-20T10:00:00Z"],  # noqa: S607
        cwd=folder,
        env={"PATH": os.environ["PATH"], "FAILING": failing},
        capture_output=True,
        text=True,
        check=False,
    )
    return finished, (folder / "steps").read_text().split()


def _mark_installed(environment: Path, folder: Path) -> None:
    """Make each file older than those that depend on it, so that nothing is installed."""
    for age, path in enumerate((folder / "requirements/deploy.txt", environment / "deploy.stamp")):
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (age, age))


def test_the_consumers_start_after_the_deployment_and_the_fold(tmp_path: Path) -> None:
    finished, steps = restore(tmp_path, "nothing")
    assert (finished.returncode, steps) == (0, STEPS)


@pytest.mark.parametrize("failing", ["package", "deploy", "fold", "resume"])
def test_a_step_that_fails_is_the_last_and_the_command_to_continue_is_printed(
    tmp_path: Path, failing: str
) -> None:
    finished, steps = restore(tmp_path, failing)
    assert finished.returncode != 0
    assert steps == STEPS[: STEPS.index(failing) + 1]
    assert "run make restore again with the same AT" in finished.stderr
    assert "make resume STAGE=prod STACK=vu-mi-prod" in finished.stderr


def test_a_restore_that_fails_has_started_the_consumers_itself(tmp_path: Path) -> None:
    finished, steps = restore(tmp_path, "restore")
    assert (finished.returncode != 0, steps) == (True, ["restore"])
    assert "the consumers are stopped" not in finished.stderr
