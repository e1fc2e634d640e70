"""`python -m bench.cost [FILE]`: the counted cost on AWS, as Markdown tables.

The real handlers run over a simulated time, `metering` counts the units that they consume, and
`prices.json` has the price of each unit. The tables compare this with the original's design. They
replace the tables in FILE.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import moto  # noqa: F401  import moto first: it patches only later botocore sessions

from bench.cost import (
    alternative_tables,
    event_tables,
    start_tables,
    view_tables,
    wallet_tables,
)
from bench.cost.bill import Prices
from bench.cost.deployed import Deployed
from bench.cost.event_usage import count_events
from bench.cost.invocations import Design
from bench.cost.view_usage import (
    FOLDED_VIEWS,
    OURS,
    RUNS,
    badge_bytes,
    count,
    get_with_folded,
    take,
)
from bench.cost.wallet_usage import count_wallets
from simulation.environment import isolate
from simulation.report import publish

SIDES = {Design.vu_mi: OURS, Design.original: RUNS}
"""The runs of each design."""
BEGIN = "<!-- printed by make cost -->\n"


def main(files: Sequence[str]) -> int:
    """Print the tables or put them into a file; return the exit status."""
    isolate(os.environ)
    publish(tables(), files, BEGIN)
    return 0


def tables() -> str:
    """Return all tables, with their assumptions."""
    prices, deployed = Prices.read(), Deployed.read()
    views = [
        count(design_of, {run: take(design_of, run, deployed) for run in runs}, prices, deployed)
        for design_of, runs in SIDES.items()
    ]
    events, wallets = count_events(prices, deployed), count_wallets(prices, deployed)
    folded = {number: get_with_folded(number) for number in FOLDED_VIEWS}
    measured = prices.measured["as_of"]
    basis = (
        f"Prices of {prices.region} as of {prices.as_of}; units, requests and log counted;"
        f" processor time measured on {measured['cpu_ms']} and {measured['start_ms']}; waiting"
        " assumed."
    )
    reports = [
        *view_tables.reports(views, folded, events),
        *start_tables.reports(views),
        *alternative_tables.reports(views[0], badge_bytes()),
        *event_tables.reports(events),
        *wallet_tables.reports(wallets),
    ]
    return "\n\n".join([basis, *(str(report).strip() for report in reports)]) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
