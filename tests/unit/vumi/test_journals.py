"""The journals: a query in pages yields each item of a partition once."""

from __future__ import annotations

from chalicelib.storage.items import Item
from simulation.memory_table import MemoryTable
from vumi.journals import PAGE, query_all


def test_every_item_between_the_bounds_is_read_once() -> None:
    """The last key of a page is the beginning of the first key of the next one."""
    table = MemoryTable()
    keys = [*(f"b{number:04}" for number in range(PAGE)), f"b{PAGE - 1:04}a", "c"]
    items: list[Item] = [{"PK": "p", "SK": key} for key in ("a", *keys, "d")]
    table.put_all([*items, {"PK": "q", "SK": "c"}])
    assert [item["SK"] for item in query_all(table, "p", "b", "c")] == keys
