"""The check of the built site: `python -m docs.site.built FOLDER`.

A page loads nothing from another host and nothing that is missing, and no file names a folder of
the machine.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADING = {"src", "srcset", "data", "poster"}
LINKS = {"stylesheet", "preload", "icon", "manifest", "preconnect", "dns-prefetch"}
"""The relations of a `<link>` that a browser follows by itself."""
IN_STYLES = re.compile(r"(?:@import\s+|url\()[\"']?((?:https?:)?//[^\"')]+)")
STYLED = {".css", ".svg"}
REMOTE = re.compile(r"(?:https?:)?//")


class _Loads(HTMLParser):
    """The URLs that a browser loads for a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        for value in (value for name, value in given.items() if name in LOADING):
            self.urls += [part.split()[0] for part in value.split(", ") if part.strip()]
        if tag == "link" and LINKS & {*given.get("rel", "").split()}:
            self.urls.append(given.get("href", ""))


def faults(folder: Path) -> Iterator[str]:
    """Yield what is wrong with a built site."""
    for path in sorted(file for file in folder.rglob("*") if file.is_file()):
        text = path.read_bytes().decode(errors="replace")
        if str(folder.resolve().parent) in text:
            yield f"{path}: names the folder {folder.resolve().parent}"
        loads = _Loads(text).urls if path.suffix == ".html" else []
        loads += IN_STYLES.findall(text) if path.suffix in STYLED else []
        for url in loads:
            if REMOTE.match(url):
                yield f"{path}: loads {url}"
            elif not url.startswith("data:") and not _is_here(path, url):
                yield f"{path}: misses {url}"


def _is_here(page: Path, url: str) -> bool:
    return (page.parent / unquote(urlsplit(url).path)).exists()


if __name__ == "__main__":
    found = [*faults(Path(sys.argv[1]))]
    sys.exit("\n".join(found) or 0)
