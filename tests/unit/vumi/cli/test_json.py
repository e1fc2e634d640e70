"""The lines of JSON that commands print for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simulation.clocks import NOON, Clock
from simulation.installation import MemoryInstallation, invoke_on
from simulation.views import put_summary
from vumi.cli.program import execute

NEW = "?"
"""Stands for a new secret."""


@pytest.fixture
def installation() -> MemoryInstallation:
    made = MemoryInstallation(clock=Clock(NOON))
    put_summary(made.memory, "a", base=10, count=5, version=1, created=1)
    return made


def run(
    installation: MemoryInstallation, capsys: pytest.CaptureFixture[str], *arguments: str
) -> list[dict[str, object]]:
    capsys.readouterr()
    execute([*arguments, "--json"], invoke_on(installation))
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("claim a", [{"id": "a", "secret": NEW}]),
        (f"claim a --digest {'0' * 64}", [{"id": "a", "secret": None}]),
        ("token create --name ci", [{"name": "ci", "token": NEW}]),
        ("fold a", [{"badges": 1, "views": 0, "not_folded": 0}]),
        ("redrive", [{"sent": 0, "too_old": 0, "malformed": 0}]),
        ("redrive-events x", [{"id": "x", "outcome": "unknown", "error": ""}]),
    ],
)
def test_a_result_is_read_by_a_program(
    installation: MemoryInstallation,
    command: str,
    lines: list[dict[str, object]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = run(installation, capsys, *command.split())
    secret = {name for line in found for name, value in line.items() if len(str(value)) in {32, 43}}
    assert [line | dict.fromkeys(secret & line.keys(), NEW) for line in found] == lines


def test_an_import_is_read_by_a_program(
    installation: MemoryInstallation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts, export = tmp_path / "counts.csv", str(tmp_path / "export.jsonl")
    counts.write_text("a,3\nb,4\n")
    assert run(installation, capsys, "import", str(counts), "--dry-run") == [
        {"id": "a", "outcome": "kept", "before": 10, "count": 3},
        {"imported": 1, "unchanged": 0, "replaced": 0, "kept": 1},
    ]
    assert execute(["export", export], invoke_on(installation)) == 0
    put_summary(installation.memory, "a", count=1, version=1, created=9)
    assert run(installation, capsys, "import", export) == [
        {"kind": "badge", "name": "a", "kept": "it is here with other content"},
        {"kind": "badge", "kept": 1},
    ]


def test_a_token_is_revoked_for_a_program(
    installation: MemoryInstallation, capsys: pytest.CaptureFixture[str]
) -> None:
    run(installation, capsys, "token", "create", "--name", "ci")
    [revoked] = run(installation, capsys, "token", "revoke", "ci")
    assert revoked["name"] == "ci"
