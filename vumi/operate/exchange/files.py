"""The file of an export: its lines as JSON, their checksum, and gzip if its name ends in `.gz`.

docs/export-format.md describes it.

The last line has the number of lines of each type and a checksum of all lines before it. So a
reader refuses a file that is cut or changed, before it uses any line.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from chalicelib.settings import Settings
from chalicelib.units import Seconds
from vumi.errors import ReportedError, plural
from vumi.operate.admin.installation import Group, Source
from vumi.operate.kinds import VIEW, kind_of
from vumi.storage.archive import sync_folder

FORMAT = "vu-mi export"
VERSION = 1
"""The version of the format. A reader refuses a later one."""
HEADER, END, OBJECT, QUEUED_EVENT = "header", "end", "object", "queued event"
"""The types of lines that are not items."""
SETTINGS = ("view_window_seconds", "grace_seconds", "retention_seconds")
"""The settings that a header names, so that a reader knows how the counts were made."""
ENCODER = json.JSONEncoder(separators=(",", ":"))
STANDARD = "-"
"""The name of standard input or output in place of a file."""
GZIP = ".gz"
MAGIC = b"\x1f\x8b"
"""The first bytes of a gzip file (RFC 1952)."""
MAX_RATIO = 200
"""The ratio of gzip for exports of badges is 10 to 100, and that of an attack is up to 1,032."""
MAX_LINE_BYTES = 2**24
"""The longest lines are objects of the archive, each with the entries of one batch."""
LEVEL = 6
"""The default level of the program gzip; the highest takes several times as long."""


@dataclass(slots=True)
class LineWriter:
    """The writer of lines, which counts them and computes their checksum."""

    file: IO[bytes]
    counts: Counter[str] = field(default_factory=Counter)
    _digest: Any = field(default_factory=hashlib.sha256)

    def write(self, line: Mapping[str, Any]) -> None:
        """Write a line."""
        encoded = encode(line)
        self._digest.update(encoded)
        self.file.write(encoded)
        self.counts[line["type"]] += 1

    def end(self) -> None:
        """Write the last line."""
        counts = dict(sorted(self.counts.items()))
        last = {"type": END, "counts": counts, "sha256": self._digest.hexdigest()}
        self.file.write(encode(last))


def export(source: Source, settings: Settings, now: Seconds, writer: LineWriter) -> Iterator[Group]:
    """Write everything; yield each group after it is written.

    Raises `ReportedError` and `StorageError`.
    """
    header = {
        "type": HEADER,
        "format": FORMAT,
        "version": VERSION,
        "exported_at": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "engine": source.engine,
        "settings": {name: getattr(settings, name) for name in SETTINGS},
    }
    writer.write(header)
    for group in source.groups:
        for item in chain([group.head], group.rest):
            kind = kind_of(item)
            line = kind.to_line(item)
            if kind is VIEW:
                line.pop("ttl", None)  # each engine keeps views for its own time
            writer.write(line)
        yield group
    for queue, body in source.queued_events:
        writer.write({"type": QUEUED_EVENT, "queue": queue, "body": body})
    for name, content in source.objects:
        writer.write({"type": OBJECT, "name": name, "text": _unzip_object(name, content)})
    writer.end()


def _unzip_object(name: str, content: bytes) -> str:
    try:
        return gzip.decompress(content).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ReportedError(
            f"the object {name} of the archive can't be read: {error}; vumi check finds all such"
            " objects"
        ) from error


@contextmanager
def create(name: str) -> Iterator[IO[bytes]]:
    """Open a new file, or standard output for `-`. A file has its name only once it is complete.

    Only its owner can read it, and its first name is random, so that nobody can plant a link there.
    Raises `ReportedError`.
    """
    if name == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    if path.exists():
        raise ReportedError(f"{name} exists; give another name")
    try:
        opened, unfinished = tempfile.mkstemp(".part", f"{path.name}.", path.parent)
        try:
            with os.fdopen(opened, "wb") as file:
                with _compressed(path, file) as lines:
                    yield lines
                file.flush()
                os.fsync(opened)
            Path(unfinished).replace(path)
            sync_folder(path.absolute().parent)
        finally:
            Path(unfinished).unlink(missing_ok=True)
    except OSError as error:
        raise ReportedError(f"{name} can't be written: {error}") from error


def _compressed(path: Path, file: IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    """Compress what is written to a file, if the name says so."""
    if path.suffix != GZIP:
        return nullcontext(file)
    zipped = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=LEVEL, mtime=0)
    return cast("AbstractContextManager[IO[bytes]]", zipped)


@dataclass(frozen=True, slots=True)
class ExportFile:
    """An export that was read to its end: it is complete. `lines` reads its `count` lines again."""

    name: str
    file: IO[bytes]
    count: int

    def lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield each line but the header and the last one, with its number.

        Raises `ReportedError`.
        """
        self.file.seek(0)
        for number, line in enumerate(_lines(self.name, self.file), 1):
            try:
                decoded = decode(line)
            except ReportedError as error:
                raise ReportedError(f"line {number} can't be imported: {error}") from error
            if decoded.get("type") not in {HEADER, END}:
                yield number, decoded


