"""`python -m bench.cost.start_cpu`: measure `start_ms` in `prices.json` again, and put it there.

The measurement is the processor time of a new process: INIT, which is the import of the module that
the packaged template names, and then the first event, with everything that is made and imported for
it. vu-mi has compiled files as on Lambda; the original has none, as Chalice packs it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from bench import aws_events as events
from bench.cost.deployed import LOGICAL_IDS
from bench.cost.invocations import FOLD, GET, PUT
from bench.cost.measured import put_measured
from bench.measuring import interleaved, medians
from bench.speed.cold_start import Start, first_events, original_starts, unpack
from bench.stubbed_aws import StubbedAws, serving
from chalicelib.aws.resources import ON_LAMBDA
from simulation.environment import isolate

ROUNDS = 15
FUNCTIONS = (GET, PUT, FOLD)

Times: TypeAlias = tuple[float, float]
"""The processor seconds of INIT, and until the first event is handled."""


def main() -> int:
    """Measure the starts of the functions of views in both designs, turn by turn."""
    isolate(os.environ)
    os.environ[ON_LAMBDA] = "vu-mi"
    with tempfile.TemporaryDirectory() as folder, serving(StubbedAws()) as endpoint:
        compiled, plain = unpack(Path(folder))
        template = yaml.safe_load((Path(folder) / "sam.yaml").read_text())
        sides: dict[tuple[str, str], Callable[[], Times]] = {}
        for function, start in _ours(template["Resources"]).items():
            original = replace(original_starts()[function], resources=())
            sides[function, "vu-mi"] = partial(start.run, compiled, endpoint)
            sides[function, "original"] = partial(original.run, plain, endpoint)
        interleaved(1, sides)
        put_measured("start_ms", _by_function(interleaved(ROUNDS, sides)))
    return 0


def _ours(resources: Mapping[str, Any]) -> dict[str, Start]:
    """Return the functions of views with the handlers of the packaged template."""
    of_each = dict(zip(FUNCTIONS, first_events(events.get_views), strict=True))
    return {
        function: Start(*_handler(resources, function), (), event)
        for function, event in of_each.items()
    }


def _handler(resources: Mapping[str, Any], function: str) -> tuple[str, str]:
    handler: str = resources[LOGICAL_IDS[function]]["Properties"]["Handler"]
    module, _, name = handler.rpartition(".")
    return module, name


def _by_function(
    figures: Mapping[tuple[str, str], Sequence[Times]],
) -> dict[str, dict[str, dict[str, float]]]:
    """Return the medians of INIT and of the first event in milliseconds."""
    init = medians({side: [init for init, _ in runs] for side, runs in figures.items()})
    event = medians({side: [end - init for init, end in runs] for side, runs in figures.items()})
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (function, design), seconds in init.items():
        own = {"init": seconds, "first_event": event[function, design]}
        found.setdefault(function, {})[design] = {
            name: round(value * 1000, 1) for name, value in own.items()
        }
    return found


if __name__ == "__main__":
    sys.exit(main())
