"""The script of web pages in browsers that no program drives: Chromium and Firefox.

A debugger keeps Chromium from loading pages ahead, and from keeping pages. So the page itself asks
the test for the next step, and tells its result.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.browser.conftest import ARGUMENTS, EXECUTABLES
from tests.browser.sites import COUNTS, ON_THIS_MACHINE, Pages, Site, published
from tests.processes.programs import PATIENCE_SECONDS, Server, require

FIREFOX = "firefox-esr"
PREFERENCES = 'user_pref("network.dns.forceResolve", "127.0.0.1");\n'
"""All hosts are on this machine, those of Mozilla too."""
POLICY = "script-src {0} 'unsafe-inline' 'unsafe-eval' 'inline-speculation-rules'"
STEPS = """<script>
let persisted = false;
const shown = async (text) => {
    const p = document.querySelector('p');
    while (p.innerText !== text) await new Promise(done => setTimeout(done, 10));
    return text;
};
const follow = async () => {
    for (let result = null; result !== 'left';) {
        const step = await fetch('/step?' + encodeURIComponent(JSON.stringify(result)));
        result = await eval('(async () => ' + await step.text() + ')()') ?? 'done';
    }
};
addEventListener('pageshow', event => {
    persisted = event.persisted;
    if (!document.prerendering) return follow();
    document.addEventListener('prerenderingchange', follow);
    fetch('/ahead');
});
</script>"""
ADD_RULES = """document.head.append(
    Object.assign(document.createElement('script'), {type: 'speculationrules', textContent: `%s`})
)"""
TIMES = """[
    performance.getEntriesByType('navigation')[0].activationStart,
    performance.getEntriesByType('resource').find(({name}) => name.includes('/views?')).startTime,
]"""
"""When a page was first seen, and when its views were sent."""
CHROMIUM = (
    *ARGUMENTS,
    *ON_THIS_MACHINE,
    "--remote-debugging-port=0",  # without it, Chromium without windows ends after the load
)
names = count()


@dataclass
class SteppedSite(Site):
    """A site whose page takes steps, each the code of an expression."""

    policy: str = POLICY
    steps: SimpleQueue[str] = field(default_factory=SimpleQueue)
    results: SimpleQueue[Any] = field(default_factory=SimpleQueue)
    ahead: SimpleQueue[str] = field(default_factory=SimpleQueue)

    def step(self, code: str) -> Any:
        """Return the result of an expression in the page."""
        self.steps.put(code)
        return self.results.get(timeout=PATIENCE_SECONDS)

    def leave(self, code: str) -> None:
        """Leave the page, which asks for no step after this one."""
        self.steps.put(f"{{ {code}; return 'left' }}")

    def shows(self, text: str) -> None:
        assert self.step(f"shown('{text}')") == text


class SteppedPages(Pages):
    """The pages, and the requests of a page for its next step."""

    site: SteppedSite

    def do_GET(self) -> None:
        path, query = urlsplit(self.path).path, urlsplit(self.path).query
        if path == "/ahead":
            self.site.ahead.put(path)
        if path != "/step":
            return super().do_GET()
        return self._give_step(json.loads(unquote(query)))

    def _give_step(self, result: object) -> None:
        if result is not None:
            self.site.results.put(result)
        try:
            self.show(200, self.site.steps.get(timeout=PATIENCE_SECONDS))
        except Empty:
            self.show(408, "")


@contextmanager
def showing(program: str, folder: Path, url: str) -> Iterator[None]:
    """Run a browser that shows a page."""
    if shutil.which(program) is None:
        require(program)
    folder.joinpath("user.js").write_text(PREFERENCES)
    options: dict[str, Sequence[str | Path]] = {
        FIREFOX: ["--headless", "--no-remote", "--profile", folder],
        EXECUTABLES[0]: [*CHROMIUM, f"--user-data-dir={folder}"],
    }
    command: Sequence[str | Path] = [program, *options[program], url]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(  # noqa: S603  of the test
        command, stdout=quiet, stderr=quiet, start_new_session=True
    ) as process:
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # the program is a script that starts others


@pytest.fixture
def visited(server: Server, tmp_path: Path) -> Iterator[Callable[[str], SteppedSite]]:
    """Return the function that visits a new site by a browser."""
    with ExitStack() as stack:

        def visit(program: str) -> SteppedSite:
            site = SteppedSite(server, f"alone{next(names)}.example")
            site.put("/", COUNTS + STEPS)
            stack.enter_context(published(site, SteppedPages))
            stack.enter_context(showing(program, tmp_path, site.url("/")))
            return site

        yield visit


BROWSERS = pytest.mark.parametrize("program", [EXECUTABLES[0], FIREFOX])


@BROWSERS
def test_each_load_counts(visited: Callable[[str], SteppedSite], program: str) -> None:
    site = visited(program)
    for number in "123":
        site.shows(f"{number} {number}")
        site.leave("location.reload()")
    site.shows("4 4")
    site.leave("location.hash = 'vu-mi-off'; location.reload()")
    site.shows("4 4")
    assert site.count() == 4


def test_a_page_that_is_loaded_ahead_counts_when_it_is_seen(
    visited: Callable[[str], SteppedSite],
) -> None:
    site = visited(EXECUTABLES[0])
    site.put("/next/", COUNTS + STEPS)
    site.shows("1 1")
    rules = {"prerender": [{"source": "list", "urls": ["/next/"], "eagerness": "immediate"}]}
    site.step(ADD_RULES % json.dumps(rules))
    site.ahead.get(timeout=PATIENCE_SECONDS)
    assert (site.count("/next/"), site.count()) == (0, 1)
    site.leave("location.href = '/next/'")
    site.shows("1 2")
    seen_at, counted_at = site.step(TIMES)
    assert 0 < seen_at <= counted_at
    assert site.count("/next/") == 1


def test_a_page_that_the_browser_kept_is_not_counted_again(
    visited: Callable[[str], SteppedSite],
) -> None:
    """Chromium without windows keeps no pages."""
    site = visited(FIREFOX)
    site.put("/next/", STEPS)
    site.shows("1 1")
    site.leave("location.href = '/next/'")
    site.step("location.pathname")
    site.leave("history.back()")
    assert site.step("persisted") is True
    # A request of the script would come before this one.
    site.step(f"fetch('{site.counter}/api/v1/views/counts?id=a').then(() => 1)")
    assert (site.count("/"), site.count()) == (1, 2)
