"""The running app does what its description says: schemathesis asks it all that it can think of."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.server import ROOT, Server, running

CONFIG = Path(__file__).with_name("schemathesis.toml")


def ask(server: Server, phases: str, *more: str) -> subprocess.CompletedProcess[str]:
    """What schemathesis says of a server; it asks a new one the same in every run."""
    st = Path(sys.executable).with_name("st").absolute()
    address = f"http://{server.host}:{server.port}/openapi.json"
    return subprocess.run(  # noqa: S603  our own words
        [st, "--config-file", CONFIG, "run", address, "--phases", phases, "--no-color", *more],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path) as server:
        yield server


def test_each_route_does_what_its_description_says(server: Server) -> None:
    asked = ask(server, "examples,coverage,fuzzing")
    assert asked.returncode == 0, asked.stdout + asked.stderr
    [(selected, known)] = re.findall(r"Selected: (\d+)/(\d+)", asked.stdout)
    [tested] = re.findall(r"Tested: (\d+)", asked.stdout)
    assert selected == known == tested


def test_a_badge_does_from_its_claim_to_its_end_what_its_description_says(
    server: Server, tmp_path: Path
) -> None:
    """By the links of the description: with its secret a badge was claimed, changed, deleted."""
    record = tmp_path / "asked.har"
    asked = ask(server, "stateful", "--report-har-path", str(record))
    assert asked.returncode == 0, asked.stdout + asked.stderr
    exchanges = json.loads(record.read_text())["log"]["entries"]
    seen = {(one["request"]["method"], one["response"]["status"]) for one in exchanges}
    assert seen >= {("POST", 201), ("PATCH", 200), ("DELETE", 204), ("GET", 200)}


def test_nothing_is_switched_off_without_a_reason() -> None:
    """In the file of its settings a comment stands above what differs."""
    text = CONFIG.read_text()
    for part in re.split(r"^\[", text, flags=re.MULTILINE)[1:]:
        assert "\n# " in part
    assert {*tomllib.loads(text)} == {"hooks", "cache", "generation", "operations"}
