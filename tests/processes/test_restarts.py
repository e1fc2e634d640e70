"""A restart behind the proxies of the examples, as systemd restarts the service.

`Manager` is systemd's part: it has the socket, and gives it to each process.
"""

from __future__ import annotations

import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from simulation import server_process
from simulation.environment import ROOT
from tests.processes.programs import PATIENCE_SECONDS
from tests.processes.test_proxy_examples import COMMANDS, SITE, Site, proxied

CLIENTS = 8
RESTARTS = 3
VIEWS_BETWEEN = 100
"""The views before each restart, and after the last one."""
SERVE = "export LISTEN_PID=$$ LISTEN_FDS=1; exec 3<&{0} {0}<&-; exec {1} -m vumi serve"


@dataclass
class Manager:
    """A service manager that listens at a socket, and starts the server with it."""

    folder: Path
    listening: socket.socket

    def start(self) -> subprocess.Popen[bytes]:
        """Start the server, and return while it starts."""
        given = self.listening.fileno()
        return subprocess.Popen(  # noqa: S603  our own words
            ["bash", "-c", SERVE.format(given, sys.executable)],  # noqa: S607
            cwd=ROOT,
            env=server_process.environment(
                self.folder / "data", {"HOST": f"unix:{self.folder}/socket"}
            ),
            stdout=subprocess.DEVNULL,
            pass_fds=[given],
        )


@contextmanager
def managing(folder: Path) -> Iterator[Manager]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/socket")
        listening.listen()
        yield Manager(folder, listening)


@dataclass
class Clients:
    """Visitors of one badge, who count what they get."""

    site: Site
    answers: Counter[int] = field(default_factory=Counter)
    done: threading.Event = field(default_factory=threading.Event)

    def visit(self) -> None:
        trusting = ssl.create_default_context(cafile=self.site.authority)
        while not self.done.is_set():
            self.answers[self.request("", trusting)[0]] += 1

    def request(self, query: str, trusting: ssl.SSLContext) -> tuple[int, bytes]:
        """Request the badge over TLS for the name of the site."""
        plain = socket.create_connection(("127.0.0.1", self.site.port), PATIENCE_SECONDS)
        connection = http.client.HTTPConnection(SITE)
        connection.sock = trusting.wrap_socket(plain, server_hostname=SITE)
        with closing(connection):
            connection.request("GET", f"/api/v1/views?id=restarted&format=plain{query}")
            response = connection.getresponse()
            return response.status, response.read()

    def wait_for(self, more: int) -> None:
        enough, deadline = self.answers.total() + more, time.monotonic() + PATIENCE_SECONDS
        while self.answers.total() < enough:
            assert time.monotonic() < deadline
            time.sleep(0.01)


@contextmanager
def visiting(clients: Clients) -> Iterator[None]:
    """Visit the badge concurrently until the block ends."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        visits = [pool.submit(clients.visit) for _ in range(CLIENTS)]
        try:
            yield
        finally:
            clients.done.set()
    for visit in visits:
        visit.result()


@pytest.mark.parametrize("name", COMMANDS)
def test_no_request_fails_and_none_counts_twice_while_the_server_restarts(
    name: str, tmp_path: Path
) -> None:
    socket_path = f"unix:{tmp_path}/socket"
    with managing(tmp_path) as manager, proxied(name, socket_path, tmp_path) as site:
        clients, process = Clients(site), manager.start()
        try:
            with visiting(clients):
                for _ in range(RESTARTS):
                    clients.wait_for(VIEWS_BETWEEN)
                    process.send_signal(signal.SIGTERM)
                    assert process.wait(PATIENCE_SECONDS) == 0
                    process = manager.start()
                clients.wait_for(VIEWS_BETWEEN)
            trusting = ssl.create_default_context(cafile=site.authority)
            shown = clients.request("&peek=1", trusting)[1]
        finally:
            process.kill()
            process.wait()
    total = clients.answers.total()
    assert total >= (RESTARTS + 1) * VIEWS_BETWEEN
    assert clients.answers == {200: total}
    assert json.loads(shown)["message"] == str(total)
