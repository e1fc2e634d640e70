"""Each lambda's handler string works in a process of its own, with only what is packaged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGED = ("app.py", "chalicelib")
HANDLERS = ("app.app", "chalicelib.views.put.put_views", "chalicelib.views.fold.fold_views")

IMPORT = """
import importlib, sys
module, name = sys.argv[1].rsplit(".", 1)
handler = getattr(importlib.import_module(module), name)
assert callable(handler), handler
print(*sorted(sys.modules))
"""


def modules_of(handler: str, folder: Path) -> set[str]:
    """What is imported in a clean process that has the package and nothing else of ours."""
    for name in PACKAGED:
        (folder / name).symlink_to(ROOT / name)
    finished = subprocess.run(  # noqa: S603  our own words
        [sys.executable, "-P", "-c", IMPORT, handler],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return set(finished.stdout.split())


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_handler_imports_alone(tmp_path: Path, handler: str) -> None:
    modules = modules_of(handler, tmp_path)
    assert "chalice.app" in modules
    assert not {name for name in modules if name.split(".")[0] in ("local", "tests", "waitress")}


@pytest.mark.parametrize("handler", HANDLERS)
def test_importing_a_handler_loads_no_aws_client_library(tmp_path: Path, handler: str) -> None:
    """boto3 is paid for on first use, by the functions that need it."""
    assert not {"boto3", "botocore", "moto"} & modules_of(handler, tmp_path)


def test_the_consumers_do_not_import_the_app(tmp_path: Path) -> None:
    for handler in HANDLERS[1:]:
        folder = tmp_path / handler
        folder.mkdir()
        assert not {"app", "chalicelib.views.api"} & modules_of(handler, folder)


def test_these_are_the_handlers_that_the_app_registers() -> None:
    from app import app  # noqa: PLC0415

    assert {source.handler_string for source in app.event_sources} == set(HANDLERS[1:])
