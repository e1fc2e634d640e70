"""The export of everything as lines of JSON, and of the counts as CSV."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from chalicelib.counting.summary import Summary
from chalicelib.owners.finding import OwnedBadge
from chalicelib.settings import Settings
from chalicelib.storage.items import Item, text
from chalicelib.units import Seconds
from vumi.errors import ReportedError
from vumi.operate.admin import counts_file
from vumi.operate.admin.source import Group, Source, StoredObject
from vumi.operate.exchange import formats
from vumi.operate.exchange.files import LineWriter
from vumi.operate.exchange.formats import BADGE, OBJECT, OWNER, QUEUED_EVENT, VIEW


class ExportError(ReportedError):
    """Something can't be exported. The message names it."""


@dataclass(frozen=True, slots=True)
class Export:
    """The job that exports everything."""

    source: Source
    settings: Settings
    now: Seconds

    def run(self, writer: LineWriter) -> Iterator[Group]:
        """Write all lines; yield each group after it is written.

        Raises `ExportError`, `WrongLineError` and `StorageError`.
        """
        writer.write(formats.header(self.source.engine, self.settings, self.now))
        for group in self.source.groups():
            _write(writer, group.head)
            for item in group.rest:
                _write(writer, item)
            yield group
        for event in self.source.queued_events():
            writer.write({"type": QUEUED_EVENT, "queue": event.queue, "body": event.body})
        for stored in self.source.objects():
            writer.write({"type": OBJECT, "name": stored.name, "text": _unzip(stored)})
        writer.end()


def _write(writer: LineWriter, item: Item) -> None:
    """Write an item. Views have no TTL, because each engine keeps them for a time of its own."""
    kind = formats.moving_kind_of(item)
    line = kind.to_line(item)
    if kind is VIEW:
        line.pop("ttl", None)
    writer.write(line)


def _unzip(stored: StoredObject) -> str:
    try:
        return gzip.decompress(stored.body).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ExportError(
            f"the object {stored.name} of the archive can't be read: {error}; vumi check finds all"
            " such objects"
        ) from error


@dataclass(slots=True)
class CountedBadge:
    """The count of a badge, and its names, of which each shows it."""

    count: int = 0
    names: tuple[str, ...] = ()
    is_shown: bool = False


@dataclass(slots=True)
class CountsExport:
    """The export of the counts that badges show, for any counter.

    A badge with several names has a row for each, because all of them are embedded somewhere. Only
    such badges are kept until all their views are read.
    """

    source: Source
    _aliased: dict[str, CountedBadge] = field(default_factory=dict)

    def run(self) -> Iterator[tuple[str, int]]:
        """Yield the names and the counts. Raises `StorageError`."""
        for group in self.source.groups():
            if formats.kind_of(group.head) is BADGE:
                yield from self._count(group)
        for badge in self._aliased.values():
            if badge.is_shown:
                yield from ((name, badge.count) for name in badge.names)

    def _count(self, group: Group) -> Iterator[tuple[str, int]]:
        badge_id = text(group.head, "PK").removeprefix(BADGE.partition)
        summary, views = Summary.of(badge_id, group.head), 0
        names: tuple[str, ...] = (badge_id,)
        for item in group.rest:
            kind = formats.kind_of(item)
            views += kind is VIEW
            if kind is OWNER:
                names = (badge_id, *OwnedBadge.of(badge_id, item).aliases)
        if summary.alias:
            self._aliased.setdefault(summary.alias, CountedBadge()).count += views
            return
        count = summary.base + summary.count + views
        if len(names) > 1:
            badge = self._aliased.setdefault(badge_id, CountedBadge())
            badge.count, badge.names, badge.is_shown = badge.count + count, names, True
        elif count or not summary.deleted:
            yield badge_id, count


def format_row(name: str, count: object) -> str:
    """Format a row as CSV; the header is `counts_file.HEADER`."""
    row = io.StringIO()
    csv.writer(row, lineterminator="\n").writerow([re.sub(counts_file.FORMULA, "'", name), count])
    return row.getvalue()
