"""Fixtures: one SQLite file, and the program on an installation in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.vumi.commands import Vumi
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    database = Database(path)
    yield database
    database.close()


@pytest.fixture
def statements(database: Database) -> list[str]:
    """Collect the statements that the writing connection executes from now on."""
    found: list[str] = []
    database.write(lambda connection: connection.set_trace_callback(found.append))
    found.clear()
    return found


@pytest.fixture
def table(database: Database) -> SqliteTable:
    return SqliteTable(database)


@pytest.fixture
def vumi(capsys: pytest.CaptureFixture[str]) -> Vumi:
    return Vumi(capsys)
