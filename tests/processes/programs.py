"""Programs that tests run, and their patience."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from simulation.environment import ROOT

PATIENCE_SECONDS = 60.0
"""The limit for steps that take two seconds or less on an idle machine."""

Found = TypeVar("Found")
WHEELS = Path(sys.prefix) / "wheels"
"""The wheels of requirements/standalone.txt and requirements/build.txt."""


def require(program: str) -> None:
    """Skip the test without a program that make can't install; on CI, fail."""
    if shutil.which(program) is None:
        missing = f"make can't install {program}: apt-get install {program}"
        (pytest.fail if "CI" in os.environ else pytest.skip)(missing)


def succeed(
    *command: str | Path,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    given: str | None = None,
) -> str:
    """Run a program that must succeed; return its standard output."""
    finished = subprocess.run(  # noqa: S603  words of the tests
        command, cwd=cwd, env=env, input=given, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def until(look: Callable[[], Found | None], what: str = "what the test waits for") -> Found:
    """Wait until `look` finds a value that is true, and return it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_SECONDS:.0f} s"
        time.sleep(0.01)
    return found


def offline_pip() -> dict[str, str]:
    """Return the environment of a pip and a uv that ignore the settings of this machine."""
    assert WHEELS.is_dir(), f"{WHEELS} is missing: run make test"
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": str(WHEELS),
        "PIP_NO_CACHE_DIR": "1",
        "PIP_NO_INDEX": "1",
        "UV_FIND_LINKS": str(WHEELS),
        "UV_NO_CACHE": "1",
        "UV_NO_CONFIG": "1",
        "UV_NO_INDEX": "1",
        "UV_OFFLINE": "1",
    }
