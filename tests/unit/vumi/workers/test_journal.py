"""The journal worker: it archives expired entries."""

from __future__ import annotations

import gzip
import json

from chalicelib.storage.errors import Unavailable
from chalicelib.wallets.wallet import Entry, Posting
from simulation.archives import FakeArchive
from simulation.clocks import NOON, ulid_of
from simulation.resources import GivenResources
from vumi.storage.table import Change
from vumi.workers.journal import archive_changes

ALICE = ulid_of(NOON, "A" * 16)


def change(sequence: int, days: int = 0) -> Change:
    """Return the removal of an entry that was made some days before noon."""
    at = int(NOON - days * 86_400) * 1000
    entry = Entry(ulid_of(NOON, f"{sequence:016}"), Posting(f"n{sequence}", 1, ALICE), at)
    return Change(sequence, NOON, entry.item(ALICE))


def test_entries_are_archived_by_their_sequence_and_failed_ones_are_delivered_again() -> None:
    archive = FakeArchive(Unavailable("no room"), "/13/")
    changes = [change(8), change(9, days=1), change(10)]
    assert archive_changes(changes, GivenResources(archive=archive)) == [changes[1]]
    assert [line["nonce"] for line in archive.lines()] == ["n8", "n10"]
    [name] = archive.objects
    assert name.startswith(f"journal/2026/03/14/{8:040}-")


def test_a_malformed_change_is_archived_completely() -> None:
    archive = FakeArchive()
    malformed = Change(1, NOON, {"PK": f"WALLET#{ALICE}", "SK": "TX#1"})
    assert archive_changes([malformed], GivenResources(archive=archive)) == []
    [(name, body)] = archive.objects.items()
    assert name.startswith("journal/malformed/")
    assert json.loads(gzip.decompress(body)) == {
        "sequence": 1,
        "removed_at": NOON,
        "item": malformed.item,
    }
