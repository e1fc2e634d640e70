"""The packages, made once for all tests that read them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deploy import bytecode
from deploy.package import package


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folder of each stage, with the files of its package."""
    made = {stage: tmp_path_factory.mktemp(stage) for stage in ("prod", "dev")}
    for stage, folder in made.items():
        package(stage, folder, bytecode.find_python(os.environ))
    return made
