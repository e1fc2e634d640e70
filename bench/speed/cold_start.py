"""Cold starts: processor time of a fresh process until its clients are made, and after one event.

vu-mi and its libraries come from the unpacked package, with the compiled files that Lambda's Python
makes, and without them. The yardstick is a process that makes one resource and one client of boto3.

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
from typing import Any

from bench import aws_events as events
from bench.measuring import interleaved, medians
from bench.stubbed_aws import BADGE_ID, StubbedAws, serving
from deploy import package
from simulation.environment import ROOT
from simulation.report import Report

ROUNDS = 9
BADGES = (BADGE_ID, "octocat/another")
PLAIN, BOTO3 = "plain ", "boto3"
YARDSTICK = """
import time
started = time.process_time()
import boto3
boto3.resource("dynamodb").Table("vu-mi")
boto3.client("sqs")
print(time.process_time() - started)
"""


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
        printed = subprocess.check_output(  # noqa: S603  a module of this project
            [sys.executable, *program, *self.resources],
            input=json.dumps(self.event),
            cwd=task,
            env={
                **os.environ,
                **aws,
                "PYTHONPATH": f"{task}{os.pathsep}{ROOT}",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            text=True,
        )
        ready, handled = json.loads(printed.splitlines()[-1])
        return ready, handled


def measure() -> Report:
    """Start each function and the yardstick, turn by turn."""
    starts = _starts()
    with tempfile.TemporaryDirectory() as folder, serving(StubbedAws(), Path(folder)) as aws:
        compiled, plain = unpack(Path(folder))
        sides: dict[str, Callable[[], tuple[float, float]]] = {
            BOTO3: _start_boto3,
            **{name: partial(one.run, compiled, aws) for name, one in starts.items()},
            **{PLAIN + name: partial(one.run, plain, aws) for name, one in starts.items()},
        }
        interleaved(1, sides)
        figures = interleaved(ROUNDS, sides)
    ready = medians({name: [first for first, _ in runs] for name, runs in figures.items()})
    handled = medians({name: [second for _, second in runs] for name, runs in figures.items()})
    return Report(
        title="cold_start: processor time of a fresh process",
        head=("function", *_heads("clients made"), "of boto3", *_heads("first event handled")),
        rows=[_row(name, ready, handled) for name in starts],
        notes=(
            f"median of {ROUNDS} processes each; the interpreter's own start is left out",
            f"a resource and a client of boto3: {ready[BOTO3] * 1000:.0f} ms",
        ),
    )


def _heads(moment: str) -> Sequence[str]:
    return f"{moment} ms", "not compiled ms"


def _row(name: str, ready: Mapping[str, float], handled: Mapping[str, float]) -> Sequence[str]:
    of_boto3 = f"{ready[name] / ready[BOTO3]:.2f}"
    return name, *_cells(name, ready), of_boto3, *_cells(name, handled)


def _cells(name: str, spent: Mapping[str, float]) -> Sequence[str]:
    return [f"{spent[side + name] * 1000:.0f}" for side in ("", PLAIN)]


def _start_boto3() -> tuple[float, float]:
    spent = float(subprocess.check_output([sys.executable, "-c", YARDSTICK]))  # noqa: S603
    return spent, spent


def unpack(folder: Path) -> tuple[Path, Path]:
    """Unpack the package with this Python's compiled files, and without compiled files."""
    package.package("dev", folder, None)
    for name, python in {"compiled": sys.executable, "plain": None}.items():
        package.normalize(folder / "deployment.zip", folder / f"{name}.zip", python)
        shutil.unpack_archive(folder / f"{name}.zip", folder / name)
    return folder / "compiled", folder / "plain"


def _starts() -> dict[str, Start]:
    get, now = events.ask(BADGE_ID), time.time()
    put, fold = events.views(BADGES, now), events.removals(BADGES, now)
    return {
        "get_views": Start("chalicelib.aws.get_views", "handler", ("table", "views_queue"), get),
        "put_views": Start("chalicelib.aws.consumers", "put_views", ("table",), put),
        "fold_views": Start("chalicelib.aws.consumers", "fold_views", ("table",), fold),
    }
