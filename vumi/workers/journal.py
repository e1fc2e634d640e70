"""The consumer of journals on one machine: it archives the entries that expired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from chalicelib.resources import Resources
from chalicelib.storage.messages import log_malformed_record, parse_records
from chalicelib.wallets.archive import EntryRemoval, archive_entries, archive_malformed
from vumi.storage.table import Change


def archive_changes(changes: Sequence[Change], resources: Resources) -> list[Change]:
    """Archive removed entries; return the changes to deliver again. Raises `StorageError`."""
    removals, malformed = parse_records(changes, _entry_removal, log_malformed_record)
    archive_malformed([asdict(change) for change in malformed], resources)
    failed = set(archive_entries([removal for _, removal in removals], resources))
    return [change for change, removal in removals if removal in failed]


def _entry_removal(change: Change) -> EntryRemoval:
    return EntryRemoval.of(change.item, change.sequence, change.removed_at)
