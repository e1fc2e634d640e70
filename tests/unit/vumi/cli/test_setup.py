"""The commands `init`, which writes files for a service, and `settings`."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from simulation.environment import ROOT
from tests.unit.vumi.commands import Vumi
from vumi.cli.options import Invocation
from vumi.cli.setup import COMMON
from vumi.settings import known_settings

EXAMPLES = ROOT / "examples"
HOST = "badges.example.com"
SOCKET = "unix:/run/vumi/vumi.sock"


def code(text: str) -> list[str]:
    """Return the lines that are no comments."""
    return [line.strip() for line in text.splitlines() if not line.strip().startswith("#")]


def test_the_service_is_the_example_and_each_file_has_its_command(
    vumi: Vumi, tmp_path: Path
) -> None:
    out = tmp_path / "a setup"
    assert vumi("init", "--systemd", "--out", str(out)) == 0
    written = {path.name: path.read_text() for path in out.iterdir()}
    assert written == {path.name: path.read_text() for path in (EXAMPLES / "systemd").iterdir()}
    commands = code(vumi.out)
    installed = [line for line in commands if line.startswith("install ")]
    assert {re.findall(r"'.*/(.*)'", line)[0] for line in installed} == set(written)
    [secret, program, *others] = sorted(installed, key=lambda line: "644" in line)
    assert "--mode 600" in secret
    assert secret.endswith(" /etc/vu-mi/settings.toml")
    assert "--mode 755" in program
    assert program.endswith(" /usr/local/bin/vumi")
    assert all("--mode 644" in line and " /etc/systemd/system/" in line for line in others)
    assert commands[-1] == "systemctl enable --now vu-mi.service vu-mi-backup.timer"


@pytest.mark.parametrize(
    ("options", "file", "upstream"),
    [
        (["--caddy"], "Caddyfile", "{$UPSTREAM:127.0.0.1:8000} {"),
        (["--systemd", "--caddy"], "Caddyfile", "{$UPSTREAM:unix//run/vumi/vumi.sock} {"),
        (["--nginx"], "vu-mi.conf", "server 127.0.0.1:8000;"),
        (["--systemd", "--nginx"], "vu-mi.conf", f"server {SOCKET};"),
    ],
)
def test_a_proxy_serves_the_host_from_where_the_server_listens(
    vumi: Vumi, tmp_path: Path, options: list[str], file: str, upstream: str
) -> None:
    assert vumi("init", *options, "Views.Example.org", "--out", str(tmp_path)) == 0
    text = (tmp_path / file).read_text()
    example = (EXAMPLES / ("Caddyfile" if file == "Caddyfile" else "nginx.conf")).read_text()
    assert text.count("views.example.org") == example.count(HOST) > 0
    assert HOST not in text
    servers = [line for line in code(text) if re.match("reverse_proxy |server [^{]", line)]
    assert [line.removeprefix("reverse_proxy ") for line in servers] == [upstream]


@pytest.mark.parametrize(("proxy", "group"), [("--nginx", "www-data"), ("--caddy", "caddy")])
def test_the_group_of_the_proxy_may_connect(
    vumi: Vumi, tmp_path: Path, proxy: str, group: str
) -> None:
    assert vumi("init", "--systemd", proxy, HOST, "--out", str(tmp_path)) == 0
    units = "".join(path.read_text() for path in tmp_path.glob("vu-mi.s*"))
    assert set(re.findall(r"^(?:Socket|Supplementary)Groups?=(.*)$", units, re.MULTILINE)) == {
        group
    }


def test_an_existing_file_is_kept_and_nothing_is_written(vumi: Vumi, tmp_path: Path) -> None:
    unit = tmp_path / "vu-mi.service"
    unit.write_text("mine")
    assert vumi("init", "--systemd", "--out", str(tmp_path)) == 1
    assert vumi.err.startswith(f"Error: {unit} exists; ")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --systemd, --caddy HOST or --nginx HOST"),
        (["--caddy", HOST, "--nginx", HOST], "give one of --caddy HOST and --nginx HOST"),
        (["--caddy", f"https://{HOST}"], f"'https://{HOST}' is no host name like {HOST}"),
        (["--nginx", f"{HOST}; return"], "is no host name"),
        (["--nginx", f"{HOST}\n"], "is no host name"),
        (["--nginx", f"-{HOST}"], "is no host name"),
        (["--nginx", ".".join(["a" * 63] * 4)], "is no host name"),
    ],
)
def test_wrong_usage_names_what_to_give(
    vumi: Vumi, tmp_path: Path, arguments: list[str], message: str
) -> None:
    assert vumi("init", *arguments, "--out", str(tmp_path / "out")) == 2
    assert message in vumi.err
    assert not (tmp_path / "out").exists()


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
