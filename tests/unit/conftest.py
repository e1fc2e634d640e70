"""Fixtures: a table in memory, the sums of metrics, and no request under way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chalicelib import telemetry
from chalicelib.storage.ports import Table
from simulation.logs import counting_metrics
from simulation.storage import MemoryTable
from tests.unit.http_requests import Api


def pytest_runtest_setup() -> None:
    """Log lines have the name of the last request, which may be another test's."""
    telemetry.begin("vu-mi", None)


@pytest.fixture
def table() -> Table:
    return MemoryTable()


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def counted() -> Iterator[dict[str, int]]:
    """Return the sums of the metrics by name."""
    with counting_metrics() as sums:
        yield sums.setdefault("vu-mi", {})
