"""The units per request that docs/cost.md quotes, counted from the handlers."""

from __future__ import annotations

from bench.cost import units


def test_requests_take_the_units_that_the_document_quotes() -> None:
    counted = units()
    assert counted["GET"] == (1, 0)
    assert counted["put of a view that begins a window"] == (0, 2)
    assert counted["fold"] == (2, 1)
    assert counted["hot view"] == (1, 4)
    assert counted["98 hot views of one badge"] == (1, 198)
    assert counted["GET with 1,155 live views"] == (20, 0)
    assert counted["deposit"] == (0, 6)
    assert counted["transfer"] == (0, 10)
