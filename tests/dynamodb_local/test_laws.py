"""The laws over generated histories on DynamoDB Local, each from a seed that replays it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

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


TestEvents = events.AnyHistory.to_test(4, 40, engine=staticmethod(endpoint_table))
TestWallets = wallets.AnyHistory.to_test(4, 20, engine=staticmethod(endpoint_table))
