"""What `archive_entries` archives, answers and counts."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.storage.errors import Refused, StorageError, Unavailable
from chalicelib.wallets.archive_consumer import archive_entries
from chalicelib.wallets.wallet import Entry, Posting
from simulation import aws_events as events
from simulation.archives import FakeArchive
from simulation.aws_events import entry_record
from simulation.clocks import NOON, ulid_of

ALICE, BOB = ulid_of(NOON, "A" * 16), ulid_of(NOON, "B" * 16)
DAY = 86_400
FINE: dict[str, Any] = {"batchItemFailures": []}


@dataclass(frozen=True)
class Use:
    """A `resources.Resources`."""

    archive: FakeArchive

    def clock(self) -> float:
        return NOON


@pytest.fixture
def archive() -> Iterator[FakeArchive]:
    made = FakeArchive()
    resources.use(None, archive=Use(made))
    yield made
    resources.use(None)


@pytest.fixture
def counted(caplog: pytest.LogCaptureFixture) -> dict[str, int]:
    """The metrics of the last line that the handler wrote."""
    values: dict[str, int] = {}

    def collect(record: logging.LogRecord) -> bool:
        fields = vars(record)["fields"]
        values.update({name: n for name, n in fields.items() if isinstance(n, int)})
        return True

    caplog.set_level(logging.INFO, telemetry.metrics.name)
    caplog.handler.addFilter(
        lambda record: record.name != telemetry.metrics.name or collect(record)
    )
    return values


def record(sequence: int, days: int = 0) -> dict[str, Any]:
    """The removal of an entry of so many days before noon."""
    name = f"n{sequence}"
    at = int(NOON - days * DAY) * 1000
    entry = Entry(ulid_of(NOON, f"{sequence:016}"), Posting(name, 1, BOB, ALICE), at)
    return entry_record(entry, ALICE, sequence)


def deliver(*records: dict[str, Any]) -> Any:
    return archive_entries(events.stream_event(records), None)


def failed(sequence: int) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": str(sequence)}]}


def nonces(archive: FakeArchive) -> list[str]:
    return [line["nonce"] for line in archive.lines()]


def test_every_removed_entry_is_archived(archive: FakeArchive, counted: dict[str, int]) -> None:
    assert deliver(record(1), record(2, days=1), record(3)) == FINE
    assert sorted(nonces(archive)) == ["n1", "n2", "n3"]
    assert len(archive.objects) == 2
    assert counted["entries_archived"] == 3
    assert counted["malformed"] == 0


def test_a_batch_that_comes_again_is_the_same_object(archive: FakeArchive) -> None:
    batch = [record(1), record(2)]
    assert deliver(*batch) == deliver(*batch) == FINE
    assert nonces(archive) == ["n1", "n2"]


def test_a_batch_that_is_cut_anew_leaves_what_is_there(archive: FakeArchive) -> None:
    """1 to 3, then 1 alone: 1 is there twice, with one id, and nothing is gone."""
    deliver(record(1), record(2), record(3))
    deliver(record(1))
    assert sorted(nonces(archive)) == ["n1", "n1", "n2", "n3"]
    assert len({line["id"] for line in archive.lines()}) == 3


@pytest.mark.parametrize("failure", [Unavailable("slow down"), Refused("no such bucket")])
def test_what_can_not_be_archived_comes_again_from_its_first_entry_on(
    archive: FakeArchive, counted: dict[str, int], failure: StorageError
) -> None:
    """Of four entries the two of yesterday fail, the first of them is 9: 10 is no smaller."""
    archive.failure, archive.failing = failure, "/13/"
    batch = [record(8), record(9, days=1), record(10, days=1), record(11)]
    assert deliver(*batch) == failed(9)
    assert nonces(archive) == ["n8", "n11"]
    assert counted["entries_archived"] == 2
    archive.failure = None
    assert deliver(*batch[1:]) == FINE
    assert {*nonces(archive)} == {"n8", "n9", "n10", "n11"}


def test_where_all_days_fail_the_first_entry_of_any_comes_again(archive: FakeArchive) -> None:
    """The day before has 9 and 10, and is put first; the first that was removed is 8."""
    archive.failure, archive.failing = Unavailable("slow down"), "journal/"
    assert deliver(record(8), record(9, days=1), record(10, days=1)) == failed(8)
    assert archive.objects == {}


def test_a_malformed_record_is_logged_and_archived_whole_and_holds_up_nobody(
    archive: FakeArchive, counted: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    malformed = record(1)
    del malformed["dynamodb"]["OldImage"]["amount"]
    assert deliver(malformed, record(2)) == FINE
    entries, kept = sorted(archive.objects)
    assert json.loads(gzip.decompress(archive.objects[kept])) == malformed
    assert json.loads(gzip.decompress(archive.objects[entries]))["nonce"] == "n2"
    assert kept.startswith("journal/malformed/")
    assert (counted["malformed"], counted["entries_archived"]) == (1, 1)
    [line] = [one for one in caplog.records if one.message == "a malformed stream record"]
    assert vars(line)["fields"]["record"] == malformed


@pytest.mark.parametrize("failure", [Unavailable("slow down"), Refused("no such bucket")])
def test_a_malformed_record_that_can_not_be_archived_brings_its_whole_batch_again(
    archive: FakeArchive, failure: StorageError
) -> None:
    """It may have no sequence number to ask for it by."""
    archive.failure, archive.failing = failure, "malformed"
    with pytest.raises(type(failure)):
        deliver(record(1), {})
    archive.failure = None
    assert deliver(record(1), {}) == FINE
    assert len(archive.objects) == 2


def test_what_is_no_entry_is_passed_over(archive: FakeArchive) -> None:
    assert deliver(events.removal(1, "USER#a", f"VIEW#{ulid_of(NOON)}")) == FINE
    assert archive.objects == {}


def test_the_lag_of_a_batch_is_that_of_its_first_removal(
    archive: FakeArchive, counted: dict[str, int]
) -> None:
    """Removed 90 s ago, 20 s ago, and one that does not say when: 90."""
    records = [record(n) for n in range(1, 4)]
    for one, ago in zip(records, (20, 90), strict=False):
        one["dynamodb"]["ApproximateCreationDateTime"] = NOON - ago
    del records[2]["dynamodb"]["ApproximateCreationDateTime"]
    deliver(*records)
    assert len(archive.lines()) == 3
    assert counted["archive_lag_seconds"] == 90


def test_without_entries_no_archive_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a function whose bucket is not told yet can take an empty batch."""
    monkeypatch.delenv("ARCHIVE_BUCKET", raising=False)
    resources.use(None)
    assert json.loads(json.dumps(deliver())) == FINE
    resources.use(None)
