"""The links and the anchors of a Markdown file, as GitHub shows it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

MARKDOWN = MarkdownIt("commonmark").enable("table")
HTML = {"html_block", "html_inline"}
TARGETS = {"href", "src", "srcset"}


def to_anchor(heading: str) -> str:
    """Return the anchor that GitHub makes of the text of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


class _Html(HTMLParser):
    """The targets and the anchors of HTML inside Markdown."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in TARGETS and value:
                self.targets.append(value.split()[0])
            if (name == "id" or (name, tag) == ("name", "a")) and value:
                self.anchors.append(value)


def links(text: str) -> Iterator[str]:
    """Yield the target of each link and each image."""
    for token in _tokens(text):
        if token.type == "link_open":
            yield str(token.attrs["href"])
        elif token.type == "image":
            yield str(token.attrs["src"])
        elif token.type in HTML:
            yield from _Html(token.content).targets


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return the anchors of a file: of its headings, and of its HTML."""
    seen: Counter[str] = Counter()
    found = set()
    for token, inner in pairwise([*_tokens(path.read_text(encoding="utf-8")), Token("end", "", 0)]):
        if token.type == "heading_open":
            anchor = to_anchor(_text(inner))
            found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
            seen[anchor] += 1
        elif token.type in HTML:
            found.update(_Html(token.content).anchors)
    return frozenset(found)


def _text(heading: Token) -> str:
    return "".join(
        part.content for part in heading.children or () if part.type in {"text", "code_inline"}
    )


def _tokens(text: str) -> Iterator[Token]:
    for token in MARKDOWN.parse(text):
        yield token
        yield from token.children or ()
