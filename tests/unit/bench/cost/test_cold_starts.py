"""Cold starts: the runs that find no environment, and the time that Lambda bills for them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from bench.cost.bill import Bill, Prices
from bench.cost.deployed import Deployed
from bench.cost.invocations import FOLD, GET, PUT, Invocation
from bench.cost.view_usage import BUSY, QUIET, Counted

FUNCTIONS = (GET, PUT, FOLD)
PRICE = "cold_start_arm64_gb_second"


@pytest.fixture(scope="module")
def counted() -> Counted:
    """Return usage whose starts have 100 ms of INIT, 10 of first event and 50 of Lambda's own."""
    deployed = replace(Deployed.read(), memory_mb=512)
    start_ms = {name: {"vu-mi": {"init": 100.0, "first_event": 10.0}} for name in FUNCTIONS}
    assumed = {"vcpu_mb": 2_048, "runtime_init_ms": 50, "idle_seconds": 600}
    prices = Prices("here", "now", {PRICE: 1.0}, {}, {"start_ms": start_ms}, assumed)
    gets, puts = [Invocation(GET, 0)] * 125, [Invocation(PUT, 1)] * 125
    taken = {
        BUSY: [*gets, *puts, *[Invocation(FOLD, 3)] * 36],
        QUIET: [Invocation(name, 1) for name in FUNCTIONS] * 3,
    }
    return Counted(Bill(prices, deployed, "vu-mi"), {}, taken, {})


def test_a_start_is_billed_with_a_whole_vcpu_for_init(counted: Counted) -> None:
    """A quarter of a vCPU takes 40 ms for the first event."""
    assert counted.bill.start_ms(GET) == 50 + 100 + 40


def test_a_start_without_the_burst_has_the_share_of_the_memory(counted: Counted) -> None:
    assert counted.bill.start_ms(GET, has_burst=False) == 50 + 400 + 40


def test_a_run_is_cold_after_a_pause_without_one(counted: Counted) -> None:
    """1,000 GETs a day are 6.9 in 600 s; 288 folds a day are 2."""
    assert counted.cold_share(BUSY, GET) == pytest.approx(math.exp(-1_000 / 144))
    assert counted.cold_share(BUSY, FOLD) == pytest.approx(math.exp(-2))
    assert counted.cold_share(BUSY, FOLD, 300) == pytest.approx(math.exp(-1))
    assert counted.cold_share(QUIET, FOLD) == pytest.approx(0.993, abs=1e-3)


def test_a_view_bears_the_cold_starts_of_its_runs(counted: Counted) -> None:
    """Three runs of a view a day are cold, each of 190 ms at half a GB."""
    [(price, gb_seconds)] = counted.cold_starts(QUIET).items()
    assert price == PRICE
    assert gb_seconds == pytest.approx(3 * 0.99308 * 0.190 * 0.5, rel=1e-4)
    folds = 36 / 125 * math.exp(-2) * 0.190 * 0.5
    requests = 2 * math.exp(-1_000 / 144) * 0.190 * 0.5
    assert counted.cold_starts(BUSY)[PRICE] == pytest.approx(folds + requests)
