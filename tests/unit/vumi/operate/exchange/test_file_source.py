"""The export of a file: one moment of it, with the views and events that wait in its queues."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chalicelib.counting import keys
from chalicelib.counting.view import View
from chalicelib.storage.ports import Message
from chalicelib.storage.writes import Put
from chalicelib.ulids import milliseconds
from chalicelib.wallets.wallet import Entry, Posting
from simulation.clocks import NOON, Clock
from simulation.exchange_world import QUEUE, export, one_machine, restore
from simulation.installation import MemoryInstallation
from simulation.views import AT_NOON, fold, put_summary, put_views, shown, view
from vumi.errors import ReportedError
from vumi.operate.installations.file import FileInstallation
from vumi.workers.expiry import remove_expired

BADGE = "octocat"
WALLET = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.fixture
def file(tmp_path: Path) -> Iterator[FileInstallation]:
    with one_machine(Clock(NOON), tmp_path) as made:
        yield made


def lines(installation: FileInstallation, kind: str) -> list[dict[str, Any]]:
    found = map(json.loads, export(installation).splitlines())
    return [line for line in found if line["type"] == kind]


def send(installation: FileInstallation, one: View) -> None:
    installation.views_queue.send(one.to_message())


def test_an_export_is_of_one_moment(file: FileInstallation) -> None:
    put_views(file.table, AT_NOON, AT_NOON + 1)
    put_summary(file.table, "z", count=1)
    with file.open_source() as source:
        groups = source.groups
        assert next(groups).head["count"] == 1
        put_views(file.table, AT_NOON + 2)
        fold(file.table, NOON + 2_000)
        badge = next(groups)
        assert "count" not in badge.head
        assert len(list(badge.rest)) == 2


def test_counted_views_and_markers_stay(file: FileInstallation) -> None:
    put_summary(file.table, watermark=AT_NOON, count=1, version=1)
    put_views(file.table, AT_NOON, AT_NOON + 1)
    file.table.write(Put({"PK": "SEEN#1", "SK": "SEEN", "badge": BADGE, "ttl": 1}))
    file.table.write(Put({"PK": f"WINDOW#1#{BADGE}", "SK": "WINDOW", "badge": BADGE, "ttl": 1}))
    assert len(export(file).splitlines()) == 4
    assert [milliseconds(one["view"]) for one in lines(file, "view")] == [AT_NOON + 1]


def test_views_in_the_queue_and_its_dead_letters_are_live_after_the_move(
    file: FileInstallation,
) -> None:
    for one in (view(AT_NOON), view(AT_NOON), view(AT_NOON, 1), view(AT_NOON, 2, "another")):
        send(file, one)
    change = "UPDATE messages SET queue = queue || '-dead-letters' WHERE id = 3"
    file.database.write(lambda connection: connection.execute(change))
    other = MemoryInstallation(clock=Clock(NOON))
    restore(other, export(file))
    assert (shown(other.memory), shown(other.memory, "another")) == (2, 1)


def test_a_late_view_in_the_queue_gets_a_time_after_the_watermark(file: FileInstallation) -> None:
    put_summary(file.table, watermark=AT_NOON, count=7, version=1)
    late = view(AT_NOON - 60_000)
    send(file, late)
    [moved] = lines(file, "view")
    assert milliseconds(moved["view"]) == AT_NOON + 1
    assert moved["view"][10:] == late.ulid[10:]
    other = MemoryInstallation(clock=Clock(NOON))
    restore(other, export(file))
    assert shown(other.memory) == 8
    fold(other.memory, NOON + 2_000)
    assert shown(other.memory) == 8


def test_a_view_in_the_queue_that_is_counted_or_stored_moves_once(file: FileInstallation) -> None:
    put_summary(file.table, watermark=AT_NOON, count=2, version=1)
    stored, live, seen = view(AT_NOON - 1), view(AT_NOON + 1, 1), view(AT_NOON - 1, 2)
    put_views(file.table, AT_NOON - 1, AT_NOON + 1)
    file.table.write(Put({"PK": keys.seen(seen.ulid).pk, "SK": "SEEN", "badge": BADGE}))
    for one in (stored, live, seen):
        send(file, one)
    assert [one["view"] for one in lines(file, "view")] == [live.ulid]


def test_a_view_of_an_earlier_life_in_the_queue_is_left_out(file: FileInstallation) -> None:
    put_summary(file.table, watermark=AT_NOON, reset=AT_NOON, version=1)
    put_summary(file.table, "alias", watermark=0, alias=BADGE, version=1)
    send(file, view(AT_NOON))
    send(file, view(AT_NOON, 1, "alias"))
    assert lines(file, "view") == []


def test_a_malformed_message_is_reported(file: FileInstallation) -> None:
    file.views_queue.send("malformed")
    with file.open_source() as source:
        [reason] = source.left_out
    assert reason.startswith("message 1 of vu-mi-views: expected")


def test_entries_that_wait_for_the_archive_move_as_its_objects(file: FileInstallation) -> None:
    entry = Entry(WALLET, Posting("nonce-01", 5, WALLET), AT_NOON)
    file.table.write(Put(entry.item(WALLET)))
    file.archive.put("journal/2026/03/01/x.jsonl.gz", gzip.compress(b'{"id":1}\n'))
    remove_expired(file.database, file.views_queue, lambda: 4e9, lambda: None)
    archived, waiting = lines(file, "object")
    assert archived["text"] == '{"id":1}\n'
    assert json.loads(waiting["text"])["id"] == WALLET
    other = MemoryInstallation(clock=Clock(NOON))
    restore(other, export(file))
    assert [one["id"] for one in other.archive.lines()] == [1, WALLET]


def test_an_object_that_can_not_be_read_is_named(file: FileInstallation) -> None:
    file.archive.put("journal/a.jsonl.gz", b"no gzip")
    with pytest.raises(ReportedError, match=r"journal/a.jsonl.gz of the archive can't be read"):
        export(file)


def test_an_item_of_no_known_kind_is_refused(file: FileInstallation) -> None:
    file.table.write(Put({"PK": "USER#a", "SK": "LATER#1"}))
    with pytest.raises(ReportedError, match="USER#a LATER#1: vu-mi writes no item"):
        export(file)


def test_events_that_wait_in_a_queue_move(file: FileInstallation) -> None:
    file.event_queue(QUEUE).send_all([Message("one"), Message("two")])
    with file.open_source() as source:
        assert list(source.queued_events) == [(QUEUE, "one"), (QUEUE, "two")]
    other = MemoryInstallation(clock=Clock(NOON))
    [kept, _] = restore(other, export(file))
    assert kept.reason == "EVENT_QUEUES has no queue mails here"


def test_the_first_line_has_the_settings_and_the_last_the_checksum(file: FileInstallation) -> None:
    put_views(file.table, AT_NOON)
    exported = export(file)
    first, *_, last = exported.splitlines(keepends=True)
    assert json.loads(first) == {
        "type": "header",
        "format": "vu-mi export",
        "version": 1,
        "exported_at": "2026-03-14T12:00:00Z",
        "engine": "one machine",
        "settings": {"view_window_seconds": 300, "grace_seconds": 600, "retention_seconds": 3600},
    }
    assert json.loads(last) == {
        "type": "end",
        "counts": {"badge": 1, "header": 1, "view": 1},
        "sha256": hashlib.sha256(exported.removesuffix(last)).hexdigest(),
    }
