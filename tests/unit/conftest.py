"""Fixtures: one SQLite file for the tests of the embedded engine, and no request under way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chalicelib import telemetry
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable


def pytest_runtest_setup() -> None:
    """Log lines have the name of the last request, which may be another test's."""
    telemetry.begin("vu-mi", None)


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
