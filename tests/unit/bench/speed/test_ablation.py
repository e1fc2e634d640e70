"""The ablation: it finds every optimization that it removes."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from bench.speed.ablation import STEPS


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    yield
    patch.stopall()


@pytest.mark.parametrize("step", STEPS)
def test_an_optimization_can_be_removed(step: str) -> None:
    STEPS[step]()
