"""Provisioned capacity and the ways in: the arithmetic of what they cost."""

from __future__ import annotations

import pytest

from bench.cost.alternative_tables import WAYS_IN, on_demand, provisioned
from bench.cost.bill import GB, Prices
from bench.cost.view_usage import badge_bytes

HOURS_A_MONTH = 720
UNITS = {"write_unit": 2.0, "read_unit": 1.0}


@pytest.fixture
def prices() -> Prices:
    usd = {
        "write_unit": 5e-6,
        "read_unit": 1e-6,
        "provisioned_write_unit_hour": 0.005,
        "provisioned_read_unit_hour": 0.001,
    }
    assumed = {"utilisation": 0.5, "hours_a_month": HOURS_A_MONTH}
    return Prices("here", "now", usd, {}, {}, assumed)


def test_units_on_demand_are_billed_for_each_view(prices: Prices) -> None:
    """A view is 11 millionths of a dollar; 30 days have 30,000 views."""
    assert on_demand(UNITS, prices, 1_000) == pytest.approx(0.33)


@pytest.mark.parametrize(
    ("views_a_day", "peak", "writes", "reads"),
    [(1, 1, 1, 1), (86_400, 1, 4, 2), (86_400, 3, 12, 6), (86_401, 1, 5, 3)],
)
def test_provisioned_capacity_is_whole_units_for_the_peak(
    prices: Prices, views_a_day: int, peak: float, writes: int, reads: int
) -> None:
    """A view a second is 2 and 1 units, of which half may be used."""
    dollars = (writes * 0.005 + reads * 0.001) * HOURS_A_MONTH
    assert provisioned(UNITS, prices, views_a_day, peak) == pytest.approx(dollars)


def test_a_way_in_is_billed_for_requests_and_their_transfer() -> None:
    by_name = {way.name: way.usage(90_000, 2_000) for way in WAYS_IN}
    transfer = 90_000 * 2_000 / GB
    assert by_name["HTTP API"] == {"http_api_request": 90_000, "transfer_gb": transfer}
    assert by_name["function URL"] == {"transfer_gb": transfer}
    assert by_name["function URL behind CloudFront"] == {
        "cloudfront_request": 90_000,
        "cloudfront_gb": transfer,
    }
    assert by_name["load balancer in two zones"] == {"lcu_hour": 1.0, "transfer_gb": transfer}


def test_an_answer_has_the_bytes_of_its_headers_and_its_badge() -> None:
    assert 1_000 < badge_bytes() < 2_000
