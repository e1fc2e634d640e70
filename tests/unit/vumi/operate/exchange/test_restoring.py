"""The import of an export: what it writes, what it keeps, and its continuation after an end."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from chalicelib.counting import bans, keys
from chalicelib.counting.bans import Ban
from chalicelib.events.event import Status, batch
from chalicelib.settings import Settings
from chalicelib.storage.errors import StorageError, UnavailableError
from chalicelib.storage.items import Item
from chalicelib.storage.writes import Update
from chalicelib.units import Seconds
from chalicelib.wallets.ledger import Ledger
from chalicelib.wallets.wallet import Posting
from simulation.clocks import NOON, Clock, FakeTime
from simulation.exchange_world import export, outcomes, restore
from simulation.faults import Crash
from simulation.installation import MemoryInstallation
from simulation.storage import FakeQueue, FaultyTable, once, raising
from simulation.views import AT_NOON, BADGE, fold, put_summary, put_views, shown, store, view
from tests.profile import cases
from tests.unit.vumi.operate.exchange.test_hostile_files import EVENT, WALLET, file_of
from vumi.errors import ReportedError
from vumi.operate.exchange import files
from vumi.operate.exchange.restoring import LISTED_ITEMS, Restore, RestoreOutcome

IMPORTED, SAME, KEPT = RestoreOutcome.IMPORTED, RestoreOutcome.SAME, RestoreOutcome.KEPT
OTHER_CONTENT = "it is here with other content"


def empty(now: Seconds = NOON, **parts: Any) -> MemoryInstallation:
    return MemoryInstallation(clock=Clock(now), **parts)


def full(*times: int) -> MemoryInstallation:
    """Return an installation with one badge, an owner, a day and live views."""
    made = empty()
    put_summary(made.memory, version=3, created=1, count=2, watermark=AT_NOON - 1)
    made.memory.put_all(
        [
            {"PK": "USER#octocat", "SK": "DAY#2026-03-13", "views": 2, "h01": 2, "version": 2},
            {"PK": "USER#octocat", "SK": "OWNER", "digest": "0" * 64, "created": 1},
        ]
    )
    put_views(made.memory, *times)
    return made


def put_wallet(installation: MemoryInstallation, last: str = "") -> None:
    wallet: Item = {"user": "u", "balance": 5, "last": last, "created": 1}
    installation.memory.put_all([{"PK": f"WALLET#{WALLET}", "SK": "WALLET", **wallet}])


def test_each_ban_is_imported_for_itself() -> None:
    """All are in one partition, but none is a part of another."""
    one, other = empty(), empty()
    for installation, patterns in ((one, "abc"), (other, "ab")):
        for pattern in patterns:
            bans.put(installation.table, Ban(pattern, "", "a test", 0))
    bans.put(other.table, Ban("b", "spam", "a test", 0))
    restored = restore(other, export(one))
    assert {(one.kind, one.name): (one.outcome, one.reason) for one in restored} == {
        ("ban", "a"): (SAME, ""),
        ("ban", "b"): (KEPT, OTHER_CONTENT),
        ("ban", "c"): (IMPORTED, ""),
    }
    assert [one.pattern for one in bans.read_all(other.table)] == [*"abc"]


@pytest.mark.parametrize("late", [2_000_000, -100])
def test_live_views_are_kept_and_folded_by_the_marker_of_the_latest(late: int) -> None:
    """They are kept from the import on, or from their own times if the clock is behind."""
    other = empty(NOON + late)
    restore(other, export(full(AT_NOON, AT_NOON + 1, AT_NOON + 400_000)))
    mark, now = int(NOON) + 600, int(NOON) + late
    [marker] = [item for item in other.items() if item["SK"] == keys.WINDOW]
    assert (marker["PK"], marker["ttl"]) == (f"WINDOW#{mark}#octocat", max(mark, now) + 600)
    views = [item for item in other.items() if str(item["SK"]).startswith(keys.VIEW)]
    marks = {now + 100} if late > 0 else {int(NOON) + 300, mark}
    assert {one["ttl"] for one in views} == {one + Settings().retention_seconds for one in marks}


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


@pytest.mark.parametrize("number", [1, 150, LISTED_ITEMS, LISTED_ITEMS + 250])
def test_a_badge_is_imported_once_and_adds_to_the_views_that_it_has_here(number: int) -> None:
    one, other = full(*range(AT_NOON, AT_NOON + number)), empty()
    put_summary(one.memory, "z", count=1, version=1, created=1)
    put_views(other.memory, AT_NOON + 5_000)
    before = dict(other.memory.items)
    assert outcomes(restore(other, export(one), dry_run=True)) == {IMPORTED}
    assert other.memory.items == before
    assert outcomes(restore(other, export(one))) == {IMPORTED}
    assert shown(other.memory) == 2 + number + 1
    assert other.memory.get(keys.owner("octocat")) == one.memory.get(keys.owner("octocat"))
    before = dict(other.memory.items)
    assert outcomes(restore(other, export(one))) == {SAME}
    assert other.memory.items == before
    put_summary(other.memory, count=1, version=9, created=5)
    assert [one.outcome for one in restore(other, export(one))] == [KEPT, SAME]


def test_what_is_here_with_other_content_stays_and_is_named() -> None:
    one, other = full(AT_NOON), empty()
    put_wallet(one, "01ARZ3NDEKTSV4RRFFQ69G5FAA")
    restore(other, export(one))
    assert other.memory.items[("OWNER#u", "WALLET")]["wallet"] == WALLET  # type: ignore[index]
    assert store(other.memory, view(AT_NOON + 9, 5)) == {}
    fold(other.memory, NOON + 2_000)
    Ledger(other.memory, lambda: 4e9).post(Posting("nonce-01", 2, WALLET))
    before = dict(other.memory.items)
    kept = restore(other, export(one))
    assert {one.outcome for one in kept} == {KEPT}
    assert [(one.kind, one.name, one.reason) for one in kept] == [
        ("badge", "octocat", OTHER_CONTENT),
        ("wallet", WALLET, OTHER_CONTENT),
    ]
    assert other.memory.items == before


def test_a_second_wallet_of_a_user_is_kept_out() -> None:
    one, other = empty(), empty()
    put_wallet(one)
    other.memory.put_all([{"PK": "OWNER#u", "SK": "WALLET", "wallet": "01" + "B" * 24}])
    [kept] = restore(other, export(one))
    assert kept.reason == f"the user u has the wallet 01{'B' * 24} here"


def test_an_active_event_is_enqueued_once() -> None:
    queue = FakeQueue()
    other = empty(delivery_queue=queue)
    done = {**EVENT, "id": "d", "status": "SUCCESS", "batch": batch(Status.SUCCESS, "d")}
    for outcome in (IMPORTED, SAME):
        assert outcomes(restore(other, file_of(EVENT, done))) == {outcome}
        assert queue.bodies == ['{"event": "e"}']


def test_a_queued_event_is_sent_to_its_queue() -> None:
    mails = FakeQueue()
    other = empty(event_queues={"mails": mails})
    line = {"type": "queued event", "queue": "mails", "body": "hello"}
    assert outcomes(restore(other, file_of(line), dry_run=True)) == {IMPORTED}
    assert mails.bodies == []
    restore(other, file_of(line))
    assert mails.bodies == ["hello"]


def test_a_badge_that_is_claimed_during_its_import_is_kept() -> None:
    other = empty()
    claim = once(lambda: put_summary(other.memory, version=1, created=5))
    other.faulty = FaultyTable(other.memory, before_write=claim)
    assert outcomes(restore(other, export(full(AT_NOON)))) == {KEPT}
    assert other.memory.get(keys.owner("octocat")) is None


DAY = {"type": "day", "id": "a", "day": "2026-03-14", "views": 0}


@pytest.mark.parametrize(
    ("exported", "reason"),
    [
        (file_of(DAY), "line 2: the day is of no badge"),
        (file_of(version=2), "has version 2 of the format, and this program reads 1: use a newer"),
        (file_of(version="1"), "its version is '1', not a whole number"),
        (b"{}\n", "its first line has no such format"),
    ],
    ids=["no badge", "newer", "text", "no format"],
)
def test_a_file_of_another_form_is_refused(exported: bytes, reason: str) -> None:
    with pytest.raises(ReportedError, match=reason):
        restore(empty(), exported)


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
        with pytest.raises(ReportedError, match="FILE is cut or was changed"):
            restore(other, wrong)
    assert other.memory.items == {}


@settings(max_examples=cases(30), phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_an_import_cut_short_anywhere_and_run_again_is_exact(data: st.DataObject) -> None:
    """Writes fail before or after they take effect; visitors come in between."""
    one = full(*range(AT_NOON, AT_NOON + data.draw(st.sampled_from([3, 200, 1_200]))))
    put_summary(one.memory, "b", count=7, version=1, created=2)
    put_wallet(one)
    exported, target, visits = export(one), empty(), 0
    for _ in range(data.draw(st.integers(1, 3))):
        fault = st.sampled_from([None, None, UnavailableError("no"), Crash()])
        plans = [data.draw(st.lists(fault, max_size=6)) for _ in range(4)]
        faults: list[Any] = [raising(*plan) for plan in plans]
        target.faulty = FaultyTable(target.memory, *faults)
        job = Restore(target, patience=FakeTime().retry(attempts=2))
        with suppress(StorageError, Crash):
            list(job.run(files.read("FILE", BytesIO(exported))))
        found = target.memory.items.keys()
        assert keys.summary(BADGE) in found or keys.owner(BADGE) not in found
        visits += 1
        assert store(target.memory, view(AT_NOON + visits, 9_999 + visits)) == {}
    target.faulty = None
    assert KEPT not in outcomes(restore(target, exported))
    assert shown(target.memory) == shown(one.memory) + visits
    assert target.memory.items.keys() >= one.memory.items.keys()
    assert outcomes(restore(target, exported)) == {SAME}
