"""A browser that visits the page of a real `python -m vumi`, and no other server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.visit import Visit
from tests.end_to_end.server import Server, running

ARGUMENTS = (
    "--no-sandbox",  # it visits only our own page, and root has no sandbox
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    executable = shutil.which("chromium")
    if executable is None:
        missing = (
            "the page is tested in Chromium, which make can't install: apt-get install chromium"
        )
        (pytest.fail if "CI" in os.environ else pytest.skip)(missing)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[Server]:
    with running(folder) as started:
        yield started


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    """Visit the page; fail at the end if the browser had an error or called another host."""
    with Visit.of(browser, server) as opened:
        yield opened
        assert opened.complaints == []
