"""Backups of a real server: made under load, restored, and killed at any moment."""

from __future__ import annotations

import json
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from pathlib import Path
from threading import Event, Thread

import pytest

from simulation.server_process import Process
from tests.processes.programs import PATIENCE_SECONDS
from tests.processes.server import TOKEN, WITH_TOKEN, Server, run, running, start
from tests.processes.test_the_file_on_one_machine import limited
from tests.processes.test_wallets_on_one_machine import ask, deposit, opened
from vumi.storage.database import FILE

IDS = ["a", "b", "c"]
OBJECTS = 400
"""Objects of an archive that take a while to copy."""


@dataclass
class Load:
    """Clients that visit badges, create events and move money until they are stopped.

    Each counts what it asks for, and what the server has acknowledged.
    """

    server: Server
    wallets: tuple[str, str]
    asked: Counter[str] = field(default_factory=Counter)
    acknowledged: Counter[str] = field(default_factory=Counter)
    events: list[str] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    stopped: Event = field(default_factory=Event)

    def visit(self, badge_id: str) -> None:
        self.asked[badge_id] += 1
        assert self.server.badge(badge_id)["label"]
        self.acknowledged[badge_id] += 1

    @property
    def later(self) -> str:
        return (datetime.now(UTC) + timedelta(days=300)).isoformat()

    def create_event(self) -> None:
        body = {"at": self.later, "target": {"log": True}, "payload": {}}
        status, event = self.server.ask("POST", "/api/v1/events", body, TOKEN)
        assert status == 201, event
        self.events.append(event["id"])

    def move_money(self) -> None:
        source, target = self.wallets
        deposit(self.server, source, 5, f"nonce-{uuid.uuid4()}")
        body = {"amount": "3", "nonce": f"nonce-{uuid.uuid4()}"}
        assert ask(self.server, "PUT", f"/{source}/transfer/{target}", body)[0] == 204

    def repeat(self, step: Callable[[], None]) -> None:
        while not self.stopped.is_set():
            try:
                step()
            except (AssertionError, OSError, HTTPException) as error:
                self.errors.append(error)
                return

    def wait_for(self, views: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while min(self.acknowledged[one] for one in IDS) < views or not self.events:
            assert not self.errors
            assert time.monotonic() < deadline
            time.sleep(0.01)


@contextmanager
def loaded(server: Server) -> Iterator[Load]:
    """Load a server from five clients."""
    load = Load(server, (opened(server), opened(server)))
    visits = [lambda one=one: load.visit(one) for one in IDS]
    steps = [*visits, load.create_event, load.move_money]
    clients = [Thread(target=load.repeat, args=(step,)) for step in steps]
    for client in clients:
        client.start()
    try:
        yield load
    finally:
        load.stopped.set()
        for client in clients:
            client.join()


def backed_up(folder: Path, within: Path) -> Path:
    status, out, err = run(folder, "backup", "--keep", "2", "--json", str(within))
    assert (status, err) == (0, "")
    return Path(json.loads(out)["backup"])


def test_a_backup_under_load_is_restored_with_every_acknowledged_view(tmp_path: Path) -> None:
    folder, restored = tmp_path / "data", tmp_path / "restored"
    (tmp_path / "backups").mkdir(mode=0o700)
    with running(folder, **WITH_TOKEN) as server, loaded(server) as load:
        load.wait_for(20)
        backed_up(folder, tmp_path / "backups")
        load.wait_for(40)
        least, events = load.acknowledged.copy(), list(load.events)
        made = backed_up(folder, tmp_path / "backups")
        most = load.asked.copy()
        load.wait_for(max(most.values()) + 1)
    assert load.errors == []
    assert run(restored, "restore", str(made))[0] == 0
    status, out, _ = run(restored, "check")
    assert status == 0, out
    for wallet in load.wallets:
        status, out, _ = run(restored, "statement", wallet, "--json")
        assert status == 0
        assert len(out.splitlines()) > 1
    with running(restored, **WITH_TOKEN) as server:
        shown = {one: server.peek(one) for one in IDS}
        assert all(least[one] <= shown[one] <= most[one] for one in IDS), (least, shown, most)
        for event in events:
            assert server.ask("GET", f"/api/v1/events/{event}", token=TOKEN)[0] == 200
        server.visit("a", 3)
        assert server.peek("a") == shown["a"] + 3
        assert {one: server.peek(one) for one in IDS[1:]} == {one: shown[one] for one in IDS[1:]}


def test_a_server_that_is_killed_during_a_backup_changes_nothing_in_it(tmp_path: Path) -> None:
    folder, restored = tmp_path / "data", tmp_path / "restored"
    with running(folder, **WITH_TOKEN) as server, loaded(server) as load:
        load.wait_for(20)
        fill_archive(folder)
        least = load.acknowledged.copy()
        process = start(folder, "backup", str(tmp_path / "backup"))
        wait_for_part(process, tmp_path, "backup")
        server.process.kill()
        assert process.communicate(timeout=PATIENCE_SECONDS)[1] == ""
        assert process.returncode == 0
        most = load.asked.copy()
    assert run(restored, "restore", str(tmp_path / "backup"))[0] == 0
    with running(restored, **WITH_TOKEN) as server:
        for one in IDS:
            assert least[one] <= server.peek(one) <= most[one]


def fill_archive(folder: Path) -> None:
    malformed = folder / "archive" / "journal" / "malformed"
    malformed.mkdir(parents=True)
    for number in range(OBJECTS):
        (malformed / f"{number}.jsonl.gz").touch()


def wait_for_part(process: Process, within: Path, name: str) -> None:
    """Wait until a command copies the archive."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not list(within.glob(f".{name}.*.part/archive")):
        assert time.monotonic() < deadline
        assert process.poll() is None


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a stopped vu-mi: one badge with 3 views, and a large archive."""
    folder = tmp_path_factory.mktemp("stopped") / "data"
    with running(folder) as server:
        server.visit("a", 3)
        assert server.stop()[0] == 0
    fill_archive(folder)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_backup_leaves_no_backup_and_the_next_one_works(
    stopped: Path, tmp_path: Path, how: signal.Signals
) -> None:
    process = start(stopped, "backup", str(tmp_path / "backup"))
    wait_for_part(process, tmp_path, "backup")
    process.send_signal(how)
    process.communicate(timeout=PATIENCE_SECONDS)
    if how is signal.SIGKILL:
        assert not (tmp_path / "backup").exists()
    else:
        assert (process.returncode, names(tmp_path)) == (130, [])
    assert run(stopped, "backup", str(tmp_path / "backup"))[0] == 0
    assert names(tmp_path) == ["backup"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("is_used", [False, True])
def test_an_interrupted_restore_changes_nothing_and_the_next_one_works(
    stopped: Path, tmp_path: Path, how: signal.Signals, *, is_used: bool
) -> None:
    """The backup of the operator is a data folder here; both are only read."""
    data = tmp_path / "data"
    if is_used:
        with running(data) as server:
            server.visit("b", 1)
            server.stop()
    before = names(data) if is_used else []
    process = start(data, "restore", "--aside", str(stopped))
    wait_for_part(process, tmp_path, "data")
    process.send_signal(how)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert data.exists() == is_used
    assert before == (names(data) if is_used else [])
    if how is signal.SIGTERM:
        assert (process.returncode, names(tmp_path)) == (130, ["data"] if is_used else [])
    assert run(data, "restore", "--aside", str(stopped))[0] == 0
    assert len(names(tmp_path)) == 1 + is_used
    with running(data) as server:
        assert (server.peek("a"), server.peek("b")) == (3, 0)


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_full_disk_is_reported_and_leaves_nothing(
    stopped: Path, tmp_path: Path, command: str
) -> None:
    new = tmp_path / "new"
    data, argument = (stopped, new) if command == "backup" else (new, stopped)
    size = (stopped / FILE).stat().st_size // 2
    status, out, err = limited(data, size, command, str(argument))
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "make room on" in err
    assert names(tmp_path) == []
