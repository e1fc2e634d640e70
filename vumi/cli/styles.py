"""The colours and symbols of a terminal.

`click.echo` removes the colours from what goes to a pipe, and with NO_COLOR from everything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import StringIO
from typing import TextIO

import click

MARKS = {"ok": ("✓", "green"), "wrong": ("✗", "red"), "note": ("!", "yellow")}
"""The symbol and the colour of each `vumi.operate.check.report.FindingKind`."""


def wants_color(environment: Mapping[str, str]) -> bool | None:
    """Return False if colours are not wanted, or None if `click` decides by the stream."""
    refused = environment.get("NO_COLOR") or environment.get("TERM") == "dumb"
    return False if refused else None


def strong(text: str) -> str:
    """Return a text that a reader looks for: an address, or the head of a table."""
    return click.style(text, bold=True)


def good(text: str) -> str:
    """Return a text that says that all is well."""
    return click.style(text, fg="green")


def mark(kind: str, stream: TextIO) -> str:
    """Return what a finding begins with: its symbol on a terminal, or its kind in a pipe."""
    if not (stream.isatty() and stream.encoding.lower() == "utf-8"):
        return f"{kind}:"
    symbol, color = MARKS[kind]
    return click.style(symbol, fg=color)


def show_error(error: click.ClickException, *, color: bool | None) -> None:
    """Print an error, with its first word in red."""
    written = StringIO()
    error.show(written)
    red = click.style("Error:", fg="red", bold=True)
    text = re.sub("^Error:", red, written.getvalue(), count=1, flags=re.MULTILINE)
    click.echo(text, err=True, nl=False, color=color)
