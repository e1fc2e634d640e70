"""A visitor of the page: their actions, their view of it, and their browser's errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.processes.programs import Server

Scheme = Literal["light", "dark"]
AXE = resources.files("axe_playwright_python") / "axe.min.js"
SERIOUS_IMPACTS = {"serious", "critical"}
RUN_AXE = "axe.run({exclude: ['tbody tr:nth-child(n+6)']}, {resultTypes: ['violations']})"
"""Only violations list all their elements, and five rows stand for all, because each takes time."""
DESKTOP = (1200, 800)
NARROW = (360, 740)
SCREENS: tuple[tuple[Scheme, tuple[int, int]], ...] = (("light", NARROW), ("dark", DESKTOP))
"""Each colour scheme and each size once, because neither changes what the other does."""
DRAWN = "image => image.complete && image.naturalWidth > 0"


@dataclass
class Visit:
    """One tab. `complaints` has the console's errors, broken scripts, and refused requests."""

    page: Page
    server: Server
    complaints: list[str] = field(default_factory=list)

    @classmethod
    @contextmanager
    def of(
        cls, browser: Browser, server: Server, size: tuple[int, int] = DESKTOP, **media: Any
    ) -> Iterator[Visit]:
        """Open a tab in the context of all visits, because a new context takes much longer."""
        with closing(browser.contexts[0].new_page()) as page:
            opened = cls(page, server).listen()
            opened.look(size, **media)
            yield opened

    @classmethod
    @contextmanager
    def apart(cls, browser: Browser, server: Server, **settings: Any) -> Iterator[Visit]:
        """Open a tab in its own context, for a clock or a setting that holds for all its tabs."""
        with closing(browser.new_context(**settings)) as context:
            yield cls(context.new_page(), server).listen()

    def listen(self) -> Visit:
        self.page.on("console", lambda said: self.complain(said.type, said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.route("**/*", self.pass_own)
        return self

    def complain(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.complaints.append(text)

    def pass_own(self, route: Route) -> None:
        """Block requests to other hosts, and record each as a complaint."""
        if route.request.url.startswith(f"{self.root}/"):
            route.continue_()
        else:
            self.complaints.append(f"asked {route.request.url}")
            route.abort()

    def look(self, size: tuple[int, int], **media: Any) -> None:
        """Change the size of the screen and the preferences; without motion, nothing is redrawn."""
        self.page.set_viewport_size({"width": size[0], "height": size[1]})
        self.page.emulate_media(**{"reduced_motion": "reduce"} | media)

    @property
    def root(self) -> str:
        return self.server.url.rstrip("/")

    def open(self, fragment: str = "") -> Visit:
        """Open the page and wait until the script has run; the pictures may still be loading."""
        self.page.goto(f"{self.root}/{fragment}", wait_until="domcontentloaded")
        return self

    def find_barriers(self) -> list[Any]:
        """Return the serious barriers for people with disabilities that axe finds."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text())
        found = self.page.evaluate(RUN_AXE)
        assert len(found["passes"]) > 15
        return [rule for rule in found["violations"] if rule["impact"] in SERIOUS_IMPACTS]

    def check_on_all_screens(self, settle: Callable[[Page], object] = lambda _: None) -> None:
        """Check that nothing is too wide, or a barrier, and that the page follows the scheme."""
        for scheme, size in SCREENS:
            self.look(size, color_scheme=scheme)
            settle(self.page)
            assert self.page.evaluate("document.documentElement.scrollWidth") <= size[0]
            assert self.find_barriers() == []
            colour = self.page.evaluate("getComputedStyle(document.body).backgroundColor")
            is_dark = sum(map(int, colour.strip("rgb()").split(","))) < 3 * 64
            assert is_dark is (scheme == "dark")

    def field(self, name: str) -> Locator:
        return self.page.get_by_label(name, exact=True)

    def choose(self, name: str) -> None:
        """Click on a choice, like a kind of picture or a style, or on the name of folded fields."""
        whole = re.compile(rf"^\s*{re.escape(name)}\s*$")
        self.page.locator("label, summary").filter(has_text=whole).click()

    def write_in(self, language: str) -> None:
        self.field("The language of the line").select_option(language)

    def copy(self, language: str) -> str:
        """Choose a language, press the button of the line, and read the clipboard."""
        self.page.evaluate("navigator.clipboard.writeText('')")
        self.write_in(language)
        self.page.get_by_role("button", name=f"Copy {language}").click()
        expect(self.page.get_by_role("status")).to_have_text(f"Copied {language}.")
        return self.clipboard()

    def clipboard(self) -> str:
        text: str = self.page.evaluate("navigator.clipboard.readText()")
        return text

    def shows_badge(self, alt: str) -> None:
        """Wait until the preview is drawn with this text."""
        expect(self.page.locator("#badge")).to_have_attribute("alt", alt)
        self.is_drawn("#badge")

    def expect_line(self, line: str) -> None:
        expect(self.page.locator("#line")).to_have_text(line, use_inner_text=True)

    def is_drawn(self, picture: str) -> None:
        handle = self.page.locator(picture).element_handle()
        self.page.wait_for_function(DRAWN, arg=handle)
