"""A browser that visits the page of a real `python -m vumi`, and no other server."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.visit import Visit
from tests.processes.programs import Server, require, running

EXECUTABLES = ("chromium-headless-shell", "chromium")
"""The first has no windows, and takes half of the processor time of the second."""
ARGUMENTS = (
    "--no-sandbox",  # it visits only our own page, and root has no sandbox
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",  # all tabs of the server have one process
)


@contextmanager
def launching() -> Iterator[Callable[..., Browser]]:
    """Yield the function that launches a browser, with more arguments."""
    executable = next(filter(None, map(shutil.which, EXECUTABLES)), None)
    if executable is None:
        require(EXECUTABLES[0])
    with sync_playwright() as playwright:

        def launch(*more: str) -> Browser:
            return playwright.chromium.launch(executable_path=executable, args=[*ARGUMENTS, *more])

        yield launch


@pytest.fixture(scope="session")
def chromium() -> Iterator[Callable[..., Browser]]:
    with launching() as launch:
        yield launch


@pytest.fixture(scope="session")
def browser(chromium: Callable[..., Browser]) -> Iterator[Browser]:
    launched = chromium()
    open_first(launched)
    yield launched
    launched.close()


def open_first(browser: Browser) -> None:
    """Open the context of all visits, and a tab that keeps the process of the server's site."""
    context = browser.new_context()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab = context.new_page()
    tab.route("**/*", lambda route: route.fulfill(body=""))
    tab.goto("http://127.0.0.1/")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[Server]:
    with running(folder, PUBLIC_TOP="localhost/*") as started:
        yield started


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    """Visit the page; fail at the end if the browser had an error or called another host."""
    with Visit.of(browser, server) as opened:
        yield opened
        assert opened.complaints == []


@pytest.fixture
def visit_apart(browser: Browser, server: Server) -> Iterator[Visit]:
    """Visit the page like `visit`, in a context whose clock a test may set."""
    with Visit.apart(browser, server) as opened:
        yield opened
        assert opened.complaints == []
