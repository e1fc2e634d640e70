"""Owners: they repeat each request until it succeeds, and the history has the whole time."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from chaos.checker import history
from chaos.checker.history import Kind, Outcome, Recorder
from chaos.driver.owners import DIGEST, Owners


class Badges(HTTPServer):
    """A server that answers with these statuses in turn, and then always with success."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.statuses: list[int] = []
        self.asked: list[tuple[str, str, object]] = []
        self.enough = threading.Event()


class Answering(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Badges

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = (self.command, self.path, json.loads(body) if body else None)
        self.server.asked.append(asked)
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if len(self.server.asked) >= 4:
            self.server.enough.set()
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_PATCH = do_DELETE = _answer

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[Badges]:
    with Badges() as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_reset_is_retried_until_it_succeeds_and_is_one_operation(
    server: Badges, tmp_path: Path
) -> None:
    """The claim succeeds immediately, the reset at the third try."""
    server.statuses = [201, 503, 503]
    recorder = Recorder(tmp_path / "owners")
    owners = Owners("127.0.0.1", server.server_port, "seed", ["a b"], recorder)
    assert server.enough.wait(30)
    owners.stop()
    recorder.close()

    claim, *resets = server.asked
    assert claim == ("POST", "/api/v1/badges", {"id": "a b", "digest": DIGEST})
    assert set(map(str, resets)) == {str(("PATCH", "/api/v1/badges/a%20b", {"reset": True}))}
    first = history.read(tmp_path / "owners")[0]
    assert (first.badge_id, first.kind, first.outcome) == ("a b", Kind.RESET, Outcome.ACKNOWLEDGED)
    assert owners.wrong == []


def test_an_unexpected_response_is_reported(server: Badges, tmp_path: Path) -> None:
    server.statuses = [409, 201, 403, 403]
    recorder = Recorder(tmp_path / "owners")
    owners = Owners("127.0.0.1", server.server_port, "seed", ["a", "b"], recorder)
    assert server.enough.wait(30)
    owners.stop()
    recorder.close()

    assert owners.wrong[0] == "POST /api/v1/badges: 409 b''"
    assert "403" in owners.wrong[1]
    assert history.read(tmp_path / "owners")[0].outcome is Outcome.UNKNOWN
