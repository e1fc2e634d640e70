"""Programs that make can't install."""

from __future__ import annotations

import os
import shutil

import pytest


def require(program: str) -> None:
    """Skip the test without a program that make can't install; on CI, fail."""
    if shutil.which(program) is None:
        missing = f"make can't install {program}: apt-get install {program}"
        (pytest.fail if "CI" in os.environ else pytest.skip)(missing)
