"""The laws over generated histories on DynamoDB Local, each from a seed that replays it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import settings

from simulation.aws_table import bare_table, endpoint_client, endpoint_table
from simulation.aws_world import AwsWorld
from simulation.histories import AWS_SCENARIOS
from tests.laws import test_events as events
from tests.laws import test_wallets as wallets

HISTORIES = 25
STEPS = 300


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    client = endpoint_client("dynamodb")
    yield client
    client.close()


@pytest.mark.parametrize("seed", range(HISTORIES))
@pytest.mark.parametrize("kind", AWS_SCENARIOS)
def test_no_history_of_views_breaks_a_law(client: Any, kind: str, seed: int) -> None:
    with bare_table(client) as table:
        AwsWorld(seed, AWS_SCENARIOS[kind], table).run(STEPS)


class AnyHistoryOfEvents(events.AnyHistory):
    """Events over DynamoDB Local."""

    engine: ClassVar = staticmethod(endpoint_table)


class AnyHistoryOfWallets(wallets.AnyHistory):
    """Wallets over DynamoDB Local."""

    engine: ClassVar = staticmethod(endpoint_table)


TestEvents = AnyHistoryOfEvents.TestCase
TestEvents.settings = settings(max_examples=4, stateful_step_count=40)
TestWallets = AnyHistoryOfWallets.TestCase
TestWallets.settings = settings(max_examples=4, stateful_step_count=20)
