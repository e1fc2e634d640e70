"""The whole path of views over DynamoDB Local: its own TTL removes every marker."""

from __future__ import annotations

import pytest

from chalicelib.counting import keys
from chalicelib.storage.items import Key
from simulation.histories import AWS_SCENARIOS
from simulation.ttl_world import Record, TtlWorld, key_in, ttl_table

STEPS = 1_500


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("kind", ["plain", "folds at midnight", "no removal is lost"])
def test_removals_by_real_ttl_fold_every_view_once(kind: str, seed: int) -> None:
    with ttl_table() as engine:
        world = TtlWorld(seed, AWS_SCENARIOS[kind], engine)
        world.run(STEPS)
        assert engine.count_markers() == 0
    assert markers(world.records, "REMOVE") == markers(world.records, "INSERT") != set()


def markers(records: list[Record], change: str) -> set[Key]:
    """Return the keys of the markers with this change in the stream."""
    found = {key_in(record) for record in records if record["eventName"] == change}
    return {key for key in found if key.sk == keys.WINDOW}