@contextmanager
def open_input(name: str) -> Iterator[IO[bytes]]:
    """Open a file, or a copy of standard input for `-`, unzipped and from its beginning.

    Raises `ReportedError`.
    """
    with ExitStack() as stack:
        try:
            if name == STANDARD:
                file: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())
                shutil.copyfileobj(sys.stdin.buffer, file)
            else:
                file = stack.enter_context(Path(name).open("rb"))
            file.seek(0)
            unzipped = _unzip(file) if file.read(len(MAGIC)) == MAGIC else file
            unzipped.seek(0)
        except (OSError, EOFError, zlib.error) as error:
            raise ReportedError(f"{name} can't be read: {error}") from error
        yield unzipped


def _unzip(file: IO[bytes]) -> IO[bytes]:
    """Open a compressed file. Raises `OSError` if it becomes so large that it may be an attack."""
    most = MAX_RATIO * file.seek(0, os.SEEK_END)
    file.seek(0)
    unzipped = gzip.GzipFile(fileobj=file)
    unzipped.seek(most)
    if unzipped.read(1):
        raise OSError(f"it is over {MAX_RATIO} times as large unzipped; unzip it if you trust it")
    return cast("IO[bytes]", unzipped)


def is_export(file: IO[bytes]) -> bool:
    """Return whether a file begins as an export does, and not as a CSV file of counts."""
    is_object = file.read(1) == b"{"
    file.seek(0)
    return is_object


def read(name: str, file: IO[bytes]) -> ExportFile:
    """Read a file to its end, and check that it is complete. Raises `ReportedError`."""
    digest, count = hashlib.sha256(), 0
    first = last = b""
    file.seek(0)
    for line in _lines(name, file):
        digest.update(last)
        first, last, count = first or line, line, count + 1
    try:
        check_header(decode(first))
    except ReportedError as error:
        raise ReportedError(f"{name} can't be imported: {error}") from error
    if not _ends_with(last, digest.hexdigest()):
        raise ReportedError(
            f"{name} is cut or was changed: its last line does not fit the"
            f" {plural(count - 1, 'line')} before it; export again, or copy the file again"
        )
    return ExportFile(name, file, count)


def _ends_with(last: bytes, digest: str) -> bool:
    """Return whether the last line has the checksum of the lines before it."""
    try:
        end = decode(last)
    except ReportedError:
        return False
    return end.get("type") == END and end.get("sha256") == digest


def _lines(name: str, file: IO[bytes]) -> Iterator[bytes]:
    try:
        for number, line in enumerate(iter(partial(file.readline, MAX_LINE_BYTES + 1), b""), 1):
            if len(line) > MAX_LINE_BYTES:
                raise ReportedError(f"{name}: line {number} has more than {MAX_LINE_BYTES} bytes")
            yield line
    except (OSError, EOFError, zlib.error) as error:
        raise ReportedError(f"{name} is cut or damaged: {error}") from error


def check_header(line: Mapping[str, Any]) -> None:
    """Raise `ReportedError` unless a line begins an export that this program reads."""
    if line.get("format") != FORMAT:
        raise ReportedError(f"it is not a {FORMAT}: its first line has no such format")
    version = line.get("version")
    if not isinstance(version, int) or version < 1:
        raise ReportedError(f"its version is {version!r}, not a whole number")
    if version > VERSION:
        raise ReportedError(
            f"it has version {version} of the format, and this program reads {VERSION}: use a"
            " newer vu-mi"
        )


def encode(line: Mapping[str, Any]) -> bytes:
    """Encode a line as ASCII, so that every text survives, also one that UTF-8 can't hold."""
    return ENCODER.encode(line).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Decode a line. Raises `ReportedError`."""
    try:
        decoded = json.loads(line, parse_float=_refuse_number, parse_constant=_refuse_number)
    except (ValueError, RecursionError) as error:
        raise ReportedError(f"it is not JSON: {error}") from error
    if not isinstance(decoded, dict) or not isinstance(decoded.get("type", ""), str):
        raise ReportedError("it is not a JSON object whose type is a text")
    return decoded


def _refuse_number(number: str) -> NoReturn:
    raise ReportedError(f"its number {number} is not whole")
