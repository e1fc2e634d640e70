"""The commands `export` and `import`, with the lines of an export, counts, and other counters."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from chalicelib.owners import changing, claiming, finding
from chalicelib.owners.changing import BadgeChange
from chalicelib.settings import Settings
from chalicelib.storage.errors import UnavailableError
from simulation.clocks import NOON, Clock, FakeTime
from simulation.installation import MemoryInstallation, invoke_on
from simulation.loopback import Answer, SilentHandler, answering
from simulation.storage import FaultyTable, MemoryTable, raising
from simulation.views import AT_NOON, put_summary, put_views, shown
from tests.unit.vumi.commands import Vumi
from vumi.cli import importing
from vumi.cli.options import Invocation
from vumi.cli.program import execute
from vumi.errors import ReportedError
from vumi.operate.admin.counts import Import, ImportedCount
from vumi.storage.database import FILE
from vumi.tokens import TokenStore


@pytest.fixture
def full(vumi: Vumi) -> Vumi:
    put_summary(vumi.memory, "a", base=10, count=5, version=1, created=1)
    put_views(vumi.memory, AT_NOON, AT_NOON + 1, badge_id="a")
    put_summary(vumi.memory, 'b, "2"', count=1, version=1, created=1)
    put_summary(vumi.memory, "gone", deleted="x", version=1, created=1)
    return vumi


@pytest.fixture
def other(capsys: pytest.CaptureFixture[str]) -> Vumi:
    return Vumi(capsys)


@pytest.mark.parametrize("name", ["export.jsonl", "export.jsonl.gz"])
def test_an_export_is_imported(full: Vumi, other: Vumi, name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    assert full("export", str(file)) == 0
    assert full.err == ("exported 3 lines of the type badge\nexported 2 lines of the type view\n")
    assert (file.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")
    assert list(tmp_path.iterdir()) == [file]
    assert other("import", str(file), "--dry-run") == 0
    assert other.out == "dry run: nothing was changed; without --dry-run:\nbadge: 3 imported\n"
    assert other.memory.items == {}
    assert other("import", str(file)) == 0
    assert other.out == "badge: 3 imported\n"
    assert shown(other.memory, "a") == 17


def test_tokens_are_imported_only_with_their_option(
    full: Vumi, other: Vumi, tmp_path: Path
) -> None:
    file = str(tmp_path / "export.jsonl")
    TokenStore(full.memory, full.clock).create("ci")
    assert [full("export", file), other("import", file)] == [0, 0]
    assert "exported 1 line of the type token, which only import --tokens imports\n" in full.err
    assert "token: 1 left out: --tokens imports them\n" in other.out
    assert TokenStore(other.memory, other.clock).read_all() == []
    assert other("import", "--tokens", file) == 0
    assert [token.name for token in TokenStore(other.memory, other.clock).read_all()] == ["ci"]


def test_what_is_kept_is_named_and_fails_the_import(full: Vumi, tmp_path: Path) -> None:
    file = str(tmp_path / "export.jsonl")
    full("export", file)
    put_summary(full.memory, "a", count=1, version=1, created=9)
    assert full("import", file) == 1
    assert full.out == (
        "badge a is kept: it is here with other content\nbadge: 2 here already\nbadge: 1 kept\n"
    )
    assert full.err.startswith("Error: 1 group not imported, and what is here stays: to have all")
    assert full("import", file, "--replace") == 2
    assert "--replace is for counts" in full.err


def test_an_export_never_overwrites_a_file(full: Vumi, tmp_path: Path) -> None:
    file = tmp_path / "there"
    file.write_text("mine")
    assert full("export", str(file)) == 1
    assert full.err == f"Error: {file} exists; give another name\n"
    assert file.read_text() == "mine"


def test_a_failed_export_leaves_no_file(full: Vumi, tmp_path: Path) -> None:
    full.memory.put_all([{"PK": "USER#a", "SK": "UNKNOWN"}, {"PK": "LATER#1", "SK": "LATER"}])
    assert full("export", str(tmp_path / "x")) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_counts_go_to_any_counter(full: Vumi, other: Vumi, tmp_path: Path) -> None:
    claiming.claim(full.memory, "c", 0, NOON, "0" * 64)
    owned = finding.look_up(full.memory, "c")
    changing.change(full.memory, owned, BadgeChange(name="d", base=3), NOON)
    file = tmp_path / "counts.csv"
    assert full("export", "--counts", str(file)) == 0
    assert full.err == "exported 4 counts\n"
    assert file.read_text() == 'id,count\na,17\n"b, ""2""",1\nc,3\nd,3\n'
    assert other("import", str(file)) == 0
    assert shown(other.memory, "a") == 17


