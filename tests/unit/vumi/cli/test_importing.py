"""The import of counts: its report, and what `--from` asks, prints, imports and refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chalicelib.settings import Settings
from chalicelib.storage.errors import UnavailableError
from simulation.clocks import NOON, FakeTime
from simulation.loopback import Answer, SilentHandler, answering
from simulation.memory_table import MemoryTable
from simulation.tables import FaultyTable, raising
from simulation.views import put_summary, shown
from tests.unit.vumi.commands import Vumi
from vumi.cli import importing
from vumi.operate.admin.counts_file import ImportedCount
from vumi.operate.admin.importing import Import

COUNTS = {"/record/@demo": 4_321, "/record/@other": 7, "/record/@long": 5, "/record/@endless": 6}
PADDING = {"/record/@long": 1_000_000, "/record/@endless": 1_100_000}
"""The bytes of a history beside the count."""


@contextmanager
def counter() -> Iterator[tuple[str, list[str]]]:
    """Run a copy of Moe-Counter on loopback; give its address, and the paths it was asked for."""
    asked: list[str] = []

    def respond(request: SilentHandler) -> Answer:
        asked.append(request.path)
        found = COUNTS.get(request.path)
        body = {"num": found, "all": "x" * PADDING.get(request.path, 0)}
        return 200 if found else 500, json.dumps(body).encode(), {}

    with answering(respond) as url:
        yield url, asked


@pytest.fixture(autouse=True)
def _allow_loopback(vumi: Vumi) -> None:
    vumi.installation.settings = Settings(webhook_allow="127.0.0.0/8")


def run(vumi: Vumi, *arguments: str) -> int:
    return vumi("import", "--from", "moe-counter", *arguments)


def test_counts_become_the_bases_of_badges_and_are_read_once(vumi: Vumi) -> None:
    with counter() as (address, asked):
        assert run(vumi, "demo", "@other", "--at", address, "--yes") == 0
    assert asked == ["/record/@demo", "/record/@other"]
    assert [shown(vumi.table, one) for one in ("@demo", "@other")] == [4_321, 7]
    assert vumi.out == (
        "moe-counter shows 4,321 for demo, which is @demo here\n"
        "moe-counter shows 7 for @other, which is @other here\n"
        "2 imported\n0 unchanged\n0 replaced\n0 kept\n"
    )


def test_a_dry_run_reads_and_changes_nothing(vumi: Vumi) -> None:
    with counter() as (address, _):
        options = ("--at", address, "--yes", "--dry-run")
        assert run(vumi, "demo", "--as", "octocat/hello", *options) == 0
    assert shown(vumi.table, "octocat/hello") == 0
    assert vumi.out == (
        "moe-counter shows 4,321 for demo, which is octocat/hello here\n"
        "dry run: nothing was changed; without --dry-run:\n"
        "1 imported\n0 unchanged\n0 replaced\n0 kept\n"
    )


def test_another_base_is_kept_unless_it_is_to_be_replaced(vumi: Vumi) -> None:
    put_summary(vumi.table, "@demo", base=9_000, version=1, created=1)
    with counter() as (address, _):
        assert run(vumi, "demo", "--at", address, "--yes") == 0
        assert "@demo kept: its base is 9,000, and the import has 4,321\n" in vumi.out
        assert shown(vumi.table, "@demo") == 9_000
        assert run(vumi, "demo", "--at", address, "--yes", "--replace") == 0
    assert shown(vumi.table, "@demo") == 4_321
    assert "@demo replaced: its base was 9,000, and the import has 4,321\n" in vumi.out


def test_what_could_not_be_read_is_named_after_the_others_are_imported(vumi: Vumi) -> None:
    with counter() as (address, _):
        assert run(vumi, "gone", "demo", "lost", "--at", address, "--yes") == 1
    assert shown(vumi.table, "@demo") == 4_321
    assert vumi.err == (
        "Error: moe-counter has not given the count of gone: answered 500;"
        " moe-counter has not given the count of lost: answered 500\n"
    )


def test_an_answer_may_have_a_long_history_but_no_endless_one(vumi: Vumi) -> None:
    with counter() as (address, _):
        assert run(vumi, "long", "endless", "--at", address, "--yes") == 1
    assert shown(vumi.table, "@long") == 5
    assert "count of endless: the response can't be read to its end" in vumi.err


def test_a_service_that_counts_readings_is_read_only_if_the_operator_agrees(vumi: Vumi) -> None:
    with counter() as (address, asked):
        assert run(vumi, "demo", "--at", address) == 2
    assert asked == []
    assert vumi.out == "moe-counter counts a view for each reading of a count.\n"
    assert "give --yes, because there is no terminal to ask on" in vumi.err


def test_a_private_address_is_called_only_if_the_operator_allows_it(vumi: Vumi) -> None:
    vumi.installation.settings = Settings()
    with counter() as (address, asked):
        assert run(vumi, "demo", "--at", address, "--yes") == 1
    assert asked == []
    assert "not called: the URL must begin with https://" in vumi.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("demo other --as x --yes", "--as takes one NAME, not 2"),
        ("demo @demo --yes", "@demo and demo are both @demo here; import one of them"),
        ("demo --as", "Option '--as' requires an argument"),
        ("--yes", "give a FILE, or names with --from, or --leancloud FILE"),
    ],
)
def test_a_wrong_use_reads_nothing(vumi: Vumi, arguments: str, says: str) -> None:
    assert run(vumi, *arguments.split()) == 2
    assert says in vumi.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("- --as x", "--as and --at need --from, because a file has its own ids"),
        ("- --at https://a.example", "--as and --at need --from"),
        ("a.csv b.csv", "give one FILE, not 2; names need --from"),
        ("--from seeyoufarm a", "'seeyoufarm' is not one of 'komarev'"),
    ],
)
def test_options_of_names_are_refused_for_a_file(vumi: Vumi, arguments: str, says: str) -> None:
    assert vumi("import", *arguments.split()) == 2
    assert says in vumi.err


@pytest.mark.parametrize(
    "more", ["--leancloud x.jsonl", "--site me.example", "--leancloud x --site y"]
)
def test_an_export_of_leancloud_needs_its_site_and_nothing_else(vumi: Vumi, more: str) -> None:
    assert run(vumi, *more.split()) == 2
    assert "--leancloud FILE --site ID" in vumi.err


# ---- the report

ROWS = [ImportedCount(line, f"b{line}", line) for line in range(1, 251)]


def test_the_report_counts_every_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    table = MemoryTable()
    importing.run(ROWS, Import(table, map, lambda: NOON))
    changed = [ImportedCount(7, "b7", 70), *ROWS[:3]]
    importing.run(changed, Import(table, map, lambda: NOON))
    out, err = capsys.readouterr()
    assert out == (
        "250 imported\n0 unchanged\n0 replaced\n0 kept\n"
        "b7 kept: its base is 7, and the import has 70\n"
        "0 imported\n3 unchanged\n0 replaced\n1 kept\n"
    )
    assert err == ""


@pytest.mark.parametrize(
    ("failures", "reason"),
    [
        ([UnavailableError("throttled")] * 9, "throttled"),
        ([KeyboardInterrupt()], "it was interrupted"),
    ],
)
def test_a_failed_or_interrupted_import_says_how_far_it_came_and_how_to_continue(
    failures: list[BaseException], reason: str
) -> None:
    faulty = FaultyTable(MemoryTable(), before_write=raising(*[None] * 100, *failures))
    job = Import(faulty, map, lambda: NOON, patience=FakeTime().retry(attempts=2))
    with pytest.raises(importing.InterruptedImportError) as cut:
        importing.run(ROWS, job)
    assert str(cut.value) == (
        f"the import stopped after 100 of 250 badges: {reason}; run it again to import the rest"
    )
