"""The example of a receiver of webhooks, with those of a real server and with forged ones."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from chalicelib.events.sender import Signer, new_secret
from simulation.environment import ROOT
from simulation.server_process import request
from tests.processes.programs import PATIENCE_SECONDS, until
from tests.processes.server import TOKEN, WITH_TOKEN, running

PROGRAM = ROOT / "examples" / "webhook-receiver" / "receiver.py"
OLD, NEW = new_secret(), new_secret()
SETTINGS = WITH_TOKEN | {
    "WEBHOOK_ALLOW": "127.0.0.0/8",
    "WEBHOOK_SECRETS": NEW,
    "RETRY_SECONDS": "1",
}
BODY = b'{"n":1}'
STORED, REFUSED, TOO_LONG = 204, 401, 413


class Receiver:
    """A running receiver. Its lines say which webhooks it has handled."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        greeting = self.line()
        [port] = re.findall(r"^listening on http://127\.0\.0\.1:(\d+)/$", greeting)
        self.port = int(port)

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().rstrip("\n")

    def post(self, headers: Mapping[str, str], body: bytes = BODY) -> int:
        return request(("127.0.0.1", self.port), "/", "POST", body, headers)[0]

    def sign(self, webhook_id: str, secret: str = NEW, age: int = 0, body: bytes = BODY) -> int:
        """Post a webhook that was signed some seconds ago."""
        headers = Signer([secret]).headers(webhook_id, int(time.time()) - age, body)
        return self.post(headers, body)


@contextmanager
def receiving(inbox: Path) -> Iterator[Receiver]:
    """Run a receiver that knows both secrets, and kill it at the end."""
    own = {"WEBHOOK_SECRETS": f"{NEW},{OLD}", "PORT": "0", "INBOX": str(inbox)}
    process = subprocess.Popen(  # noqa: S603  a program of this project
        [sys.executable, str(PROGRAM)],
        env=os.environ | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            yield Receiver(process)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with receiving(tmp_path_factory.mktemp("inbox") / "inbox.db") as started:
        yield started


def test_an_event_is_accepted_at_its_first_attempt_and_handled(
    tmp_path: Path, receiver: Receiver
) -> None:
    target = {"url": f"http://127.0.0.1:{receiver.port}/"}
    wanted = {"delay": 0, "target": target, "payload": {"say": "Grüße"}, "id": "hello"}
    with running(tmp_path, **SETTINGS) as server:
        assert server.ask("POST", "/api/v1/events", wanted, TOKEN)[0] == 201
        assert receiver.line() == 'hello: {"say": "Gr\\u00fc\\u00dfe"}'

        def ended() -> Any:
            event = server.ask("GET", "/api/v1/events/hello", token=TOKEN)[1]
            return event["status"] != "ACTIVE" and event

        event = until(ended)
    [attempt] = event["attempts"]
    assert (event["status"], attempt["status"]) == ("SUCCESS", STORED)


def test_what_is_forged_old_or_malformed_is_refused_and_not_handled(receiver: Receiver) -> None:
    now = int(time.time())
    signed = Signer([NEW]).headers("forged", now, BODY)
    assert receiver.sign("another-secret", new_secret()) == REFUSED
    assert receiver.post(signed, b'{"n":2}') == REFUSED
    assert receiver.post(signed | {"webhook-id": "other"}) == REFUSED
    assert receiver.sign("old", age=301) == REFUSED
    assert receiver.sign("ahead", age=-330) == REFUSED
    assert receiver.post({}) == REFUSED
    for signature in ("v1", "v1,=", "v1,é", "v2,AAAA", "v1," + "A" * 44):
        encoded = {"webhook-signature": signature.encode().decode("latin-1")}
        assert receiver.post(signed | encoded) == REFUSED
    assert receiver.sign("binary", body=b"\xff") == REFUSED
    assert receiver.post({"Content-Length": "99999999999"}) == TOO_LONG
    assert receiver.sign("genuine") == STORED
    assert receiver.line() == 'genuine: {"n": 1}'


def test_after_a_kill_a_webhook_is_handled_if_it_was_not_before(tmp_path: Path) -> None:
    """The handler fails at the webhook, whose body is no JSON, until it is mended."""
    inbox = tmp_path / "inbox.db"
    with receiving(inbox) as receiver, closing(sqlite3.connect(inbox)) as database:
        assert [receiver.sign("broken", body=b"{"), receiver.sign("whole")] == [STORED, STORED]
        assert receiver.line() == 'whole: {"n": 1}'
        waiting = "SELECT id FROM inbox WHERE NOT handled"
        until(lambda: list(database.execute(waiting)) == [("broken",)])
        with database:
            database.execute("UPDATE inbox SET body = ? WHERE NOT handled", (BODY,))
        receiver.process.kill()
        receiver.process.wait(PATIENCE_SECONDS)
    with receiving(inbox) as receiver:
        assert receiver.line() == 'broken: {"n": 1}'
        assert [receiver.sign("whole"), receiver.sign("last")] == [STORED, STORED]
        assert receiver.line() == 'last: {"n": 1}'