def test_standard_input_and_output_are_files_too(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    full, other = MemoryInstallation(clock=Clock(NOON)), MemoryInstallation(clock=Clock(NOON))
    put_summary(full.memory, "a", count=17, version=1, created=1)
    assert execute(["export", "-"], invoke_on(full)) == 0
    exported = capfdbinary.readouterr().out
    given = SimpleNamespace(buffer=io.BytesIO(gzip.compress(exported)))
    monkeypatch.setattr(sys, "stdin", given)
    assert execute(["import", "-"], invoke_on(other)) == 0
    assert shown(other.memory, "a") == 17


@pytest.mark.parametrize("content", [b"\x1f\x8bno gzip", b'{"type":"header"}\n', b"{", b"a,b,c"])
def test_any_other_file_is_refused(vumi: Vumi, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert vumi("import", str(file)) == 1
    assert str(file) in vumi.err
    assert vumi("import", str(tmp_path / "missing")) == 1
    assert "does not exist" in vumi.err


def test_an_export_is_imported_into_a_new_file_and_only_there(
    full: Vumi, other: Vumi, tmp_path: Path
) -> None:
    file, data = str(tmp_path / "export.jsonl"), tmp_path / "new" / "data"
    full("export", file)
    other.invocation = Invocation({"DATA": str(data)}, Clock(NOON))
    assert other("import", file) == 1
    assert other("import", "--new", file, "--dry-run") == 2
    assert not data.exists()
    assert other("import", "--new", file) == 0
    assert data.stat().st_mode & 0o777 == 0o700
    with other.invocation.open_installation(None) as installation:
        assert shown(installation.table, "a") == 17
    assert other("import", "--new", file) == 1
    assert other.err == f"Error: {data / FILE} exists already; import into it without --new\n"


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


def run(vumi: Vumi, *arguments: str) -> int:
    vumi.installation.settings = Settings(webhook_allow="127.0.0.0/8")
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
    """An answer may have a long history, but no endless one."""
    with counter() as (address, _):
        assert run(vumi, "gone", "long", "endless", "--at", address, "--yes") == 1
    assert shown(vumi.table, "@long") == 5
    failed = "moe-counter has not given the count of"
    endless = "the response can't be read to its end, or is longer than 1024 KiB"
    assert vumi.err == f"Error: {failed} gone: answered 500; {failed} endless: {endless}\n"


def test_a_service_that_counts_readings_is_read_only_if_the_operator_agrees(vumi: Vumi) -> None:
    with counter() as (address, asked):
        assert run(vumi, "demo", "--at", address) == 2
    assert asked == []
    assert vumi.out == "moe-counter counts a view for each reading of a count.\n"
    assert "give --yes, because there is no terminal to ask on" in vumi.err


def test_a_private_address_is_called_only_if_the_operator_allows_it(vumi: Vumi) -> None:
    with counter() as (address, asked):
        assert vumi("import", "--from", "moe-counter", "demo", "--at", address, "--yes") == 1
    assert asked == []
    assert "not called: the URL must begin with https://" in vumi.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--from moe-counter demo other --as x --yes", "--as takes one NAME, not 2"),
        ("--from moe-counter demo @demo --yes", "@demo and demo are both @demo here; import one"),
        ("--from moe-counter --yes", "give a FILE, or names with --from, or --leancloud FILE"),
        ("--from seeyoufarm a", "'seeyoufarm' is not one of 'komarev'"),
        ("- --as x", "--as and --at need --from, because a file has its own ids"),
        ("- --at https://a.example", "--as and --at need --from"),
        ("a.csv b.csv", "give one FILE, not 2; names need --from"),
        ("--leancloud x.jsonl", "--leancloud FILE --site ID"),
        ("- --site me.example", "--leancloud FILE --site ID"),
        ("--from moe-counter --leancloud x --site y", "--leancloud FILE --site ID"),
    ],
)
def test_a_wrong_use_reads_nothing(vumi: Vumi, arguments: str, says: str) -> None:
    assert vumi("import", *arguments.split()) == 2
    assert says in vumi.err


# ---- the report

ROWS = [ImportedCount(line, f"b{line}", line) for line in range(1, 251)]


def test_a_failed_import_says_how_far_it_came_and_how_to_continue() -> None:
    failures = [*[None] * 100, *[UnavailableError("throttled")] * 9]
    faulty = FaultyTable(MemoryTable(), before_write=raising(*failures))
    job = Import(faulty, map, lambda: NOON, patience=FakeTime().retry(attempts=2))
    stopped = "importing 250 badges stopped after 100: throttled; run it again for the rest"
    with pytest.raises(ReportedError, match=stopped):
        importing.run(ROWS, job)
