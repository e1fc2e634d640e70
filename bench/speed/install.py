"""The way to the first counted badge: from a wheel by pip and pipx, and from a clone by make.

Each side downloads what it needs, so the speed of the network counts. pipx must be on the PATH.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from urllib.request import urlopen

from bench.measuring import interleaved, medians
from simulation.environment import ROOT
from simulation.report import Report
from simulation.server_process import ServerProcess, killed

ROUNDS = 3
MEGABYTE = 1_000_000
INHERITED = {
    name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
}
"""The environment without the flags of a make that runs this."""
ID = "first"
TITLE = "from nothing to the first counted badge"


@dataclass
class Way:
    """A way to install vu-mi in a folder, and the size of all its files afterwards.

    `install` returns the command that serves.
    """

    install: Callable[[Path], Sequence[str | Path]]
    megabytes: float = field(default=0.0, init=False)
    cpu_seconds: list[float] = field(default_factory=list, init=False)

    def measure(self) -> float:
        """Install and serve in a new folder; return the seconds until a badge counts."""
        with TemporaryDirectory() as name:
            folder = Path(name)
            started, used = time.perf_counter(), _cpu_seconds()
            command = self.install(folder)
            with killed(_serve(command, folder)) as process:
                _count(ServerProcess(process).url)
                took = time.perf_counter() - started
                process.terminate()
                process.communicate()
            self.cpu_seconds.append(_cpu_seconds() - used)
            self.megabytes = _disk_bytes(folder) / MEGABYTE
        return took


def measure() -> Report:
    """Install by each way in turn."""
    with TemporaryDirectory() as name:
        wheel = _build(Path(name))
        ways = {
            "`pipx install WHEEL`, `vumi serve`": Way(lambda folder: _by_pipx(folder, wheel)),
            "`python -m venv`, `pip install WHEEL`": Way(lambda folder: _by_pip(folder, wheel)),
            "`git clone`, `make run`": Way(_by_make),
        }
        figures = interleaved(ROUNDS, {name: way.measure for name, way in ways.items()})
    rows = [
        [
            name,
            f"{took:.1f} s",
            f"{median(ways[name].cpu_seconds):.1f} s",
            f"{ways[name].megabytes:.0f} MB",
        ]
        for name, took in medians(figures).items()
    ]
    notes = [f"Medians of {ROUNDS} rounds, without a cache of pip. The wheel was built before."]
    return Report(TITLE, ["way", "until then", "processor time", "on the disk"], rows, notes)


def _build(folder: Path) -> Path:
    _run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT], {})
    [wheel] = folder.glob("*.whl")
    return wheel


def _by_pipx(folder: Path, wheel: Path) -> Sequence[str | Path]:
    home = {name: str(folder / name) for name in ("PIPX_HOME", "PIPX_BIN_DIR", "PIPX_MAN_DIR")}
    _run(["pipx", "install", "--quiet", wheel], home)
    return [folder / "PIPX_BIN_DIR" / "vumi", "serve"]


def _by_pip(folder: Path, wheel: Path) -> Sequence[str | Path]:
    venv.create(folder / "venv", symlinks=True, with_pip=True)
    _run([folder / "venv" / "bin" / "pip", "install", "--quiet", wheel], {})
    return [folder / "venv" / "bin" / "vumi", "serve"]


def _by_make(folder: Path) -> Sequence[str | Path]:
    _run(["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), folder / "clone"], {})
    return ["make", "--silent", "--directory", folder / "clone", "run"]


def _run(command: Sequence[str | Path], variables: Mapping[str, str]) -> None:
    environment = {**INHERITED, "PIP_NO_CACHE_DIR": "1", **variables}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)  # noqa: S603  our own words


def _serve(command: Sequence[str | Path], folder: Path) -> subprocess.Popen[str]:
    settings = {"PORT": "0", "DATA": str(folder / "data"), "PIP_NO_CACHE_DIR": "1"}
    return subprocess.Popen(  # noqa: S603  our own words
        command, env={**INHERITED, **settings}, stdout=subprocess.PIPE, encoding="utf-8"
    )


def _count(url: str) -> None:
    """View a badge until it shows the first view. Raises `AssertionError`."""
    for shown in ("0", "1"):
        with urlopen(f"{url}api/v1/views?id={ID}") as answer:  # noqa: S310  our own server
            message = json.load(answer)["message"]
        if message != shown:
            raise AssertionError(f"the badge shows {message}, not {shown}")


def _cpu_seconds() -> float:
    """Return the processor time of all processes that this one has started and waited for."""
    times = os.times()
    return times.children_user + times.children_system


def _disk_bytes(folder: Path) -> int:
    """Return the size of all files, without those that a link names again."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if not path.is_symlink())
