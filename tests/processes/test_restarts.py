"""A restart behind the proxies of the examples, as systemd restarts the service.

`managing` is systemd's part: it has the socket, and gives it to each process.
"""

from __future__ import annotations

import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from simulation import server_process
from simulation.environment import ROOT
from tests.processes.programs import PATIENCE_SECONDS
from tests.processes.test_one_machine import visiting
from tests.processes.test_proxy_examples import COMMANDS, SITE, Site, proxied

CLIENTS = 8
RESTARTS = 3
VIEWS_BETWEEN = 100
"""The views before each restart, and after the last one."""
SERVE = "export LISTEN_PID=$$ LISTEN_FDS=1; exec 3<&{0} {0}<&-; exec {1} -m vumi serve"


@contextmanager
def managing(folder: Path) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Listen at a socket; yield the function that starts the server with it."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/socket")
        listening.listen()
        given = listening.fileno()
        yield lambda: subprocess.Popen(  # noqa: S603  our own words
            ["bash", "-c", SERVE.format(given, sys.executable)],  # noqa: S607
            cwd=ROOT,
            env=server_process.environment(folder / "data", {"HOST": f"unix:{folder}/socket"}),
            stdout=subprocess.DEVNULL,
            pass_fds=[given],
        )


def visit(site: Site, trusting: ssl.SSLContext, query: str = "") -> str:
    """Request the badge over TLS for the name of the site; return its message."""
    plain = socket.create_connection(("127.0.0.1", site.port), PATIENCE_SECONDS)
    connection = http.client.HTTPConnection(SITE)
    connection.sock = trusting.wrap_socket(plain, server_hostname=SITE)
    with closing(connection):
        connection.request("GET", f"/api/v1/views?id=restarted&format=plain{query}")
        response = connection.getresponse()
        assert response.status == 200
        return str(json.load(response)["message"])


@pytest.mark.parametrize("name", COMMANDS)
def test_no_request_fails_and_none_counts_twice_while_the_server_restarts(
    name: str, tmp_path: Path
) -> None:
    socket_path = f"unix:{tmp_path}/socket"
    with managing(tmp_path) as start, proxied(name, socket_path, tmp_path) as site:
        trusting, process = ssl.create_default_context(cafile=site.authority), start()
        try:
            with visiting(partial(visit, site, trusting), CLIENTS) as visitors:
                for _ in range(RESTARTS):
                    visitors.wait_for(visitors.acknowledged + VIEWS_BETWEEN)
                    process.send_signal(signal.SIGTERM)
                    assert process.wait(PATIENCE_SECONDS) == 0
                    process = start()
                visitors.wait_for(visitors.acknowledged + VIEWS_BETWEEN)
            shown = visit(site, trusting, "&peek=1")
        finally:
            process.kill()
            process.wait()
    assert visitors.acknowledged == visitors.attempted
    assert shown == str(visitors.attempted)
