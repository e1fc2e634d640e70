"""The engines that every test of a port runs over.

`AWS_ENDPOINT_URL` adds the DynamoDB, SQS and S3 at that URL.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from chalicelib.aws.clients import S3Archive, aws_client
from chalicelib.aws.json_client import Connections, endpoint_of, json_client
from chalicelib.aws.sqs import SqsQueue
from chalicelib.storage.ports import Archive, Queue, Table
from chalicelib.storage.writes import ConditionFailedError, Write
from simulation.aws_table import endpoint_client, moto_client, new_table
from simulation.storage import MemoryTable, sqlite_table
from vumi.storage.archive import FolderArchive
from vumi.storage.database import FILE, Database
from vumi.storage.queue import SqliteQueue

ENGINES = ["sqlite", "moto", *(["endpoint"] if "AWS_ENDPOINT_URL" in os.environ else [])]


@dataclass(frozen=True)
class QueueUnderTest:
    """A queue, and a function that takes the bodies of all deliverable messages."""

    queue: Queue
    take_all: Callable[[], list[str]]


@dataclass(frozen=True)
class ArchiveUnderTest:
    """An archive, and a function that reads all objects by their names."""

    archive: Archive
    read_all: Callable[[], dict[str, bytes]]


def succeeds(table: Table, *writes: Write) -> bool:
    """Write, and return whether all conditions held."""
    try:
        table.write(*writes)
    except ConditionFailedError:
        return False
    return True


@dataclass(frozen=True)
class Clients:
    """The clients of a running engine, which all tests of a module share."""

    engine: str
    made: dict[str, Any] = field(default_factory=dict)

    def of(self, service: str) -> Any:
        """Return the client of a service."""
        if service not in self.made:
            make = aws_client if self.engine == "moto" else endpoint_client
            self.made[service] = make(service)
        return self.made[service]

    @contextmanager
    def of_functions(self, service: str) -> Iterator[Any]:
        """Make the client that Lambda functions have."""
        client = self.of(service)
        if self.engine == "moto":
            yield moto_client(service, client)
            return
        url = endpoint_of(service, client.meta.region_name, os.environ)
        with closing(Connections(url, client.meta.config.read_timeout)) as patient:
            yield json_client(service, os.environ, time.time, patient.post)


@pytest.fixture(scope="module", params=ENGINES)
def clients(request: pytest.FixtureRequest) -> Iterator[Clients]:
    yield from _running(request.param)


@pytest.fixture(scope="module", params=[*ENGINES, "memory"])
def table_clients(request: pytest.FixtureRequest) -> Iterator[Clients]:
    yield from _running(request.param)


def _running(engine: str) -> Iterator[Clients]:
    with mock_aws() if engine == "moto" else nullcontext():
        clients = Clients(engine)
        yield clients
        for client in clients.made.values():
            client.close()


@pytest.fixture
def table(table_clients: Clients, tmp_path: Path) -> Iterator[Table]:
    with ExitStack() as stack:
        if table_clients.engine == "sqlite":
            yield stack.enter_context(sqlite_table(tmp_path))
        elif table_clients.engine == "memory":
            yield MemoryTable()
        else:
            client = table_clients.of("dynamodb")
            sender = stack.enter_context(table_clients.of_functions("dynamodb"))
            yield stack.enter_context(new_table(client, sender))


@pytest.fixture
def queue(clients: Clients, tmp_path: Path) -> Iterator[QueueUnderTest]:
    with ExitStack() as stack:
        if clients.engine == "sqlite":
            database = stack.enter_context(closing(Database(tmp_path / FILE)))
            local = SqliteQueue(database, "conformance", lambda: 0.0)
            yield QueueUnderTest(local, lambda: [m.body for m in local.receive(100)])
            return
        client = clients.of("sqs")
        url = client.create_queue(QueueName=f"conformance-{uuid.uuid4()}")["QueueUrl"]
        ours = SqsQueue(stack.enter_context(clients.of_functions("sqs")), url)
        yield QueueUnderTest(ours, lambda: _take_all(client, url))
        client.delete_queue(QueueUrl=url)


@pytest.fixture
def archive(clients: Clients, tmp_path: Path) -> Iterator[ArchiveUnderTest]:
    if clients.engine == "sqlite":
        folder = tmp_path / "archive"
        yield ArchiveUnderTest(FolderArchive(folder), lambda: _files(folder))
        return
    client = clients.of("s3")
    bucket = f"conformance-{uuid.uuid4()}"
    client.create_bucket(Bucket=bucket)
    yield ArchiveUnderTest(S3Archive(client, bucket), lambda: _objects(client, bucket))
    for name in _objects(client, bucket):
        client.delete_object(Bucket=bucket, Key=name)
    client.delete_bucket(Bucket=bucket)


def _files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def _objects(client: Any, bucket: str) -> dict[str, bytes]:
    listed = client.list_objects_v2(Bucket=bucket).get("Contents", [])
    return {
        one["Key"]: client.get_object(Bucket=bucket, Key=one["Key"])["Body"].read()
        for one in listed
    }


def _take_all(client: Any, url: str) -> list[str]:
    bodies: list[str] = []
    while True:
        answer = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0)
        if not answer.get("Messages"):
            return bodies
        bodies += [message["Body"] for message in answer["Messages"]]
