"""The running app matches its description: schemathesis sends it generated requests."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chalicelib.http import tokens
from simulation.environment import ROOT
from simulation.storage import store_token
from tests.processes.programs import Server, running, succeed
from tests.profile import cases
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable

CONFIG = Path(__file__).with_name("schemathesis.toml")
LOOPBACK_ONLY = Path(__file__).with_name("loopback_only")
TOKEN, USERS_TOKEN = tokens.new_token(), tokens.new_token()
MAX_EXAMPLES = 100
"""Of the histories of links, at most."""
MAX_REQUESTS = 40
"""Of each operation that fuzzing generates, beside those that cover every limit."""
USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
"""The user whose wallet the description's example opens."""


def ask(server: Server, phases: str, examples: int, *more: str) -> str:
    """Run schemathesis against a new server, whose answers must be right; return its output.

    It is a process, because the requests that it makes depend on the modules of its process. Its
    environment has no more, because each request reads it all, in search of a proxy.
    """
    address = f"http://{server.host}:{server.port}/openapi.json"
    options = ("--phases", phases, "--max-examples", f"{examples}", "--no-color", *more)
    words = ("--config-file", str(CONFIG), "run", address, "--warnings", "off", *options)
    environment = {
        "COLUMNS": "100",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "API_TOKEN": TOKEN,
        "USERS_TOKEN": USERS_TOKEN,
    }
    return succeed(Path(sys.executable).with_name("schemathesis"), *words, env=environment)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Run a server that resolves no name and calls only loopback, because URLs are generated."""
    settings = {
        "API_TOKEN_DIGESTS": tokens.digest(TOKEN),
        "EVENT_QUEUES": "orders",
        "WEBHOOK_ALLOW": "127.0.0.0/8",
        "PYTHONPATH": str(LOOPBACK_ONLY),
    }
    with running(tmp_path, **settings) as server:
        with closing(Database(tmp_path / FILE)) as database:
            store_token(SqliteTable(database), USERS_TOKEN, USER)
        yield server


def test_each_route_matches_its_description(server: Server) -> None:
    few = cases(cases(MAX_REQUESTS))  # because all limits are covered before
    asked = ask(server, "examples,coverage,fuzzing", few)
    [(selected, known)] = re.findall(r"Selected: (\d+)/(\d+)", asked)
    [tested] = re.findall(r"Tested: (\d+)", asked)
    assert selected == known == tested


@pytest.mark.parametrize(
    "paths",
    [
        "badges",
        "events(/[^/]+)?$|timers",
        "wallets(/[^/]+(/(balance|badge|transactions))?)?$",
    ],
    ids=["badges", "events and timers", "wallets"],
)
def test_histories_of_calls_match_their_descriptions(server: Server, paths: str) -> None:
    """Schemathesis follows links after the examples: most of them, which chance decides.

    Hypothesis ends without an error when the state of the server changes a history that it repeats.
    """
    options = ("--include-path-regex", paths)
    asked = ask(server, "examples,stateful", cases(MAX_EXAMPLES), *options)
    [(covered, known)] = re.findall(r"API Links: +(\d+) covered / \d+ selected / (\d+)", asked)
    assert int(covered) > int(known) / 2
