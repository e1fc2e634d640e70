"""An export of LeanCloud: the page views of hexo-leancloud-counter, Valine and waline.

Each line is an object of the class `Counter` as JSON, with the path or the URL of a page (`url`)
and its views (`time`), after a line that names the class. An array of such objects is read too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from chalicelib.badges import options
from chalicelib.counting import ids
from vumi.operate.admin.counts_file import (
    CountsFileError,
    ImportedCount,
    format_problems,
    read_text,
)
from vumi.operate.admin.web_pages import WebPage

HEADER = "#"


def read(name: str, file: IO[bytes], site: str) -> list[ImportedCount]:
    """Read the counts of a site's pages, and their sum as that of the site.

    A page that is there twice, because of a race when it was new, has the sum of both. Raises
    `CountsFileError` if a line is wrong.
    """
    counts: dict[str, int] = {}
    problems: list[str] = []
    for line, text in _read_lines(name, file):
        try:
            for entry in _entries(text):
                badge_id, count = _parse(entry, site)
                counts[badge_id] = counts.get(badge_id, 0) + count
        except (ValueError, RecursionError) as error:
            problems.append(f"line {line}: {error}")
    if problems:
        raise CountsFileError(format_problems(name, problems))
    counts[ids.normalise(site)] = sum(counts.values())
    return [ImportedCount(place, *row) for place, row in enumerate(counts.items(), 1)]


def _read_lines(name: str, file: IO[bytes]) -> Iterator[tuple[int, str]]:
    text = read_text(name, file)
    if text.lstrip().startswith("["):
        yield 1, text
        return
    for line, row in enumerate(text.split("\n"), 1):
        if row.strip() and not row.startswith(HEADER):
            yield line, row


def _entries(text: str) -> list[Any]:
    found = json.loads(text)
    return found if isinstance(found, list) else [found]


def _parse(entry: object, site: str) -> tuple[str, int]:
    """Return the id and the count of a page, as the script of web pages names it."""
    if not isinstance(entry, Mapping) or not {"url", "time"} <= entry.keys():
        raise ValueError("give an object of the class Counter, with url and time")
    path = unquote(urlsplit(str(entry["url"])).path)
    page = WebPage(site, "/" + path.removeprefix("/"))
    return page.badge_id, options.base(str(entry["time"]))
