"""The usage of lambda runs as AWS bills it, and its cost by `prices.json`."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from bench.cost.deployed import Deployed
from bench.cost.invocations import BEHIND_THE_API, DISTRIBUTE, FIRE, PUT, Invocation
from chalicelib.concurrency import THREADS

PRICES = Path(__file__).parent / "prices.json"
GB, MB_IN_GB = 2**30, 1_024
REST, HTTP = "rest_api_request", "http_api_request"
"""The names of the prices of a request to an API, by its kind."""
RECEIVED_AT_ONCE = 10
"""The most messages that one request to SQS receives or deletes (SQS API reference)."""

Usage: TypeAlias = Mapping[str, float]
"""Quantities by the names of their prices."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars by unit, free units each month, and the measured and assumed values."""

    region: str
    as_of: str
    usd: Mapping[str, float]
    free: Mapping[str, float]
    measured: Mapping[str, Any]
    assumed: Mapping[str, Any]

    @classmethod
    def read(cls) -> Prices:
        content = json.loads(PRICES.read_text())
        usd = {name: price["usd"] / price["per"] for name, price in content["prices"].items()}
        free = {name: most for name, most in content["free_each_month"].items() if name in usd}
        measured, assumed = content["measured"], content["assumed"]
        return cls(content["region"], content["as_of"], usd, free, measured, assumed)

    def cost(self, usage: Usage) -> float:
        return sum(quantity * self.usd[name] for name, quantity in usage.items())


@dataclass(frozen=True, slots=True)
class Bill:
    """A converter from the usage of a design's runs to the usage that AWS bills."""

    prices: Prices
    deployed: Deployed
    design: str

    @property
    def api_request(self) -> str:
        """Return the name of the price of a request: the original has a REST API."""
        return HTTP if self.design == "vu-mi" else REST

    def usage(self, invocations: Iterable[Invocation]) -> Usage:
        total: Counter[str] = Counter()
        for invocation in invocations:
            total.update(self._usage(invocation))
        return total

    def _usage(self, run: Invocation) -> dict[str, float]:
        return {
            self.api_request: float(run.function in BEHIND_THE_API),
            "lambda_request": 1.0,
            f"lambda_{self.deployed.architecture}_gb_second": self.gb_seconds(run),
            "sqs_request": float(run.sends + _polls(run)),
            "read_unit": sum(request.read_units for request in run.requests),
            "write_unit": float(sum(request.write_units for request in run.requests)),
            "log_gb": run.log_bytes / GB,
            "s3_put_request": float(len(run.objects)),
        }

    def gb_seconds(self, run: Invocation) -> float:
        """Return the memory in GB times the billed seconds."""
        return self.in_gb_seconds(self.billed_ms(run))

    def in_gb_seconds(self, ms: float) -> float:
        """Return the memory in GB times this time."""
        return ms / 1000 * self.deployed.memory_mb / MB_IN_GB

    def billed_ms(self, run: Invocation) -> int:
        """Return whole milliseconds, with the processor at the function's share of a vCPU."""
        assumed = self.prices.assumed
        waiting: float = len(run.requests) * assumed["waiting_ms"]["dynamodb"]
        waiting += run.sends * assumed["waiting_ms"]["sqs"]
        waiting += len(run.objects) * assumed["waiting_ms"]["s3"]
        return math.ceil(self._cpu_ms(run) / self._vcpus + waiting * _share_of_waiting(run))

    @property
    def _vcpus(self) -> float:
        """Return the share of a vCPU that a function has."""
        return float(self.deployed.memory_mb / self.prices.assumed["vcpu_mb"])

    def start_ms(self, function: str, *, has_burst: bool = True) -> int:
        """Return the milliseconds that a cold start adds: INIT, and a slower first run.

        INIT has a whole vCPU if it has the burst.
        """
        measured = self.prices.measured["start_ms"][function][self.design]
        init: float = measured["init"] / (1.0 if has_burst else self._vcpus)
        first_event: float = measured["first_event"] / self._vcpus
        own: float = self.prices.assumed["runtime_init_ms"]
        return math.ceil(own + init + first_event)

    def _cpu_ms(self, run: Invocation) -> float:
        measured = self.prices.measured["cpu_ms"][run.function][self.design]
        return interpolated({int(size): ms for size, ms in measured.items()}, run.records)


def _polls(run: Invocation) -> int:
    """Count the requests that receive and delete a batch; a group of events is one message."""
    messages = {PUT: run.records, FIRE: run.records, DISTRIBUTE: 1}.get(run.function, 0)
    return 2 * math.ceil(messages / RECEIVED_AT_ONCE)


def _share_of_waiting(run: Invocation) -> float:
    """Return the share of the waiting that counts: concurrently fired events wait together."""
    if run.function != FIRE:
        return 1.0
    return math.ceil(run.records / THREADS) / run.records


def interpolated(measured: Mapping[int, float], at: int) -> float:
    """Interpolate linearly between the measured sizes on both sides of a size."""
    points = sorted(measured.items())
    above = next((place for place, (size, _) in enumerate(points) if size >= at), len(points) - 1)
    if len(points) == 1:
        return points[0][1]
    (low, first), (high, second) = points[max(above, 1) - 1 : max(above, 1) + 1]
    return first + (second - first) * (at - low) / (high - low)


def per_view(usage: Usage, views: int) -> Usage:
    """Return the usage of one view."""
    return {name: quantity / views for name, quantity in usage.items()}


def add_usages(*usages: Usage) -> Usage:
    """Add up usages."""
    total: Counter[str] = Counter()
    for usage in usages:
        total.update(usage)
    return total
