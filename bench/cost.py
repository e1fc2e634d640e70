"""`python -m bench.cost [FILE]`: what all of it costs on AWS, counted, as Markdown tables.

The real handlers run over a simulated time, `metering` counts the units that they consume, and
`prices.json` has what a unit costs; beside it the same for the design of the original. The tables
take the place of those that stand in a FILE.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import moto  # noqa: F401  it answers only sessions of botocore that are made after its import

from bench import cost_tables, event_tables, wallet_tables
from bench.bill import Prices
from bench.counted import count
from bench.counted_events import count_events
from bench.counted_wallets import count_wallets
from bench.deployed import Deployed
from bench.invoking import Design
from bench.stubbed_aws import isolate

BEGIN, END = "<!-- printed by make cost -->\n", "<!-- until here -->\n"


def main(files: Sequence[str]) -> int:
    """Returns the exit status."""
    isolate(os.environ)
    printed = tables()
    print(printed, end="")
    for file in map(Path, files):
        file.write_text(put_into(file.read_text(), printed))
    return 0


def tables() -> str:
    """All of them, with what they rest on."""
    prices, deployed = Prices.read(), Deployed.read()
    with ProcessPoolExecutor(3) as pool:
        counting = partial(count, prices=prices, deployed=deployed)
        of_events = pool.submit(count_events, prices, deployed)
        of_wallets = pool.submit(count_wallets, prices, deployed)
        designs = list(pool.map(counting, (Design.vu_mi, Design.original)))
        events, wallets = of_events.result(), of_wallets.result()
    basis = (
        f"Prices of {prices.region} as of {prices.as_of}; units, requests and log counted;"
        f" processor time measured on {prices.measured['as_of']}; waiting assumed."
    )
    reports = [
        *cost_tables.reports(designs, events),
        *event_tables.reports(events),
        *wallet_tables.reports(wallets),
    ]
    return "\n\n".join([basis, *(str(report).strip() for report in reports)]) + "\n"


def put_into(document: str, printed: str, begin: str = BEGIN) -> str:
    """A document with these tables in place of those that stand in it."""
    before, rest = document.split(begin)
    return f"{before}{begin}{printed}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
