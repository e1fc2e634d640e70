"""The export of everything as lines of JSON."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from itertools import chain

from chalicelib.settings import Settings
from chalicelib.storage.items import Item
from chalicelib.units import Seconds
from vumi.errors import ReportedError
from vumi.operate.admin.source import Group, Source
from vumi.operate.exchange.files import OBJECT, QUEUED_EVENT, LineWriter, header
from vumi.operate.kinds import VIEW, kind_of


class ExportError(ReportedError):
    """Something can't be exported. The message names it."""


def export(source: Source, settings: Settings, now: Seconds, writer: LineWriter) -> Iterator[Group]:
    """Write everything; yield each group after it is written.

    Raises `ExportError`, `UnknownItemError`, `WrongLineError` and `StorageError`.
    """
    writer.write(header(source.engine, settings, now))
    for group in source.groups():
        for item in chain([group.head], group.rest):
            _write(writer, item)
        yield group
    for queue, body in source.queued_events():
        writer.write({"type": QUEUED_EVENT, "queue": queue, "body": body})
    for name, content in source.objects():
        writer.write({"type": OBJECT, "name": name, "text": _unzip(name, content)})
    writer.end()


def _write(writer: LineWriter, item: Item) -> None:
    """Write an item. Views have no TTL, because each engine keeps them for a time of its own."""
    kind = kind_of(item)
    line = kind.to_line(item)
    if kind is VIEW:
        line.pop("ttl", None)
    writer.write(line)


def _unzip(name: str, content: bytes) -> str:
    try:
        return gzip.decompress(content).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ExportError(
            f"the object {name} of the archive can't be read: {error}; vumi check finds all"
            " such objects"
        ) from error
