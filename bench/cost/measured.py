"""The measured values of `prices.json`, which the programs that measure put there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from bench.cost.bill import PRICES
from bench.measuring import machine


def put_measured(name: str, values: Mapping[str, Any]) -> None:
    """Replace these values of `measured`, with the day and the machine of the measurement."""
    content = json.loads(PRICES.read_text())
    measured = content["measured"]
    measured["as_of"][name] = f"{datetime.now(UTC):%Y-%m-%d}"
    measured["machine"][name] = machine()
    measured[name] |= values
    PRICES.write_text(json.dumps(content, indent=2) + "\n")
