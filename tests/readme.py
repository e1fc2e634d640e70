"""The parts of README.md and its like that tests check: commands, transcripts, lines and texts.

Each command is of one kind, and each kind has a test. A fence of another language, a command of no
kind and a figure that is in no document fail `tests/unit/test_readme.py`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it.token import Token

from tests.markdown_links import MARKDOWN

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
LANGUAGES = {"sh", "console", "markdown"}
KINDS = ("make", "pipx", "vumi", "caddy", "curl")
COMMENT = re.compile(r"\s+# (.*)$", re.MULTILINE)
CELL_LEVEL = 4
"""The depth of the texts of tables, which no other text has."""


@dataclass(frozen=True)
class Command:
    """A command as a shell takes it: variables, the program, and its arguments."""

    variables: dict[str, str]
    kind: str
    arguments: list[str]

    def __str__(self) -> str:
        return shlex.join([self.kind, *self.arguments])


def words(text: str) -> int:
    """Count words as `wc -w` does: code, links and tags too."""
    return len(text.split())


def headings() -> list[str]:
    """Return the texts of all headings."""
    pairs = pairwise(_tokens())
    return [text.content for before, text in pairs if before.type == "heading_open"]


def fences(text: str = TEXT) -> list[Token]:
    """Return the blocks of code, also those that are indented."""
    return [token for token in _tokens(text) if token.type in {"fence", "code_block"}]


def transcripts(text: str = TEXT) -> Iterator[tuple[Command, list[str]]]:
    """Yield each command of the consoles with the lines that it prints."""
    for fence in fences(text):
        if fence.info == "console":
            content = fence.content.replace("\\\n", "")
            for part in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
                line, *output = part.splitlines()
                yield parse(line), output


def commands(kind: str = "") -> list[Command]:
    """Return the commands of all blocks and of the texts, or those of one kind."""
    lines = [line for fence in fences() if fence.info == "sh" for line in fence.content.split("\n")]
    separate = [part for line in lines for part in COMMENT.sub("", line).split(" && ") if part]
    inline = [code for code in _inline_code() if code.split()[0] in KINDS]
    shown = [parse(line) for line in [*separate, *inline]]
    return [
        command
        for command in [*shown, *(command for command, _ in transcripts())]
        if kind in {"", command.kind}
    ]


def parse(line: str) -> Command:
    """Return a command of one line."""
    parts = shlex.split(line)
    program = next(place for place, part in enumerate(parts) if "=" not in part)
    variables = dict(part.split("=", 1) for part in parts[:program])
    return Command(variables, parts[program], parts[program + 1 :])


def markdown_lines(text: str = TEXT) -> list[str]:
    """Return the lines that a user copies into a document."""
    blocks = [fence.content for fence in fences(text) if fence.info == "markdown"]
    return [line for block in blocks for line in block.splitlines()]


def continues_at() -> int:
    """Return the count that the README promises after the server was killed."""
    [count] = re.findall(r"the next visitor sees (\d+)\.", TEXT)
    return int(count)


def prose() -> list[str]:
    """Return each paragraph, heading, row of a table, and comment of a shell as one text."""
    texts, row = [], list[str]()
    for token in _tokens():
        if token.type == "tr_close":
            texts.append(" | ".join(row))
            row = []
        elif token.type == "inline":
            in_table = token.level == CELL_LEVEL
            (row if in_table else texts).append(_visible(token))
        elif token.type == "html_block":
            texts.append(re.sub(r'src(set)?="[^"]*"', "", token.content))
    return [*texts, *(comment for fence in fences() for comment in _comments(fence))]


def _comments(fence: Token) -> list[str]:
    return COMMENT.findall(fence.content) if fence.info == "sh" else []


def _visible(token: Token) -> str:
    """Return the text of a paragraph: code and texts of images, but no addresses."""
    return "".join(
        " " if child.type == "softbreak" else child.content for child in token.children or ()
    )


def _inline_code() -> list[str]:
    children = [child for token in _tokens() for child in token.children or ()]
    return [child.content for child in children if child.type == "code_inline"]


def _tokens(text: str = TEXT) -> list[Token]:
    return MARKDOWN.parse(text)
