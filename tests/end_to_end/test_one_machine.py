"""`python -m vumi` as a process, with real sockets, signals, `kill -9` and a real file."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.end_to_end.server import PATIENCE_SECONDS, Server, running, start
from vumi.storage.database import FILE

SHORT = {"VIEW_WINDOW_SECONDS": "1", "GRACE_SECONDS": "1"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a server for tests that leave it as it is; each has its own badges."""
    with running(tmp_path_factory.mktemp("served")) as server:
        yield server


def stored(folder: Path, badge_id: str) -> dict[str, object]:
    """Return the badge's summary in the file."""
    connection = sqlite3.connect(folder / FILE)
    row = connection.execute(
        "SELECT attributes FROM items WHERE pk = ? AND sk = 'VIEWS'", (f"USER#{badge_id}",)
    ).fetchone()
    connection.close()
    item: dict[str, object] = json.loads(row[0]) if row else {}
    return item


def wait_until_folded(folder: Path, badge_id: str, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while stored(folder, badge_id).get("count") != count:
        assert time.monotonic() < deadline, f"{stored(folder, badge_id)}, {count} expected"
        time.sleep(0.05)


def test_views_are_counted_and_folded_and_the_badge_never_dips(tmp_path: Path) -> None:
    with running(tmp_path, **SHORT) as server:
        assert server.badge("a/b")["message"] == "0"
        server.wait_for("a/b", 1)
        assert server.badge("a/b")["message"] == "1"
        server.wait_for("a/b", 2)
        shown = [2]
        while stored(tmp_path, "a/b").get("count") != 2:
            shown.append(server.peek("a/b"))
            time.sleep(0.005)
        assert set(shown) <= {2}
        assert server.peek("a/b") == 2
        assert server.stop()[0] == 0


def test_the_greeting_has_the_page_s_url_and_a_ready_markdown_line(server: Server) -> None:
    assert server.greeting == (
        f"vu-mi serves badges: make yours on http://127.0.0.1:{server.port}/\n"
    )
    assert server.process.stdout is not None
    assert server.process.stdout.readline() == (
        "Markdown, once it is reachable from outside: ![views]"
        f"(http://127.0.0.1:{server.port}/api/v1/views.svg?id=you%2Fyour-repo)\n"
    )


def test_hundreds_of_concurrent_requests_are_all_counted(server: Server) -> None:
    """400 requests from 40 threads to 4 badges: 100 each."""
    with ThreadPoolExecutor(40) as pool:
        list(pool.map(lambda n: server.badge(f"b{n % 4}"), range(400)))
    for badge in range(4):
        server.wait_for(f"b{badge}", 100)


class Visitors:
    """Threads that request a badge until they are stopped, and count the responses."""

    def __init__(self, server: Server, threads: int) -> None:
        self.attempted = 0
        self.acknowledged = 0
        self._server = server
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._visit) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def wait_for(self, acknowledged: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.acknowledged < acknowledged:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def leave(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _visit(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                self.attempted += 1
            try:
                body = self._server.badge("hot")
            except (OSError, http.client.HTTPException):
                return
            assert "isError" not in body
            with self._lock:
                self.acknowledged += 1


def test_nothing_is_lost_or_doubled_when_the_process_is_killed_under_load(tmp_path: Path) -> None:
    """The process is killed 3 times under load. A view without a response may count."""
    attempted = acknowledged = 0
    for _ in range(3):
        with running(tmp_path, **SHORT) as server:
            assert acknowledged <= _wait_until_settled(server, acknowledged) <= attempted
            visitors = Visitors(server, 16)
            visitors.wait_for(150)
            server.process.send_signal(signal.SIGKILL)
            visitors.leave()
            attempted += visitors.attempted
            acknowledged += visitors.acknowledged
    with running(tmp_path, **SHORT) as server:
        total = _wait_until_settled(server, acknowledged)
        assert acknowledged <= total <= attempted
        wait_until_folded(tmp_path, "hot", total)
        assert server.peek("hot") == total
        assert server.stop()[0] == 0


def _wait_until_settled(server: Server, least: int) -> int:
    """Wait until all queued views are counted; return the count, which is `least` or more."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    before, shown = -1, server.peek("hot")
    while shown < least or shown != before:
        assert time.monotonic() < deadline, f"{shown} shown, {least} acknowledged"
        time.sleep(0.3)
        before, shown = shown, server.peek("hot")
    return shown


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_cleanly_under_load(tmp_path: Path, how: signal.Signals) -> None:
    with running(tmp_path) as server:
        visitors = Visitors(server, 8)
        visitors.wait_for(50)
        status, out, err = server.stop(how)
        visitors.leave()
        assert status == 0, err
        assert out.endswith("vu-mi stopped; nothing is lost.\n")
        assert err == ""
    with running(tmp_path) as server:
        assert visitors.acknowledged <= _wait_until_settled(server, visitors.acknowledged)
        assert server.peek("hot") <= visitors.attempted


def test_a_second_instance_on_the_same_data_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        second = start(tmp_path)
        out, err = second.communicate(timeout=PATIENCE_SECONDS)
        assert (second.returncode, out) == (1, "")
        assert err == (
            f"vu-mi: vu-mi already runs on {tmp_path}/ (process {server.process.pid}):"
            " stop it, or set DATA to another folder\n"
        )
        assert server.peek("a") == 0


def test_a_killed_instance_leaves_no_lock(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        server.process.kill()
        server.process.wait()
    with running(tmp_path) as server:
        assert server.peek("a") == 0


def test_an_import_killed_at_any_moment_is_finished_by_the_next(tmp_path: Path) -> None:
    """The import of 5,000 badges is killed 3 times. Afterwards each badge has its count once."""
    with running(tmp_path) as server:
        server.stop()
    file = tmp_path / "counts.csv"
    file.write_text("".join(f"b{n},{n + 1}\n" for n in range(5000)))
    done = 0
    for _ in range(3):
        process = start(tmp_path, "import", str(file))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while process.poll() is None and _badges(tmp_path) <= done:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.kill()
        process.communicate()
        done = _badges(tmp_path)
    out, _ = start(tmp_path, "import", str(file)).communicate(timeout=PATIENCE_SECONDS)
    assert out == (f"{5000 - done} imported\n{done} unchanged\n0 replaced\n0 kept\n")
    with running(tmp_path) as server:
        assert [server.peek(f"b{n}") for n in (0, 1, 2500, 4999)] == [1, 2, 2501, 5000]


def _badges(folder: Path) -> int:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        [found] = connection.execute("SELECT count(*) FROM items WHERE sk = 'VIEWS'").fetchone()
    return int(found)


def test_a_busy_port_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        process = start(tmp_path, PORT=str(port))
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, out) == (1, "")
    assert err == (
        f"vu-mi: 127.0.0.1:{port} is in use: stop what listens there, or set PORT to another port\n"
    )


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("PORT", "http", "PORT must be a whole number from 0 to 65535, not 'http'"),
        ("DATA", "/dev/null/x", "set DATA to a folder that can be written"),
        ("HOST", "203.0.113.1", "can't listen on 203.0.113.1:0"),
        ("HOST", "a..b", "can't listen on a..b:0: no such host; set HOST and PORT"),
    ],
)
def test_a_wrong_setting_is_refused_and_named(
    tmp_path: Path, name: str, value: str, says: str
) -> None:
    process = start(tmp_path, **{name: value})
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, out) == (1, "")
    assert err.startswith("vu-mi: ")
    assert says in err
    assert err.count("\n") == 1
