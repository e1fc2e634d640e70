"""The calls of curl in documents, sent to a server of a test."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

from tests.end_to_end.server import PATIENCE_SECONDS
from tests.readme import Command

DEFAULT = "127.0.0.1:8000"
ANY = re.compile(r"\w*…")
"""The part of an answer that differs each time."""


def curl(command: Command, known: Mapping[str, str]) -> str:
    """Send a call with the values of this test in place of those of the document."""
    options = ("--silent", "--show-error", "--fail-with-body", "--noproxy", "*")
    arguments = [replaced(argument, known) for argument in command.arguments]
    finished = subprocess.run(  # noqa: S603  our own words
        ["curl", *options, *arguments],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def replaced(text: str, known: Mapping[str, str]) -> str:
    for given, own in known.items():
        text = text.replace(given, own)
    return text


def to_pattern(line: str) -> str:
    """Return a regular expression of a line in which `…`, and the word before it, is anything."""
    return ".+".join(map(re.escape, ANY.split(line)))
