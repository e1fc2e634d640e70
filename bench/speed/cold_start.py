"""Cold starts: processor time of a fresh process until its clients are made, and after one event.

vu-mi and its libraries come from the unpacked package, with the compiled files that Lambda's Python
makes, and without them. The original is one module with the same libraries and no compiled files,
as Chalice packs it.

The handler sends its requests over TLS to a stubbed endpoint on this machine. So the figure
includes all that a first event imports, the TLS context, and the handshakes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from bench import aws_events as events
from bench.measuring import interleaved, medians
from bench.stubbed_aws import BADGE_ID, StubbedAws, serving
from deploy import package
from simulation.environment import ROOT
from simulation.report import Report, judged

ROUNDS = 9
BADGES = (BADGE_ID, "octocat/another")
AIM = 0.6
OURS, PLAIN, ORIGINAL = "", "plain ", "original "

Event: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Start:
    """A lambda to start: its module and handler, the resources with clients, its first event."""

    module: str
    handler: str
    resources: tuple[str, ...]
    event: Mapping[str, Any]

    def run(self, task: Path, aws: Mapping[str, str]) -> tuple[float, float]:
        """Return the processor seconds until the clients are made, and until the event is handled.

        `task` is the folder of the unpacked package, `aws` the environment of clients.
        """
        program = ("-P", "-m", "bench.speed.first_event", self.module, self.handler)
        finished = subprocess.run(  # noqa: S603  a module of this project
            [sys.executable, *program, *self.resources],
            input=json.dumps(self.event),
            cwd=task,
            env={
                **os.environ,
                **aws,
                "PYTHONPATH": f"{task}{os.pathsep}{ROOT}",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        ready, handled = json.loads(finished.stdout.splitlines()[-1])
        return ready, handled


def measure() -> Report:
    """Start each lambda of vu-mi and of the original, turn by turn."""
    ours, originals = _ours(), original_starts()
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(StubbedAws(), Path(folder)) as aws,
    ):
        compiled, plain = unpack(Path(folder))
        sides = {
            **{f"{OURS}{name}": partial(ours[name].run, compiled, aws) for name in ours},
            **{f"{PLAIN}{name}": partial(ours[name].run, plain, aws) for name in ours},
            **{f"{ORIGINAL}{name}": partial(originals[name].run, plain, aws) for name in ours},
        }
        interleaved(1, sides)
        figures = interleaved(ROUNDS, sides)
    ready = medians({name: [first for first, _ in runs] for name, runs in figures.items()})
    handled = medians({name: [second for _, second in runs] for name, runs in figures.items()})
    return Report(
        title="cold_start: processor time of a fresh process",
        head=("lambda", *_heads("clients made"), *_heads("first event handled"), "aim"),
        rows=[_row(name, ready, handled) for name in ours],
        notes=(f"median of {ROUNDS} processes each; the interpreter's own start is left out",),
    )


def _heads(moment: str) -> Sequence[str]:
    return f"{moment} ms", "not compiled ms", "original ms", "ratio"


def unpack(folder: Path) -> tuple[Path, Path]:
    """Unpack the package with this Python's compiled files, and without compiled files."""
    package.package("dev", folder, None)
    for name, python in {"compiled": sys.executable, "plain": None}.items():
        package.normalize(folder / "deployment.zip", folder / f"{name}.zip", python)
        shutil.unpack_archive(folder / f"{name}.zip", folder / name)
    return folder / "compiled", folder / "plain"


def _ours() -> dict[str, Start]:
    get, put, fold = first_events(events.get_views)
    return {
        "get_views": Start("chalicelib.aws.get_views", "handler", ("table", "views_queue"), get),
        "put_views": Start("chalicelib.aws.consumers", "put_views", ("table",), put),
        "fold_views": Start("chalicelib.aws.consumers", "fold_views", ("table",), fold),
    }


def original_starts() -> dict[str, Start]:
    """Return the original's lambdas: one module, which makes its clients at import."""
    get, put, fold = first_events(events.get_views_by_rest)
    return {
        "get_views": Start("bench.original", "app", (), get),
        "put_views": Start("bench.original", "put_views", (), put),
        "fold_views": Start("bench.original", "fold_views", (), fold),
    }


def first_events(get_views: Callable[[str], Event]) -> tuple[Event, Event, Event]:
    """Return an event for each function of views; `get_views` makes the first one."""
    now = time.time()
    return get_views(BADGE_ID), events.views(BADGES, now), events.removals(BADGES, now)


def _row(name: str, ready: Mapping[str, float], handled: Mapping[str, float]) -> Sequence[str]:
    ratio = ready[OURS + name] / ready[ORIGINAL + name]
    aim = judged(f"at most {AIM} when clients are made", met=ratio <= AIM)
    return name, *_cells(name, ready), *_cells(name, handled), aim


def _cells(name: str, spent: Mapping[str, float]) -> Sequence[str]:
    ours, plain, original = (spent[side + name] for side in (OURS, PLAIN, ORIGINAL))
    return *(f"{one * 1000:.0f}" for one in (ours, plain, original)), f"{ours / original:.2f}"
