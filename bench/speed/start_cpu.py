"""`python -m bench.speed.start_cpu`: measure `start_ms` in `prices.json` again, and put it there.

The measurement is the processor time of a new process: INIT, which is the import of the module that
the packaged template names, and then the first event, with everything that is made and imported for
it. vu-mi has compiled files as on Lambda; the original has none, as Chalice packs it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
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

ROUNDS = 9
FUNCTIONS = (GET, PUT, FOLD)

Side: TypeAlias = tuple[str, str]
"""A function and a design."""
Times: TypeAlias = tuple[float, float]
"""The processor seconds of INIT, and until the first event is handled."""


def main() -> int:
    """Measure the starts of the functions of views in both designs, turn by turn."""
    isolate(os.environ)
    os.environ[ON_LAMBDA] = "vu-mi"
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(StubbedAws(), Path(folder)) as aws,
    ):
        compiled, plain = unpack(Path(folder))
        template = yaml.safe_load((Path(folder) / "sam.yaml").read_text())
        starts: dict[Side, tuple[Start, Path]] = {}
        for function, original in original_starts().items():
            ours = _handler(template["Resources"], function)
            starts[function, "vu-mi"] = Start(*ours, (), {}), compiled
            starts[function, "original"] = replace(original, resources=()), plain
        sides = {side: partial(_run, side, *start, aws) for side, start in starts.items()}
        interleaved(1, sides)
        put_measured("start_ms", _by_function(interleaved(ROUNDS, sides)))
    return 0


def _run(side: Side, start: Start, task: Path, aws: Mapping[str, str]) -> Times:
    """Start a function with an event of now, because an old view is not stored but sent back."""
    function, design = side
    made = first_events(events.get_views if design == "vu-mi" else events.get_views_by_rest)
    event = dict(zip(FUNCTIONS, made, strict=True))[function]
    return replace(start, event=event).run(task, aws)


def _handler(resources: Mapping[str, Any], function: str) -> tuple[str, str]:
    handler: str = resources[LOGICAL_IDS[function]]["Properties"]["Handler"]
    module, _, name = handler.rpartition(".")
    return module, name


def _by_function(
    figures: Mapping[Side, Sequence[Times]],
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
