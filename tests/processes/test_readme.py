"""The commands and the lines to copy of README.md, run against a real server."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shlex
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
from tests.markdown_links import MARKDOWN
from tests.processes.programs import PATIENCE_SECONDS, Server, require, running, succeed
from vumi.cli.program import vumi
from vumi.folder import LOCK

EXAMPLE, SHIELDS = "views.example.com", "img.shields.io"
DEFAULT = "127.0.0.1:8000"
ANY = re.compile(r"\w*…")
"""The part of an output that differs each time."""
SHOWN = re.compile(r"views: [\d,]+( today · [\d,]+)?|[\d,]+ views? in \d+ days")
"""The title of a badge or of a chart that is no error."""
FENCES = [
    token
    for token in MARKDOWN.parse((ROOT / "README.md").read_text(encoding="utf-8"))
    if token.type == "fence"
]


def blocks(language: str) -> list[str]:
    return [token.content for token in FENCES if token.info == language]


def transcripts() -> list[tuple[list[str], list[str]]]:
    """Return the words of each command of the consoles, with the lines that it prints."""
    found = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *output = part.splitlines()
            found.append((shlex.split(line), output))
    return found


def commands(program: str) -> list[list[str]]:
    """Return the arguments of each command of a program in the blocks of a shell."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    words = [shlex.split(part, comments=True) for line in lines for part in line.split(" && ")]
    return [one[one.index(program) + 1 :] for one in words if program in one]


@contextmanager
def made(arguments: list[str], folder: Path, port: int) -> Iterator[Iterator[str]]:
    """Run `make run` in a terminal, with the packages of this environment; yield what it prints."""
    ours, its = pty.openpty()
    installed = Path(sys.prefix)
    process = subprocess.Popen(  # noqa: S603  our own words
        ["make", "--old-file", installed / "run.stamp", *arguments, f"VENV={installed}"],  # noqa: S607
        cwd=ROOT,
        env={**os.environ, "DATA": str(folder), "PORT": str(port), "NO_COLOR": "1"},
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
            yield (line.rstrip() for line in terminal)
        finally:
            watchdog.cancel()
            kill()
    # The server is a child of make's, and ends a moment after it.
    with (folder / LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def curl(arguments: list[str], port: int) -> list[str]:
    """Send a call to the server of this test; return the lines of the answer."""
    own = [one.replace(DEFAULT, f"127.0.0.1:{port}") for one in arguments]
    command = ("curl", "--silent", "--show-error", "--fail-with-body", "--noproxy", "*")
    return succeed(*command, *own).splitlines()


def test_the_transcripts_are_what_a_terminal_shows_and_a_killed_server_continues(
    tmp_path: Path,
) -> None:
    """The first transcript starts the server, and the others call it, in their order."""
    require("curl")
    (run, greeting), *calls = transcripts()
    assert run[0] == "make"
    assert {call[0] for call, _ in calls} == {"curl"}
    port = free_port()
    with made(run[1:], tmp_path, port) as printed:
        for expected, line in zip(greeting, printed, strict=False):
            here = expected.replace(DEFAULT, f"127.0.0.1:{port}")
            assert re.fullmatch(".+".join(map(re.escape, ANY.split(here))), line)
        assert [curl(call[1:], port) for call, _ in calls] == [output for _, output in calls]
    with running(tmp_path) as server:
        [badge_id] = {parse_qs(urlsplit(call[1]).query)["id"][0] for call, _ in calls}
        assert server.peek(badge_id) == len(calls)


@pytest.mark.parametrize("line", [line for one in blocks("markdown") for line in one.splitlines()])
def test_a_line_to_copy_is_answered_with_a_picture_that_is_no_error(
    line: str, server: Server
) -> None:
    [(text, url)] = re.findall(r"^!\[([^\]]+)\]\((https://[^)\s]+)\)$", line)
    parts = urlsplit(url)
    through_shields = parts.netloc == SHIELDS
    if through_shields:
        parts = urlsplit(parse_qs(parts.query)["url"][0])
    assert (parts.scheme, parts.netloc) == ("https", EXAMPLE)
    status, _, body = server.request(f"{parts.path}?{parts.query}")
    assert status == 200
    if through_shields:
        badge = json.loads(body)
        assert (badge["schemaVersion"], "isError" in badge) == (1, False)
    else:
        [title, *_] = re.findall("<title>(.*?)</title>", body.decode())
        assert SHOWN.fullmatch(title)
        assert text.split()[0] in body.decode()


def test_the_targets_of_make_and_the_commands_of_the_program_exist() -> None:
    """The help of a target names its variables, and the program takes the options."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = commands("make")
    assert targets
    for target, *variables in targets:
        [described] = re.findall(rf"^{target}:.*? ## (.*)$", makefile, re.MULTILINE)
        given = {variable.partition("=")[0] for variable in variables}
        assert given <= set(re.findall(r"\b[A-Z]+(?==)", described))
    for arguments in commands("vumi"):
        context = vumi.make_context("vumi", list(arguments))
        name, chosen, rest = vumi.resolve_command(context, arguments)
        assert chosen is not None
        chosen.make_context(name, rest, parent=context)
