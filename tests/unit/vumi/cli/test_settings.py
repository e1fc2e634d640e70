"""The command `settings`: the settings in force, or the error of a wrong one."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from vumi.cli.options import Invocation
from vumi.cli.program import execute
from vumi.cli.settings import COMMON
from vumi.settings import known_settings


def run(*arguments: str, **environment: str) -> int:
    return execute(arguments, Invocation(environment, time.time))


def test_the_table_has_each_setting_its_value_and_its_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("PORT = 1")
    assert run("--settings", str(path), "settings", HOST="::1", SETTINGS="none.toml") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[:3] == [
        ["SETTING", "VALUE", "SOURCE"],
        ["HOST", "::1", "environment"],
        ["PORT", "1", str(path)],
    ]


def test_only_common_and_given_settings_are_printed_without_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for options, expected in (([], COMMON | {"HOT_VIEWS"}), (["--all"], {*known_settings()})):
        assert run("settings", "--json", *options, HOT_VIEWS="9") == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert found[0] == {"name": "HOST", "value": "127.0.0.1", "source": "default"}
        assert sorted(one["name"] for one in found) == sorted(expected)


def test_a_wrong_setting_is_the_error_of_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("GRACE_SECONDS = 0")
    outputs = []
    for command in ("settings", "serve"):
        assert run("--settings", str(path), command) == 1
        outputs.append(capsys.readouterr())
    message = f"{path}: GRACE_SECONDS must be a whole number from 1 to 86400, not '0'"
    assert outputs[0] == outputs[1] == ("", f"Error: {message}\n")
