"""The five laws over generated histories, each from a seed that replays it.

`make laws` runs more of them.
"""

from __future__ import annotations

import pytest

from simulation.histories import AWS_SCENARIOS, MACHINE_SCENARIOS, MOTO, replay
from tests.profile import SHARE_OF_LAWS, cases

ON_AWS = 40
ON_ONE_MACHINE = 8


@pytest.mark.parametrize("kind", AWS_SCENARIOS)
def test_no_history_on_aws_breaks_a_law(kind: str) -> None:
    for seed in range(cases(ON_AWS, SHARE_OF_LAWS)):
        replay(kind, seed)


def test_no_history_on_dynamodb_breaks_a_law() -> None:
    """A few steps, because moto evaluates each expression slowly."""
    replay(MOTO, seed=0, steps=150)


@pytest.mark.parametrize("kind", MACHINE_SCENARIOS)
def test_no_history_on_one_machine_breaks_a_law(kind: str) -> None:
    for seed in range(cases(ON_ONE_MACHINE, SHARE_OF_LAWS)):
        replay(kind, seed)
