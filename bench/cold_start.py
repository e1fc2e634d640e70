"""Cold starts: processor time of a fresh process until its clients are made, and one event on.

The event goes to an endpoint on this machine that gives stubbed answers, so that everything a
first event imports is in the figure. TLS, alike on both sides, is not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench import events
from bench.measuring import ROOT, interleaved, medians
from bench.report import Report, judged
from bench.stubbed_aws import BADGE_ID, StubbedAws, serving

ROUNDS = 9
BADGES = (BADGE_ID, "octocat/another")
NO_WORSE, CLEARLY_BETTER = ("no more", 1.0), ("at most 0.9", 0.9)


@dataclass(frozen=True, slots=True)
class Start:
    """A lambda to start: where it is, which resources it makes clients of, its first event."""

    module: str
    handler: str
    resources: tuple[str, ...]
    event: Mapping[str, Any]

    def run(self, endpoint: str) -> tuple[float, float]:
        """The processor seconds until its clients are made, and until the event is handled."""
        finished = subprocess.run(  # noqa: S603  it is a module of this project
            [sys.executable, "-m", "bench.first_event", self.module, self.handler, *self.resources],
            input=json.dumps(self.event),
            cwd=ROOT,
            env={**os.environ, "AWS_ENDPOINT_URL": endpoint},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        ready, handled = json.loads(finished.stdout.splitlines()[-1])
        return ready, handled


def measure() -> Report:
    """Start each lambda of vu-mi and of the original, turn by turn."""
    ours, originals = _ours(), _originals()
    starts = {**ours, **{f"original {name}": start for name, start in originals.items()}}
    with serving(StubbedAws()) as endpoint:
        sides = {name: partial(start.run, endpoint) for name, start in starts.items()}
        interleaved(1, sides)
        figures = interleaved(ROUNDS, sides)
    ready = medians({name: [first for first, _ in runs] for name, runs in figures.items()})
    handled = medians({name: [second for _, second in runs] for name, runs in figures.items()})
    return Report(
        title="cold_start: processor time of a fresh process",
        head=(
            "lambda",
            "clients made ms",
            "original ms",
            "ratio",
            "first event handled ms",
            "original ms",
            "ratio",
            "aim, clients made",
        ),
        rows=[_row(name, ready, handled) for name in ours],
        notes=(f"median of {ROUNDS} processes each; the interpreter's own start is left out",),
    )


def _ours() -> dict[str, Start]:
    get, put, fold = _first_events()
    return {
        "api_handler": Start("app", "app", ("table", "views_queue"), get),
        "put_views": Start("chalicelib.views.put", "put_views", ("table",), put),
        "fold_views": Start("chalicelib.views.fold", "fold_views", ("table",), fold),
    }


def _originals() -> dict[str, Start]:
    """One module is behind all three, and it makes its clients at import."""
    get, put, fold = _first_events()
    return {
        "api_handler": Start("bench.original", "app", (), get),
        "put_views": Start("bench.original", "put_views", (), put),
        "fold_views": Start("bench.original", "fold_views", (), fold),
    }


def _first_events() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    return events.get_views(BADGE_ID), events.views(BADGES), events.removals(BADGES)


def _row(name: str, ready: Mapping[str, float], handled: Mapping[str, float]) -> Sequence[str]:
    aim, most = NO_WORSE if name == "api_handler" else CLEARLY_BETTER
    return (
        name,
        *_cells(name, ready),
        *_cells(name, handled),
        judged(aim, met=ready[name] / ready[f"original {name}"] <= most),
    )


def _cells(name: str, spent: Mapping[str, float]) -> tuple[str, str, str]:
    ours, original = spent[name], spent[f"original {name}"]
    return f"{ours * 1000:.0f}", f"{original * 1000:.0f}", f"{ours / original:.2f}"
