"""`python -m bench.scale [FILE]`: estimate the scaling limits on AWS, as Markdown tables.

The tables compare a model of the stages of a view with the quotas of AWS in `quotas.json`. Handler
runs give the units of the model. The tables replace the tables in FILE.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

import moto  # noqa: F401  import moto first: it patches only later botocore sessions

from bench.cost.bill import Bill, Prices
from bench.cost.deployed import Deployed
from bench.scale.model import QUOTAS, Model
from bench.scale.tables import reports
from bench.scale.usage import count_units
from simulation.environment import isolate
from simulation.report import publish

BEGIN = "<!-- printed by make scale -->\n"


def main(files: Sequence[str]) -> int:
    """Print the tables or put them into a file; return the exit status."""
    isolate(os.environ)
    publish(tables(model()), files, BEGIN)
    return 0


def model() -> Model:
    """Return the model of the deployed stack, with newly counted units."""
    deployed = Deployed.read()
    return Model(count_units(deployed), Bill(Prices.read(), deployed, "vu-mi"))


def tables(of_now: Model) -> str:
    """Return all tables, with their assumptions."""
    prices = of_now.prices
    checked = json.loads(QUOTAS.read_text())["checked"]
    basis = (
        f"Prices of {prices.region} as of {prices.as_of}; units counted; processor time measured on"
        f" {prices.measured['as_of']['cpu_ms']}; waiting assumed. Quotas: {checked}."
    )
    return "\n\n".join([basis, *(str(report).strip() for report in reports(of_now))]) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
