"""The packages, made once for all tests that read them, also if several processes run these."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from deploy import bytecode
from deploy.package import package
from tests.end_to_end.copies import package_after_chalice_deploy


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folder of each stage, with the files of its package.

    The first process makes them, and the others wait for it. That of dev is made elsewhere, after
    `chalice deploy`.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    made = {stage: shared / f"package-{stage}" for stage in ("prod", "dev")}
    with (shared / "packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made["dev"].exists():
            work = tmp_path_factory.mktemp("prod")
            package("prod", work, bytecode.find_python(os.environ))
            work.rename(made["prod"])
            package_after_chalice_deploy(tmp_path_factory.mktemp("copy")).rename(made["dev"])
    return made
