"""What the tests of events share: both engines, an event, and a resolver."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moto import mock_aws

from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.aws.resources import aws_client
from chalicelib.events.delivery import Firing
from chalicelib.events.event import Event, Kind, Target
from chalicelib.events.webhooks.urls import Record
from chalicelib.storage.ports import Table
from tests.aws import create_table
from tests.unit.fakes import NOON, sqlite_table

AT = int(NOON * 1000)
ENGINES = ["sqlite", "moto"]


@contextmanager
def table_on(engine: str, folder: Path) -> Iterator[Table]:
    """A real table of an engine."""
    if engine == "sqlite":
        with sqlite_table(folder) as opened:
            yield opened
        return
    with mock_aws():
        client = aws_client("dynamodb")
        create_table(client, "timers")
        yield DynamoTable(client, "timers")
        client.close()


def fire(firing: Firing, event: Event) -> None:
    """Attempt a claimed event and settle it, as a worker does."""
    if attempted := firing.attempt(event):
        firing.settle(attempted)


def an_event(name: str = "e", at: int = AT, request: str = "") -> Event:
    """An event for the log, accepted at noon."""
    return Event(name, at, AT, Target(Kind.LOG), '"hello"', request or f"{name} at {at}")


class Names:
    """A resolver: each question is answered by the next of its answers, and the last for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.asked: list[tuple[str, int]] = []
        self._answers = list(answers)

    def __call__(self, host: str, port: int, **options: Any) -> list[Record]:
        assert options == {"type": socket.SOCK_STREAM}
        self.asked.append((host, port))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        family = socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port)) for address in answer]
