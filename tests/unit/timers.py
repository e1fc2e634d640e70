"""What the tests of events share: both engines, and an event."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moto import mock_aws

from chalicelib.dynamodb import DynamoTable
from chalicelib.ports import Table
from chalicelib.resources import aws_client
from chalicelib.timers.event import Event, Kind, Target
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


def an_event(name: str = "e", at: int = AT, request: str = "") -> Event:
    """An event for the log, accepted at noon."""
    return Event(name, at, AT, Target(Kind.LOG), '"hello"', request or f"{name} at {at}")
