"""Journal entries on their way to the archive: batches fail, come again, and change their size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from chalicelib.aws import resources
from chalicelib.aws.consumers import archive_entries
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Item, text
from chalicelib.wallets.wallet import PARTITION, Entry, Posting
from simulation import aws_events as events
from simulation.archives import FakeArchive
from simulation.aws_events import entry_record
from simulation.faults import Crash, Fault, Faults
from simulation.resources import GivenResources


class ArchiveWorld:
    """The entries removed from journals, the number reported as archived, and the archive."""

    def __init__(self) -> None:
        self.removed: list[tuple[str, Entry]] = []
        self._reported = 0
        self._faults = Faults()
        self._kept = FakeArchive()

    def put(self, name: str, body: bytes) -> None:
        """Put an object as an `Archive` does, and assert that it replaces no other object."""
        assert self._kept.objects.get(name, body) == body, f"{name} would be another object"
        self._faults.call(lambda: self._kept.put(name, body))

    def remove(self, item: Item) -> None:
        """Add an entry that was removed from the table to the stream."""
        self.removed.append((text(item, "PK").removeprefix(PARTITION), Entry.of(item)))

    def deliver(self, size: int, faults: Sequence[Fault] = ()) -> None:
        """Deliver up to `size` entries to the consumer; entries that fail come again."""
        batch = [
            entry_record(entry, wallet_id, place)
            for place, (wallet_id, entry) in enumerate(self.removed, 1)
        ][self._reported :][:size]
        self._faults.plan(faults)
        resources.use(GivenResources(archive=self, clock=lambda: 0.0))
        try:
            answer = archive_entries(events.stream_event(batch), None)
        except (Crash, StorageError):
            assert faults, "nothing may fail without a fault"
        else:
            failed = [int(failure["itemIdentifier"]) for failure in answer["batchItemFailures"]]
            assert faults or not failed
            self._reported = min(failed) - 1 if failed else self._reported + len(batch)
        finally:
            resources.use(None)
            self._faults.plan([])

    def deliver_all(self) -> None:
        """Deliver the rest without a fault."""
        while self._reported < len(self.removed):
            self.deliver(len(self.removed))

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """Yield each entry in the archive or the stream with its wallet; some come twice."""
        yield from map(_read, self._kept.lines())
        yield from self.removed[self._reported :]


def _read(line: dict[str, Any]) -> tuple[str, Entry]:
    """Read a line of the archive using only the documented format."""
    at = datetime.fromisoformat(line["at"])
    posting = Posting(line["nonce"], int(line["amount"]), line["to"], line["from"])
    assert line["kind"] == str(posting.kind)
    return line["wallet"], Entry(line["id"], posting, round(at.timestamp() * 1000))
