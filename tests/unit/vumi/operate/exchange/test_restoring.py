"""The import of an export: what it writes, what it keeps, and its continuation after an end."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from chalicelib.counting import keys
from chalicelib.events.event import Status, batch
from chalicelib.settings import Settings
from chalicelib.storage.errors import StorageError, Unavailable
from chalicelib.storage.items import Item
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Update
from chalicelib.units import Seconds
from chalicelib.wallets.ledger import Ledger
from chalicelib.wallets.wallet import Posting
from simulation.clocks import NOON, Clock, FakeTime
from simulation.exchange_world import export, outcomes, restore
from simulation.installation import MemoryInstallation
from simulation.memory_table import MemoryTable
from simulation.queues import FakeQueue
from simulation.tables import FaultyTable, once, raising
from simulation.views import (
    AT_NOON,
    BADGE,
    days,
    fold,
    put_summary,
    put_views,
    shown,
    store,
    ulid,
    view,
)
from tests.profile import cases
from vumi.errors import ReportedError
from vumi.operate.exchange import files
from vumi.operate.exchange.restoring import (
    LISTED_ITEMS,
    Restore,
    RestoreOutcome,
)
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable, all_items

IMPORTED, SAME, NEWER, KEPT, REPLACED = (
    RestoreOutcome.IMPORTED,
    RestoreOutcome.SAME,
    RestoreOutcome.NEWER,
    RestoreOutcome.KEPT,
    RestoreOutcome.REPLACED,
)
EVENT = {
    "type": "event",
    "id": "e",
    "at": AT_NOON + 5_000,
    "created": AT_NOON,
    "kind": "log",
    "address": "",
    "payload": "1",
    "request": "0",
    "status": "ACTIVE",
    "next_at": AT_NOON + 5_000,
    "batch": batch(Status.ACTIVE, "e"),
    "due": AT_NOON + 5_000,
}


def empty(now: Seconds = NOON, **parts: Any) -> MemoryInstallation:
    return MemoryInstallation(clock=Clock(now), **parts)


def full(*times: int, **summary: Any) -> MemoryInstallation:
    """Return an installation with one badge, an owner, a day and live views."""
    made = empty()
    put_summary(made.memory, version=3, created=1, count=2, watermark=AT_NOON - 1, **summary)
    made.memory.put_all(
        [
            {"PK": "USER#octocat", "SK": "DAY#2026-03-13", "views": 2, "h01": 2, "version": 2},
            {"PK": "USER#octocat", "SK": "OWNER", "digest": "0" * 64, "created": 1},
        ]
    )
    put_views(made.memory, *times)
    return made


def file_of(*lines: dict[str, Any], version: object = 1) -> bytes:
    """Return an export of lines."""
    out = BytesIO()
    writer = files.LineWriter(out)
    writer.write({"type": "header", "format": "vu-mi export", "version": version})
    for line in lines:
        writer.write(line)
    writer.end()
    return out.getvalue()


def test_live_views_get_the_markers_that_fold_them() -> None:
    late = 2_000_000
    other = empty(NOON + late)
    restore(other, export(full(AT_NOON, AT_NOON + 1, AT_NOON + 400_000)))
    markers = [item for item in other.items() if item["SK"] == keys.WINDOW]
    assert [(one["PK"], one["ttl"]) for one in markers] == [
        (f"WINDOW#{int(NOON) + mark}#octocat", int(NOON) + late + 600) for mark in (300, 600)
    ]
    views = [item for item in other.items() if str(item["SK"]).startswith(keys.VIEW)]
    mark = int(NOON) + late + 100
    assert {one["ttl"] for one in views} == {mark + Settings().retention_seconds}


def test_a_young_view_is_kept_from_its_own_time_on() -> None:
    other = empty(NOON - 100)
    restore(other, export(full(AT_NOON)))
    [marker] = [item for item in other.items() if item["SK"] == keys.WINDOW]
    assert marker["ttl"] == NOON + 300 + 600


@pytest.mark.parametrize(("watermark", "times"), [(-1, [0, 7_200_000]), (7_200_000, [])])
def test_a_badge_from_a_clock_that_was_ahead_raises_the_clock_of_views(
    watermark: int, times: list[int]
) -> None:
    """All times are in milliseconds after noon."""
    one, other = full(*(AT_NOON + at for at in times)), empty()
    values = {"watermark": AT_NOON + watermark}
    one.memory.write(Update(keys.summary(BADGE), values=values))
    exported = export(one)
    restore(other, exported, dry_run=True)
    assert other.view_times == []
    restore(other, exported)
    assert [NOON + 7_200 < at < NOON + 7_201 for at in other.view_times] == [True]
    restore(later := empty(NOON + 7_201), exported)
    assert later.view_times == []


def test_an_import_again_changes_nothing_and_adds_views_that_came() -> None:
    one, other = full(AT_NOON), empty()
    assert outcomes(restore(other, export(one))) == {IMPORTED}
    before = dict(other.memory.items)
    assert outcomes(restore(other, export(one))) == {SAME}
    assert other.memory.items == before
    put_views(one.memory, AT_NOON, AT_NOON + 7)
    assert outcomes(restore(other, export(one))) == {IMPORTED}
    assert shown(other.memory) == shown(one.memory) == 4


def test_a_badge_that_went_on_here_is_kept_even_with_replace() -> None:
    one, other = full(AT_NOON), empty()
    restore(other, export(one))
    assert store(other.memory, view(AT_NOON + 9, 5)) == {}
    fold(other.memory, NOON + 2_000)
    for replace in (False, True):
        assert outcomes(restore(other, export(one), replace=replace)) == {NEWER}
    assert shown(other.memory) == 4


def test_a_badge_with_other_content_is_kept_unless_replaced() -> None:
    one, other = full(AT_NOON), empty()
    put_summary(other.memory, count=50, version=9, created=77)
    other.memory.put_all([{"PK": "USER#octocat", "SK": "DAY#2020-01-01", "views": 50, "h00": 50}])
    put_views(other.memory, AT_NOON + 5)
    before = dict(other.memory.items)
    [kept] = restore(other, export(one))
    assert (kept.outcome, kept.reason) == (KEPT, "it is here with other content")
    assert other.memory.items == before
    assert outcomes(restore(other, export(one), replace=True, dry_run=True)) == {REPLACED}
    assert other.memory.items == before
    assert outcomes(restore(other, export(one), replace=True)) == {REPLACED}
    assert shown(other.memory) == 3
    assert set(days(other.memory)) == {"2026-03-13"}


def test_another_owner_with_the_same_summary_is_other_content() -> None:
    one, other = full(), empty()
    restore(other, export(one))
    one.memory.put_all([{"PK": "USER#octocat", "SK": "OWNER", "digest": "1" * 64, "created": 1}])
    assert outcomes(restore(other, export(one))) == {KEPT}
    assert outcomes(restore(other, export(one), replace=True)) == {REPLACED}
    assert other.memory.get(keys.owner("octocat")) == one.memory.get(keys.owner("octocat"))


def test_a_later_state_of_the_same_badge_needs_replace() -> None:
    one, other = full(AT_NOON), empty()
    restore(other, export(one))
    fold(one.memory, NOON + 2_000)
    assert outcomes(restore(other, export(one))) == {KEPT}
    assert outcomes(restore(other, export(one), replace=True)) == {REPLACED}
    assert other.memory.get(keys.summary("octocat")) == one.memory.get(keys.summary("octocat"))


def test_a_visit_before_the_import_stays_on_top() -> None:
    other = empty()
    put_views(other.memory, AT_NOON + 3)
    assert outcomes(restore(other, export(full(AT_NOON)))) == {IMPORTED}
    assert shown(other.memory) == 4


def test_a_dry_run_writes_nothing() -> None:
    other = empty()
    assert outcomes(restore(other, export(full(AT_NOON)), dry_run=True)) == {IMPORTED}
    assert other.memory.items == {}


@pytest.mark.parametrize("number", [150, LISTED_ITEMS, LISTED_ITEMS + 250])
def test_a_badge_of_many_items_is_imported_and_replaced(number: int) -> None:
    one, other = full(*range(AT_NOON, AT_NOON + number)), empty()
    assert outcomes(restore(other, export(one))) == {IMPORTED}
    assert shown(other.memory) == 2 + number
    assert len([item for item in other.items() if item["SK"] == keys.WINDOW]) == 1
    put_summary(other.memory, count=1, version=3, created=5)
    put_views(other.memory, *range(AT_NOON + 10_000, AT_NOON + 10_300))
    assert outcomes(restore(other, export(one), replace=True)) == {REPLACED}
    assert shown(other.memory) == 2 + number


def wallet(installation: MemoryInstallation, last: str, balance: int, user: str = "u") -> None:
    pk = "WALLET#01ARZ3NDEKTSV4RRFFQ69G5FAV"
    installation.memory.put_all(
        [{"PK": pk, "SK": "WALLET", "user": user, "balance": balance, "last": last, "created": 1}]
    )


def test_a_wallet_names_its_user_and_is_kept_if_it_went_on_here() -> None:
    one, other = empty(), empty()
    wallet(one, "01ARZ3NDEKTSV4RRFFQ69G5FAA", 5)
    assert outcomes(restore(other, export(one))) == {IMPORTED}
    assert other.memory.items[("OWNER#u", "WALLET")]["wallet"] == "01ARZ3NDEKTSV4RRFFQ69G5FAV"  # type: ignore[index]
    Ledger(other.memory, lambda: 4e9).post(Posting("nonce-01", 2, "01ARZ3NDEKTSV4RRFFQ69G5FAV"))
    assert outcomes(restore(other, export(one), replace=True)) == {NEWER}
    wallet(other, "01ARZ3NDEKTSV4RRFFQ69G5F00", 9)
    assert outcomes(restore(other, export(one))) == {KEPT}
    assert outcomes(restore(other, export(one), replace=True)) == {REPLACED}


def test_a_second_wallet_of_a_user_is_kept_out() -> None:
    one, other = empty(), empty()
    wallet(one, "", 0)
    other.memory.put_all([{"PK": "OWNER#u", "SK": "WALLET", "wallet": "01" + "B" * 24}])
    [kept] = restore(other, export(one), replace=True)
    assert kept.reason == f"the user u has the wallet 01{'B' * 24} here"


def test_an_active_event_is_enqueued_and_a_done_one_here_is_kept() -> None:
    queue = FakeQueue()
    other = empty(delivery_queue=queue)
    assert outcomes(restore(other, file_of(EVENT))) == {IMPORTED}
    assert queue.bodies == ['{"event": "e"} after 5.0 s']
    done = {**EVENT, "status": "SUCCESS", "tries": 1, "batch": batch(Status.SUCCESS, "e")}
    assert outcomes(restore(other, file_of(done))) == {KEPT}
    assert outcomes(restore(other, file_of(done), replace=True)) == {REPLACED}
    assert outcomes(restore(other, file_of(EVENT), replace=True)) == {NEWER}
    another = {**EVENT, "request": "1"}
    assert outcomes(restore(other, file_of(another))) == {KEPT}
    assert len(queue.bodies) == 1


def test_a_queued_event_is_sent_to_its_queue() -> None:
    mails = FakeQueue()
    other = empty(event_queues={"mails": mails})
    line = {"type": "queued event", "queue": "mails", "body": "hello"}
    assert outcomes(restore(other, file_of(line), dry_run=True)) == {IMPORTED}
    assert mails.bodies == []
    restore(other, file_of(line))
    assert mails.bodies == ["hello"]


def test_a_badge_that_changes_during_its_import_is_read_again() -> None:
    one, other = full(AT_NOON), empty()
    claim = once(lambda: put_summary(other.memory, version=1, created=5))

    class Claimed(MemoryInstallation):
        """Somebody claims the badge before its first write."""

        @property
        def table(self) -> Table:
            return table

    table = FaultyTable(other.memory, before_write=claim)
    claimed = Claimed(other.memory, clock=other.clock)
    assert outcomes(restore(claimed, export(one))) == {KEPT}
    assert other.memory.get(keys.owner("octocat")) is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"type": "later"}, "line 2 can't be imported: its type 'later' is unknown; use a newer"),
        ({"type": "badge"}, "line 2 can't be imported: a badge needs the texts id"),
        ({"type": "badge", "id": "a", "count": -1}, "its count is -1; it must be 0 or more"),
        ({"type": "badge", "id": "a", "count": "1"}, "count is '1', expected a whole number"),
        ({"type": "day", "id": "a", "day": "2026-03-14"}, "line 2: the day is of no badge"),
        ({"type": "badge", "id": "a", "base": [None]}, "a table holds str, int"),
        ({"type": "badge", "id": "a", "count": 1.5}, "its number 1.5 is not whole"),
        ({"type": "object", "name": "a"}, "it needs the texts name and text"),
    ],
)
def test_a_wrong_line_is_reported_with_its_reason(line: dict[str, Any], reason: str) -> None:
    with pytest.raises(ReportedError) as refused:
        restore(empty(), file_of(line))
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (2, "it has version 2 of the format, and this program reads 1: use a newer vu-mi"),
        ("1", "its version is '1', not a whole number"),
    ],
)
def test_a_newer_format_is_refused(version: object, reason: str) -> None:
    with pytest.raises(files.ExportFileError, match=reason):
        restore(empty(), file_of(version=version))


def test_a_cut_or_changed_file_is_refused_before_any_line_is_used() -> None:
    exported = export(full(AT_NOON))
    some = exported.splitlines(keepends=True)
    other = empty()
    for wrong in (
        exported[:-10],
        b"".join(some[:-1]),
        exported.replace(b'"count":2', b'"count":3'),
        b"".join([*some[:2], *some[3:]]),
        exported + b"\n",
    ):
        with pytest.raises(files.ExportFileError, match="FILE is cut or was changed"):
            restore(other, wrong)
    with pytest.raises(files.ExportFileError, match="its first line has no such format"):
        restore(other, b"{}\n")
    assert other.memory.items == {}


class Killed(Exception):
    """The process ends here."""


class Failing(MemoryInstallation):
    """An installation whose writes fail by a plan."""

    faulty: Table

    @property
    def table(self) -> Table:
        return self.faulty


@settings(max_examples=cases(30), phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_an_import_cut_short_anywhere_and_run_again_is_exact(data: st.DataObject) -> None:
    """Writes fail before or after they take effect; visitors come in between."""
    one = full(*range(AT_NOON, AT_NOON + data.draw(st.sampled_from([3, 200, 1_200]))))
    put_summary(one.memory, "b", count=7, version=1, created=2)
    wallet(one, "", 0)
    exported = export(one)
    target = Failing(MemoryTable(), clock=Clock(NOON))
    visits = 0
    for _ in range(data.draw(st.integers(1, 3))):
        fault = st.sampled_from([None, None, Unavailable("no"), Killed()])
        plans = [data.draw(st.lists(fault, max_size=6)) for _ in range(4)]
        target.faulty = FaultyTable(target.memory, *[_step(plan) for plan in plans])
        job = Restore(target, patience=FakeTime().retry(attempts=2))
        with suppress(StorageError, Killed):
            list(job.run(files.read("FILE", BytesIO(exported))))
        visits += 1
        assert store(target.memory, view(AT_NOON + visits, 9_999 + visits)) == {}
    target.faulty = target.memory
    assert KEPT not in outcomes(restore(target, exported))
    assert shown(target.memory) == shown(one.memory) + visits
    assert target.memory.items.keys() >= one.memory.items.keys()
    assert outcomes(restore(target, exported)) == {SAME}


def _step(plan: Sequence[Exception | None]) -> Any:
    return raising(*plan)


def test_an_import_that_is_killed_continues(tmp_path: Path) -> None:
    """The process is killed with SIGKILL as soon as the first commits are in the file."""
    lines: list[dict[str, Any]] = []
    for number in range(6_000):
        lines.append({"type": "badge", "id": f"b{number}", "count": number, "version": 1})
        lines.append({"type": "view", "id": f"b{number}", "view": ulid(AT_NOON, number)})
    file = tmp_path / "export.jsonl"
    file.write_bytes(file_of(*lines))
    Database(tmp_path / FILE).close()
    command = [sys.executable, "-m", "vumi", "import", str(file)]
    environment = {**os.environ, "DATA": str(tmp_path)}
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        process = subprocess.Popen(command, env=environment)  # noqa: S603  our own program
        while not connection.execute("SELECT 1 FROM items LIMIT 1").fetchone():
            assert process.poll() is None
            time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = len(_items_in(tmp_path))
    assert 0 < before < 18_000
    out = subprocess.check_output(command, env=environment, text=True)  # noqa: S603
    assert out == f"badge: {6_000 - before // 3:,} imported\nbadge: {before // 3:,} unchanged\n"
    assert len(_items_in(tmp_path)) == 18_000
    database = Database(tmp_path / FILE)
    table = SqliteTable(database)
    assert [shown(table, f"b{number}") for number in (0, 3_000, 5_999)] == [1, 3_001, 6_000]
    database.close()


def _items_in(folder: Path) -> list[Item]:
    database = Database(folder / FILE)
    found = list(all_items(database))
    database.close()
    return found


def test_the_checksum_is_that_of_all_lines_before_the_last() -> None:
    *lines, last = export(full(AT_NOON)).splitlines(keepends=True)
    assert json.loads(last) == {
        "type": "end",
        "counts": {"badge": 1, "day": 1, "header": 1, "owner": 1, "view": 1},
        "sha256": hashlib.sha256(b"".join(lines)).hexdigest(),
    }
