"""The counts of badges as files, and their import from another counter, from which badges continue.

A file is checked before any line of it is used. A CSV file is UTF-8, with or without a byte order
mark, and may start with the header `id,count`. An id with a comma or a quote is quoted (RFC 4180).
Blank lines are ignored.

An imported count becomes the base of its badge, to which views are added. An import sets the base
and never adds to it, so it is safe to repeat. It does not overwrite a decision unless `replace` is
set: a different base, or a reset by the owner.
"""

from __future__ import annotations

import csv
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import IO, TypeVar
from urllib.parse import unquote, urlsplit

from chalicelib.badges import options
from chalicelib.concurrency import MapParallel
from chalicelib.counting import ids, keys
from chalicelib.counting.summary import Summary
from chalicelib.owners.finding import OwnedBadge
from chalicelib.storage.items import Item, text
from chalicelib.storage.ports import Table
from chalicelib.storage.retry import Retry
from chalicelib.storage.writes import ConditionFailedError
from chalicelib.units import Seconds
from vumi.errors import ReportedError
from vumi.operate.admin.installation import PATIENCE, Group, map_patiently
from vumi.operate.admin.other_counters import WebPage
from vumi.operate.kinds import BADGE, OWNER, VIEW, kind_of

Given = TypeVar("Given")

HEADER = ["id", "count"]
MAX_BYTES = 2**25
"""The size of a file with a million lines of 33 bytes, which are all in memory."""
FORMULA = r"\A(?='*[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-])"
"""The place before the first character of a formula, of either width, and its apostrophes."""
MAX_PROBLEMS = 20
"""Wrong lines that one message lists."""


@dataclass(frozen=True, slots=True)
class ImportedCount:
    """A line of the file: the count of a badge in another counter."""

    line: int
    badge_id: str
    count: int


def read(name: str, file: IO[bytes]) -> list[ImportedCount]:
    """Read all lines of an open file. Raises `ReportedError` if a line is wrong."""
    rows: dict[str, ImportedCount] = {}

    def add(line: int, fields: list[str]) -> None:
        row = _parse_row(line, fields)
        earlier = rows.setdefault(row.badge_id, row)
        if row.count != earlier.count:
            raise ValueError(
                f"{row.badge_id} has {row.count} here but {earlier.count} in line {earlier.line}"
            )

    _add_all(name, _read_lines(name, file), add)
    return list(rows.values())


def _add_all(
    name: str, lines: Iterable[tuple[int, Given]], add: Callable[[int, Given], None]
) -> None:
    """Add the lines of a file. Raises `ReportedError` with those that are wrong."""
    problems = []
    for line, given in lines:
        try:
            add(line, given)
        except (ValueError, RecursionError) as error:
            problems.append(f"\n  line {line}: {error}")
    if problems:
        more = [f"\n  and {len(problems) - MAX_PROBLEMS} more"] * (len(problems) > MAX_PROBLEMS)
        raise ReportedError(
            "".join([f"{name}: nothing was imported", *problems[:MAX_PROBLEMS], *more])
        )


def read_text(name: str, file: IO[bytes]) -> str:
    """Read an open file. Raises `ReportedError` if it is too long, or no UTF-8."""
    try:
        content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ReportedError(f"{name} has more than {MAX_BYTES:,} bytes: split it")
        return content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ReportedError(f"{name} can't be read as UTF-8: {error}") from error


