"""The command `settings`: the settings in force, or the error of a wrong one."""

from __future__ import annotations

import time
from pathlib import Path

from tests.unit.vumi.commands import Vumi
from vumi.cli.options import Invocation
from vumi.cli.setup import COMMON
from vumi.settings import known_settings


def run(vumi: Vumi, *arguments: str, **environment: str) -> int:
    vumi.invocation = Invocation(environment, time.time)
    return vumi(*arguments)


def test_the_table_has_each_setting_its_value_and_its_source(vumi: Vumi, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("PORT = 1")
    assert run(vumi, "--settings", str(path), "settings", HOST="::1", SETTINGS="none.toml") == 0
    rows = [line.split() for line in vumi.out.splitlines()]
    assert rows[:3] == [
        ["SETTING", "VALUE", "SOURCE"],
        ["HOST", "::1", "environment"],
        ["PORT", "1", str(path)],
    ]


def test_only_common_and_given_settings_are_printed_without_all(vumi: Vumi) -> None:
    for options, expected in (([], COMMON | {"HOT_VIEWS"}), (["--all"], {*known_settings()})):
        vumi.invocation = Invocation({"HOT_VIEWS": "9"}, time.time)
        found = vumi.json("settings", *options)
        assert found[0] == {"name": "HOST", "value": "127.0.0.1", "source": "default"}
        assert sorted(one["name"] for one in found) == sorted(expected)


def test_a_wrong_setting_is_the_error_of_the_server(vumi: Vumi, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("GRACE_SECONDS = 0")
    outputs = []
    for command in ("settings", "serve"):
        assert run(vumi, "--settings", str(path), command) == 1
        outputs.append((vumi.out, vumi.err))
    message = f"{path}: GRACE_SECONDS must be a whole number from 1 to 86400, not '0'"
    assert outputs[0] == outputs[1] == ("", f"Error: {message}\n")
