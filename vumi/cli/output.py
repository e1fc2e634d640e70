"""The output of commands: tables for people, and lines of JSON for programs.

A terminal has colours and symbols. `click.echo` removes the colours from what goes to a pipe, and
with NO_COLOR from everything.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import TextIO

import click

from chalicelib import telemetry

Cell = str | int | None

JSON = "vumi.json"
"""Where the context of a command has whether it prints JSON."""
MARKS = {"ok": ("✓", "green"), "wrong": ("✗", "red"), "note": ("!", "yellow")}
"""The symbol and the colour of each `vumi.operate.check.report.FindingKind`."""


def _keep_choice(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001  of click's interface
    context.meta[JSON] = value


as_json = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=_keep_choice,
    help="Print one JSON object per line, for programs.",
)


def wants_json() -> bool:
    """Return whether the current command prints JSON."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(JSON))


def print_json(value: Mapping[str, object]) -> None:
    """Print an object as one line of JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def print_result(text: str, fields: Mapping[str, object]) -> None:
    """Print a text for people, or its fields for programs."""
    if wants_json():
        print_json(fields)
    else:
        click.echo(text)


def log_change(changed_id: str, before: Mapping[str, object] | None = None) -> None:
    """Log what the current command has changed, unless somebody at a terminal reads its output."""
    if not sys.stderr.isatty():
        context = click.get_current_context(silent=True)
        action = context.command_path.removeprefix("vumi ") if context else ""
        telemetry.changed("command", action, changed_id, before=before)


def print_fields(fields: Mapping[str, object]) -> None:
    """Print an object, a line per field; an absent value is a dash."""
    if wants_json():
        print_json(fields)
        return
    width = max(map(len, fields))
    for name, value in fields.items():
        click.echo(f"{name.ljust(width)}  {_describe(value)}")


def print_table(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print rows in columns; whole numbers are aligned to the right."""
    for number, line in enumerate(format_table(header, rows)):
        click.echo(line if number else strong(line))


def print_objects(objects: Iterable[Mapping[str, Cell]], header: Sequence[str] = ()) -> None:
    """Print a table of objects with the same fields, or a line of JSON for each."""
    found = list(objects)
    if wants_json():
        for one in found:
            print_json(one)
    elif found:
        names = header or [name.upper() for name in found[0]]
        print_table(names, [[*one.values()] for one in found])


def format_table(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    """Yield the lines of a table, if it has a row."""
    found = list(rows)
    if not found:
        return
    cells = [[_format(cell) for cell in row] for row in found]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    right = [all(isinstance(row[at], int) for row in found) for at in range(len(header))]
    for line in (header, *cells):
        aligned = (
            text.rjust(width) if is_number else text.ljust(width)
            for text, width, is_number in zip(line, widths, right, strict=True)
        )
        yield "  ".join(aligned).rstrip()


def _describe(value: object) -> str:
    match value:
        case None | () | []:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(_describe, value))
        case int():
            return _format(value)
        case _:
            return _format(str(value))


def _format(cell: Cell) -> str:
    """Format a cell; control characters, which could steer a terminal, are escaped."""
    if isinstance(cell, int):
        return f"{cell:,}"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in cell or ""
    )


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
