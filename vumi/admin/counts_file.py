"""Reading counts from a CSV file: `id,count`, one badge a line, checked whole before any is used.

The file is UTF-8, with or without a byte order mark; a first line `id,count` is its head. An id
that has a comma or a quote stands in quotes (RFC 4180). Blank lines mean nothing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chalicelib.badges import options
from chalicelib.views import ids

HEAD = ["id", "count"]
MAX_PROBLEMS = 20
"""So many of a file's wrong lines are told at once."""


class WrongFileError(Exception):
    """A file can't be imported; the message names the lines that are wrong, and why."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A line of the file: what a badge had been counted to elsewhere."""

    line: int
    badge_id: str
    count: int


def read(path: Path) -> list[Counted]:
    """All lines of a file. Raises `WrongFileError` unless every one is right."""
    rows: dict[str, Counted] = {}
    problems: list[str] = []
    for line, fields in _lines(path):
        try:
            row = _row(line, fields)
            _check_repetition(row, rows.setdefault(row.badge_id, row))
        except ValueError as wrong:
            problems.append(f"line {line}: {wrong}")
    if problems:
        raise WrongFileError(_told(path, problems))
    return list(rows.values())


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines that say something, each with its number: the last one, where it has several."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongFileError(f"{path} can't be read as a file in UTF-8: {error}") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for place, fields in enumerate(reader):
            if fields and not (place == 0 and fields == HEAD):
                yield reader.line_num, fields
    except csv.Error as error:
        raise WrongFileError(f"{path}: line {reader.line_num} is no CSV: {error}") from error


def _row(line: int, fields: list[str]) -> Counted:
    if len(fields) != len(HEAD):
        raise ValueError(f"give id,count, not {len(fields)} fields; an id with a comma is quoted")
    badge_id, count = fields
    return Counted(line, ids.normalise(badge_id), options.base(count))


def _check_repetition(row: Counted, earlier: Counted) -> None:
    """The same line twice is the same; two counts of one badge are for its operator to settle."""
    if row.count != earlier.count:
        raise ValueError(
            f"{row.badge_id} has {row.count} here and {earlier.count} in line {earlier.line}"
        )


def _told(path: Path, problems: list[str]) -> str:
    lines = "".join(f"\n  {problem}" for problem in problems[:MAX_PROBLEMS])
    more = len(problems) - MAX_PROBLEMS
    return f"{path}: nothing was imported" + lines + (f"\n  and {more} more" if more > 0 else "")
