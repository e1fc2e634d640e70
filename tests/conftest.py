"""The rules for all tests: no access to real AWS, and a fixed seed for generated tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from simulation.logs import logging_put_back
from tests import profile

os.environ.update(
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",  # noqa: S106  a name that no AWS account has
    AWS_DEFAULT_REGION="us-east-1",
)

profile.register()


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    """Keep a test's log levels and handlers from the next test."""
    with logging_put_back():
        yield
