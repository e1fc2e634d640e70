"""The lines of JSON that commands print for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation.views import put_summary
from tests.unit.vumi.commands import Vumi

NEW = "?"
"""Stands for a new secret."""


@pytest.fixture(autouse=True)
def _badge(vumi: Vumi) -> None:
    put_summary(vumi.memory, "a", base=10, count=5, version=1, created=1)


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
    vumi: Vumi, command: str, lines: list[dict[str, object]]
) -> None:
    found = vumi.json(*command.split())
    secret = {name for line in found for name, value in line.items() if len(str(value)) in {32, 43}}
    assert [line | dict.fromkeys(secret & line.keys(), NEW) for line in found] == lines


def test_an_import_is_read_by_a_program(vumi: Vumi, tmp_path: Path) -> None:
    counts, export = tmp_path / "counts.csv", str(tmp_path / "export.jsonl")
    counts.write_text("a,3\nb,4\n")
    assert vumi.json("import", str(counts), "--dry-run") == [
        {"id": "a", "outcome": "kept", "before": 10, "count": 3},
        {"imported": 1, "unchanged": 0, "replaced": 0, "kept": 1},
    ]
    assert vumi("export", export) == 0
    put_summary(vumi.memory, "a", count=1, version=1, created=9)
    assert vumi.json("import", export) == [
        {"kind": "badge", "name": "a", "kept": "it is here with other content"},
        {"kind": "badge", "kept": 1},
    ]


def test_a_token_is_revoked_for_a_program(vumi: Vumi) -> None:
    vumi.json("token", "create", "--name", "ci")
    [revoked] = vumi.json("token", "revoke", "ci")
    assert revoked["name"] == "ci"
