"""The output of commands: tables for people, lines of JSON for programs, and progress.

A terminal has colours and symbols. `click.echo` removes the colours from what goes to a pipe, and
with NO_COLOR from everything.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from threading import Event, Thread
from typing import TextIO, TypeVar

import click

from chalicelib import telemetry
from chalicelib.storage.errors import StorageError
from chalicelib.units import WholeSeconds
from vumi.errors import ReportedError

Cell = str | int | None

JSON = "vumi.json"
"""Where the context of a command has whether it prints JSON."""
MARKS = {"ok": ("✓", "green"), "wrong": ("✗", "red"), "note": ("!", "yellow")}
"""The symbol and the colour of each `vumi.operate.check.items.FindingKind`."""


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
    """Print rows, if there are some, in columns; whole numbers are aligned to the right."""
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
        text = "  ".join(aligned).rstrip()
        click.echo(strong(text) if line is header else text)


def print_objects(objects: Iterable[Mapping[str, Cell]], header: Sequence[str] = ()) -> None:
    """Print a table of objects with the same fields, or a line of JSON for each."""
    found = list(objects)
    if wants_json():
        for one in found:
            print_json(one)
    elif found:
        names = header or [name.upper() for name in found[0]]
        print_table(names, [[*one.values()] for one in found])


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


def strong(text: str) -> str:
    """Return a text that a reader looks for: an address, or the head of a table."""
    return click.style(text, bold=True)


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


Counted = TypeVar("Counted")

FIRST_SECONDS: WholeSeconds = 2
"""A command that takes less shows no line."""
CLEAR_LINE = "\r\x1b[K"


@dataclass
class Progress:
    """What a command does, and how much it has done."""

    doing: str
    stream: TextIO
    done: int = 0
    shown: bool = field(default=False, init=False)

    def count(self, items: Iterable[Counted]) -> Iterator[Counted]:
        """Yield the items and count them."""
        for item in items:
            yield item
            self.done += 1

    def run(self, is_over: Callable[[float], bool]) -> None:
        """Draw the line of a terminal every second until `is_over`, which waits, returns true."""
        seconds = 0
        while not is_over(1.0):
            seconds += 1
            if seconds >= FIRST_SECONDS and self.stream.isatty():
                done = f", {self.done:,} so far" if self.done else ""
                line = f"{CLEAR_LINE}{self.doing} ({seconds} s{done})"
                print(line, end="", file=self.stream, flush=True)
                self.shown = True

    def hide(self) -> None:
        """Remove the line, so that a message can be printed."""
        if self.shown:
            print(CLEAR_LINE, end="", file=self.stream, flush=True)
            self.shown = False


@contextmanager
def progress(doing: str) -> Iterator[Progress]:
    """Show a line while the block runs, on a terminal alone."""
    line, over = Progress(doing, sys.stderr), Event()
    thread = Thread(target=line.run, args=(over.wait,), daemon=True)
    thread.start()
    try:
        yield line
    finally:
        over.set()
        thread.join()
        line.hide()


@contextmanager
def until_stopped(doing: str) -> Iterator[Progress]:
    """Show a line while the block runs; raise `ReportedError` if it fails or is interrupted."""
    with progress(doing) as line:
        try:
            yield line
        except (StorageError, KeyboardInterrupt) as error:
            raise ReportedError(
                f"{doing} stopped after {line.done:,}: {str(error) or 'it was interrupted'}; run it"
                " again for the rest"
            ) from error
