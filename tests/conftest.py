"""The rules for all tests: no access to real AWS, a fixed seed, SIGINT, logging and garbage."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator

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


# Collecting makes no garbage to speak of, and what it makes stays until the end.
gc.disable()


def pytest_collection_finish() -> None:
    """Let the garbage collections of tests skip all that was made until now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


# A hook, because an autouse fixture takes a quarter of a millisecond in each of thousands of tests.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Keep a test's log levels and handlers from the next test."""
    with logging_put_back():
        return (yield)
