"""One machine under load and faults, and its recorded history."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.checker import history
from chaos.checker.days import with_spans
from chaos.checker.db_probe import DbProbe, annotated, count_left, look
from chaos.checker.history import Kind, Operation, Recorder
from chaos.driver import fault_plan
from chaos.driver.clients import Attacker, Owners, Reader
from chaos.driver.fault_plan import Fault, Faults
from chaos.driver.server import HOST, PATIENCE_SECONDS, DiedError, Server, free_port
from chaos.driver.visitors import Visits
from chaos.faults import Disk, OffsetClock, small_disk
from simulation.attacks import prepare
from simulation.environment import ROOT
from simulation.server_process import killed

BADGES = 40
OWNED = tuple(f"chaos/owned {number}" for number in range(6))
BADGE_IDS = ("chaos/hot", *(f"chaos/ü {number}" for number in range(1, BADGES)), *OWNED)
CONNECTIONS, SLOW_CONNECTIONS = 24, 60
MIDNIGHT_SECONDS = 1.5
"""The load begins this long before a midnight of the server's clock."""
END_SECONDS = 100_000.0
"""A clock set forward by this is later than every watermark."""
POLL_SECONDS = 0.1
VISITS = "visitors.jsonl"
DISK = "disk"
"""The machine's folder within the run's folder."""
DISK_FULL_ERRORS = (
    "UnavailableError: SQLite: ",
    "NotStoredError: ",
    "NotSentError: ",
    "InBetweenError: ",
)
"""The errors while the disk is full; a reason follows. The last one is that of a slow request."""
SHOWN = 500


@dataclass(frozen=True, slots=True)
class Survived:
    """The faults of a run and their results."""

    seconds: float
    disk: str
    faults: dict[Fault, int]
    starts: int
    refused_owners: Sequence[str]
    attacks: int
    history: Sequence[Operation] = ()
    log_errors: Sequence[str] = ()


class Machine:
    """A run on one machine, in its own folder."""

    def __init__(self, seed: str, folder: Path, disk: Disk) -> None:
        self._seed, self._folder, self._disk = seed, folder, disk
        self._clock = OffsetClock(folder / "clock")
        port = free_port(seed)
        self._server = Server(disk.folder, folder / "clock", folder, port)

    def run(self, seconds: float) -> Survived:
        """Run load and faults, then come to rest. Raises `DiedError` and `TimeoutError`."""
        with ExitStack() as cleanup:
            cleanup.callback(self._server.close)
            prepare(self._disk.folder)
            self._server.start()
            recorder = Recorder(self._folder / "others.jsonl")
            cleanup.callback(recorder.close)
            probe = DbProbe(self._disk.folder)
            cleanup.callback(probe.stop)
            done, reader = self._under_load(seconds, recorder, cleanup)
            self._come_to_rest(reader)
            probe.stop()
            recorder.close()
            self._server.close()
            names = VISITS, "others.jsonl"
            recorded = [one for name in names for one in history.read(self._folder / name)]
            put = annotated(recorded, probe.looks)
            seen = list(with_spans(put, self._clock.jumps))
            return replace(done, history=seen, log_errors=_find_errors(self._folder))

    def _under_load(
        self, seconds: float, recorder: Recorder, cleanup: ExitStack
    ) -> tuple[Survived, Reader]:
        """Run load and faults; return what is known before the rest, and the reader."""
        target = HOST, self._server.port, self._seed
        owners = Owners(self._server, self._seed, OWNED, recorder)
        cleanup.callback(owners.stop)
        deadline = time.monotonic() + seconds
        path = str(self._folder / VISITS)
        visits = Visits(*target, seconds, CONNECTIONS, SLOW_CONNECTIONS, BADGE_IDS, path)
        visitors = cleanup.enter_context(killed(visits.start()))
        self._clock.jump_before_midnight(MIDNIGHT_SECONDS)
        reader = Reader(self._server, self._seed, BADGE_IDS, recorder)
        cleanup.callback(reader.stop)
        attacker = Attacker(self._server.port, self._seed)
        cleanup.callback(attacker.stop)
        doing = Faults(self._server, self._disk, self._clock)
        doing.run(fault_plan.plan(self._seed), deadline)
        if visitors.wait(PATIENCE_SECONDS):
            raise DiedError("the visitors ended early")
        for other in (attacker, owners, reader):
            other.stop()
        return Survived(
            seconds=seconds,
            disk=self._disk.name,
            faults=dict(doing.survived),
            starts=self._server.starts,
            refused_owners=owners.wrong,
            attacks=attacker.number,
        ), reader

    def _come_to_rest(self, reader: Reader) -> None:
        """Read all badges when every view is put, and again when it is folded and removed."""
        self._server.kill()
        self._redrive()
        self._server.start()
        self._wait(lambda: look(self._disk.folder).all_put)
        reader.read_all(Kind.FINAL, "put")
        self._clock.jump(END_SECONDS)

        def folded() -> bool:
            reader.read_all(Kind.READ, "while they are folded")
            return not any(count_left(self._disk.folder))

        self._wait(folded)
        reader.read_all(Kind.FINAL, "folded")
        self._server.kill()
        self._server.start()
        reader.read_all(Kind.FINAL, "folded, after a restart")

    def _redrive(self) -> None:
        """Send the dead letters of the full disk again."""
        subprocess.run(
            [sys.executable, "-m", "vumi", "redrive"],
            cwd=ROOT,
            env=os.environ | {"DATA": str(self._disk.folder)},
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def _wait(self, is_done: Callable[[], bool]) -> None:
        """Wait until the file shows that all is done. Raises `TimeoutError`."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            with suppress(sqlite3.Error):  # it can't be read now
                if is_done():
                    return
            time.sleep(POLL_SECONDS)
        folder = self._disk.folder
        raise TimeoutError(
            f"not at rest after {PATIENCE_SECONDS:.0f} s: {look(folder)}, {count_left(folder)}"
        )


def _find_errors(folder: Path) -> list[str]:
    """Return the unexpected log lines of all starts.

    Only a full disk may cause errors, and nothing may cause a bare traceback.
    """
    return [
        f"{log.name}: {line[-SHOWN:]}"
        for log in sorted(folder.glob("server-*.log"))
        for line in _find_unexpected(log.read_text(errors="replace"))
    ]


def _find_unexpected(text: str) -> Iterator[str]:
    """Yield the unexpected lines; a killed process may leave its last line unfinished."""
    for line in text.split("\n")[:-1]:
        try:
            entry = json.loads(line)
        except ValueError:
            yield line
            continue
        wrong = entry.get("level") == "ERROR" and entry.get("message") != "dead_letters"
        if wrong and not any(expected in entry.get("error", "") for expected in DISK_FULL_ERRORS):
            yield line


def run(seed: str, seconds: float, folder: Path, *, mounted: bool = True) -> Survived:
    """Run one machine in a new folder. Raises `DiedError` and `TimeoutError`."""
    with closing(small_disk(folder / DISK, mounted=mounted)) as disk:
        return Machine(seed, folder, disk).run(seconds)