def _read_lines(name: str, file: IO[bytes]) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of each row, with the number of its last line."""
    decoded = read_text(name, file)
    reader = csv.reader(io.StringIO(decoded, newline=""), strict=True)
    try:
        for index, fields in enumerate(reader):
            if fields and not (index == 0 and fields == HEADER):
                yield reader.line_num, fields
    except csv.Error as error:
        raise ReportedError(f"{name}: line {reader.line_num} is not CSV: {error}") from error


def _parse_row(line: int, fields: list[str]) -> ImportedCount:
    if len(fields) != len(HEADER):
        raise ValueError(f"give id,count, not {len(fields)} fields; quote an id that has a comma")
    name, count = fields
    badge_id = name[1:] if name[:1] == "'" and re.match(FORMULA, name) else name
    return ImportedCount(line, ids.normalise(badge_id), options.base(count))


def read_leancloud(name: str, file: IO[bytes], site: str) -> list[ImportedCount]:
    """Read the counts of a site's pages in LeanCloud's export, and their sum as that of the site.

    Each line is an object of the class `Counter` as JSON, with the path or the URL of a page
    (`url`) and its views (`time`), after a line that names the class. So hexo-leancloud-counter,
    Valine and waline keep them. An array of such objects is read too.

    A page that is there twice, because of a race when it was new, has the sum of both. Raises
    `ReportedError` if a line is wrong.
    """
    counts: Counter[str] = Counter()

    def add(_: int, row: str) -> None:
        found = json.loads(row)
        for entry in found if isinstance(found, list) else [found]:
            badge_id, count = _parse_entry(entry, site)
            counts[badge_id] += count

    _add_all(name, _read_entries(name, file), add)
    counts[ids.normalise(site)] = sum(counts.values())
    return [ImportedCount(place, *row) for place, row in enumerate(counts.items(), 1)]


def _read_entries(name: str, file: IO[bytes]) -> Iterator[tuple[int, str]]:
    decoded = read_text(name, file)
    if decoded.lstrip().startswith("["):
        yield 1, decoded
        return
    for line, row in enumerate(decoded.split("\n"), 1):
        if row.strip() and not row.startswith("#"):
            yield line, row


def _parse_entry(entry: object, site: str) -> tuple[str, int]:
    """Return the id and the count of a page, as the script of web pages names it."""
    if not isinstance(entry, Mapping) or not {"url", "time"} <= entry.keys():
        raise ValueError("give an object of the class Counter, with url and time")
    path = unquote(urlsplit(str(entry["url"])).path)
    page = WebPage(site, "/" + path.removeprefix("/"))
    return page.badge_id, options.base(str(entry["time"]))


def export(groups: Iterable[Group]) -> Iterator[tuple[str, int]]:
    """Yield the names and the counts of badges, for any counter. Raises `StorageError`.

    A badge with several names has a row for each, because all of them are embedded somewhere. Only
    such badges are kept until all their views are read.
    """
    names: dict[str, tuple[str, ...]] = {}
    counts: Counter[str] = Counter()
    for group in groups:
        if kind_of(group.head) is not BADGE:
            continue
        summary = Summary.of(text(group.head, "PK").removeprefix(BADGE.partition), group.head)
        views, owner = _read_rest(group.rest)
        count = summary.base + summary.count + views
        if summary.alias:
            counts[summary.alias] += views
        elif aliases := OwnedBadge.of(summary.badge_id, owner).aliases:
            names[summary.badge_id] = summary.badge_id, *aliases
            counts[summary.badge_id] += count
        elif count or not summary.deleted:
            yield summary.badge_id, count
    for badge_id, of_badge in names.items():
        yield from ((name, counts[badge_id]) for name in of_badge)


def _read_rest(items: Iterable[Item]) -> tuple[int, Item]:
    """Return the number of a badge's live views, and its owner."""
    views, owner = 0, Item()
    for item in items:
        kind = kind_of(item)
        views += kind is VIEW
        owner = item if kind is OWNER else owner
    return views, owner


def format_row(name: str, count: object) -> str:
    """Format a row as CSV; the header is `HEADER`."""
    row = io.StringIO()
    csv.writer(row, lineterminator="\n").writerow([re.sub(FORMULA, "'", name), count])
    return row.getvalue()


class ImportOutcome(Enum):
    """The outcome of a line; its value is printed for the operator."""

    IMPORTED = "imported"
    SAME = "unchanged"
    REPLACED = "replaced"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class ImportResult:
    """A line, its outcome, and the earlier base of its badge."""

    row: ImportedCount
    outcome: ImportOutcome
    before: int


@dataclass(frozen=True, slots=True)
class Import:
    """The job that imports counts; with `dry_run` it writes nothing."""

    table: Table
    map_parallel: MapParallel
    clock: Callable[[], Seconds]
    replace: bool = False
    dry_run: bool = False
    patience: Retry = PATIENCE

    def run(self, rows: Iterable[ImportedCount]) -> Iterator[ImportResult]:
        """Import all lines in order. Raises `StorageError`; the lines before are imported then."""
        return map_patiently(self._import, rows, self.map_parallel, self.patience)

    def _import(self, row: ImportedCount) -> ImportResult:
        """Read and write a badge until no other write comes in between."""
        while True:
            summary, is_decided = self._read_badge(row.badge_id)
            if summary.base == row.count:
                outcome = ImportOutcome.SAME
            elif not is_decided:
                outcome = ImportOutcome.IMPORTED
            else:
                outcome = ImportOutcome.REPLACED if self.replace else ImportOutcome.KEPT
            result = ImportResult(row, outcome, summary.base)
            if self.dry_run or outcome in {ImportOutcome.SAME, ImportOutcome.KEPT}:
                return result
            try:
                self.table.write(summary.update(self.clock(), {"base": row.count}))
            except ConditionFailedError:
                continue
            return result

    def _read_badge(self, name: str) -> tuple[Summary, bool]:
        """Return a badge by any of its names, and whether its base is a decision.

        A base of 0 that was set is a decision, and a missing base is not.
        """
        item = self.table.get(keys.summary(name)) or {}
        if alias := text(item, "alias"):
            name, item = alias, self.table.get(keys.summary(alias)) or {}
        return Summary.of(name, item), "base" in item or "reset" in item
