"""One SQLite file, as the tests of the embedded engine open it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.database import FILE, Database
from local.table import SqliteTable


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
