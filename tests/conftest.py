"""The rules for all tests: no access to real AWS, a fixed seed for generated tests, and SIGINT."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from simulation.logs import logging_put_back
from tests import profile

os.environ.update(
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",  # noqa: S106  a name that no AWS account has
    AWS_DEFAULT_REGION="us-east-1",
)
os.environ.pop("AWS_REGION", None)  # it would replace the other name in `make`

# A shell starts commands in the background with SIGINT ignored, and their processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

profile.register()


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    """Keep a test's log levels and handlers from the next test."""
    with logging_put_back():
        yield
