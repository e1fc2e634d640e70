"""Fixtures: one SQLite file for the tests of the embedded engine, and no request under way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chalicelib import telemetry
from simulation.logs import logging_put_back
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable


@pytest.fixture(autouse=True)
def _restore_telemetry() -> Iterator[None]:
    """Keep a test's log levels, and the name of its last request, from the next test."""
    telemetry.begin("vu-mi", None)
    with logging_put_back():
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    database = Database(path)
    yield database
    database.close()


@pytest.fixture
def table(database: Database) -> SqliteTable:
    return SqliteTable(database)
