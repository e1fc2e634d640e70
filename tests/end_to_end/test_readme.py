"""The commands, the transcripts and the lines of README.md, run against a real server.

`tests/unit/test_readme.py` checks that each command and each figure has a check.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from simulation.environment import ROOT, free_port
from simulation.server_process import NotStartedError, killed
from tests import readme
from tests.end_to_end.documented_calls import DEFAULT, curl, to_pattern
from tests.end_to_end.server import PATIENCE_SECONDS, Server, running, start
from tests.readme import Command
from vumi.folder import LOCK

EXAMPLE, SHIELDS = "views.example.com", "img.shields.io"
SHOWN = re.compile(r"views: [\d,]+( today · [\d,]+)?|[\d,]+ views? in \d+ days")
"""The title of a badge or of a chart that is no error."""
TRANSCRIPTS = list(readme.transcripts())


@contextmanager
def made(command: Command, folder: Path, port: int) -> Iterator[list[str]]:
    """Run `make run` in a terminal, with the packages of this environment; yield what it prints."""
    ours, its = pty.openpty()
    installed = Path(sys.prefix)
    process = subprocess.Popen(  # noqa: S603  our own words
        [
            command.kind,
            "--old-file",
            installed / "run.stamp",
            *command.arguments,
            f"VENV={installed}",
        ],
        cwd=ROOT,
        env={**os.environ, "DATA": str(folder), "PORT": str(port)},
        stdout=its,
        start_new_session=True,
        text=True,
    )
    os.close(its)
    kill = partial(os.killpg, process.pid, signal.SIGKILL)
    watchdog = threading.Timer(PATIENCE_SECONDS, kill)
    watchdog.start()
    with process, os.fdopen(ours, encoding="utf-8") as terminal:
        try:
            yield [terminal.readline().rstrip() for _ in TRANSCRIPTS[0][1]]
        finally:
            watchdog.cancel()
            kill()
    # The server is a child of make's, and ends a moment after it.
    with (folder / LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")
def test_the_transcripts_are_what_a_terminal_shows_and_a_killed_server_continues(
    tmp_path: Path,
) -> None:
    """The first transcript starts the server, and the others call it, in their order."""
    (run, greeting), *calls = TRANSCRIPTS
    port = free_port()
    with made(run, tmp_path, port) as printed:
        for line, expected in zip(printed, greeting, strict=True):
            assert re.fullmatch(to_pattern(expected.replace(DEFAULT, f"127.0.0.1:{port}")), line)
        answers = [curl(call, {DEFAULT: f"127.0.0.1:{port}"}) for call, _ in calls]
    assert [answer.splitlines() for answer in answers] == [output for _, output in calls]
    with running(tmp_path) as server:
        [badge_id] = {parse_qs(urlsplit(call.arguments[0]).query)["id"][0] for call, _ in calls}
        assert server.peek(badge_id) == readme.continues_at()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """Return the server that the README starts behind a proxy."""
    [serve] = [command for command in readme.commands("vumi") if command.arguments[0] == "serve"]
    with killed(start(folder, *serve.arguments, **serve.variables)) as process:
        try:
            yield Server(process)
        except NotStartedError as error:
            error.add_note(process.communicate()[1])
            raise


@pytest.mark.parametrize("line", readme.markdown_lines())
def test_a_line_to_copy_is_answered_with_a_picture_that_is_no_error(
    line: str, server: Server
) -> None:
    [(text, url)] = re.findall(r"^!\[([^\]]+)\]\((https://[^)\s]+)\)$", line)
    parts = urlsplit(url)
    through_shields = parts.netloc == SHIELDS
    if through_shields:
        assert parts.path == "/endpoint"
        parts = urlsplit(parse_qs(parts.query)["url"][0])
    assert text
    assert (parts.scheme, parts.netloc) == ("https", EXAMPLE)
    status, headers, body = server.request(f"{parts.path}?{parts.query}")
    assert status == 200
    if through_shields:
        badge = json.loads(body)
        assert (badge["schemaVersion"], "isError" in badge) == (1, False)
    else:
        assert headers["Content-Type"].startswith("image/svg+xml")
        assert text.split()[0] in body.decode()
        assert not is_error(body.decode())


def is_error(svg: str) -> bool:
    """Return whether a badge or a chart shows an error instead of views."""
    [title, *_] = re.findall("<title>(.*?)</title>", svg)
    return not SHOWN.fullmatch(title)


def test_a_line_with_an_error_is_seen(server: Server) -> None:
    for path in ("/api/v1/views.svg?id=a&colour=red", "/api/v1/views/history.svg?id=a&days=no"):
        assert is_error(server.request(path)[2].decode())


def test_the_backup_of_the_running_server_is_made(
    server: Server, folder: Path, tmp_path: Path
) -> None:
    assert server.badge("octocat/hello")["message"].isdigit()
    [backup] = [command for command in readme.commands("vumi") if command.arguments[0] == "backup"]
    *options, where = backup.arguments
    assert where == "/backup"
    with killed(start(folder, *options, str(tmp_path))) as process:
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, errors) == (0, "")
    [made_backup] = tmp_path.iterdir()
    assert (made_backup / "vu-mi.sqlite3").is_file()


@pytest.mark.skipif(not shutil.which("caddy"), reason="there is no caddy")
def test_caddy_takes_its_configuration_with_the_site_and_the_upstream(tmp_path: Path) -> None:
    """`test_proxy_examples.py` serves badges through it."""
    [command] = readme.commands("caddy")
    run, *options = command.arguments
    assert run == "run"
    finished = subprocess.run(  # noqa: S603  our own words
        ["caddy", "adapt", "--adapter", "caddyfile", *options],  # noqa: S607
        cwd=ROOT,
        env={**os.environ, **command.variables, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    assert command.variables.keys() == {"SITE", "UPSTREAM"}
    assert all(f'"{value}"' in finished.stdout for value in command.variables.values())
