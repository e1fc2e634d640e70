"""The commands `export` and `import` with the lines of an export, and with counts."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from chalicelib.owners import changing, claiming, finding
from chalicelib.owners.changing import BadgeChange
from simulation.clocks import NOON, Clock
from simulation.installation import MemoryInstallation, invoke_on
from simulation.views import AT_NOON, put_summary, put_views, shown
from tests.unit.vumi.commands import Vumi
from vumi.cli.options import Invocation
from vumi.cli.program import execute
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
