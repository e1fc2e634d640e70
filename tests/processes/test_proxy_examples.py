"""The example files of nginx and Caddy, as `vumi init` writes them and an operator would run them.

Only ports, paths of certificates and the upstream are others. curl is the client, by HTTP/2.
"""

from __future__ import annotations

import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socketserver import StreamRequestHandler
from typing import Any

import pytest

from simulation import proxies, server_process
from simulation.environment import ROOT, free_port
from simulation.loopback import serving
from simulation.server_process import killed
from tests.processes.programs import PATIENCE_SECONDS, finish, require, running, start, succeed
from tests.processes.test_one_machine import Visitors
from vumi.cli.program import main
from vumi.cli.setup import PORT, SOCKET

SITE = "views.example.org"
NEW_IDS = 3
"""The new ids that one client address may have a minute."""
CUT_SHORT = b"HTTP/1.1 200 OK\r\nContent-Type: image/svg+xml\r\nContent-Length: 99\r\n\r\n<svg"
"""The answer of a server that is killed while it sends."""
CUT_SHORT_CODES = (18, 92)
"""The exit statuses of curl for such an answer, by HTTP/1.1 and HTTP/2."""
VISITOR = "127.9.8.7"


@dataclass(frozen=True)
class Site:
    """A proxy, with its two ports and the certificate that its clients trust."""

    port: int
    plain: int
    authority: Path

    def curl(
        self,
        path: str,
        *options: str,
        port: int | None = None,
        body: str = "",
        allowed: Sequence[int] = (),
    ) -> tuple[str, str]:
        """Request a path; return the body, and the version, the status and the new location."""
        scheme = "https" if port is None else "http"
        finished = finish(
            *("curl", "--silent", "--show-error", "--noproxy", "*", "--http2", *options),
            *("--cacert", self.authority, "--connect-to", f"::127.0.0.1:{port or self.port}"),
            *("--write-out", "\n%{http_version} %{http_code} %{redirect_url}"),
            f"{scheme}://{SITE}{path}",
            given=body,
        )
        assert finished.returncode in {0, *allowed}, finished.stderr
        body, _, written = finished.stdout.rpartition("\n")
        return body, written.strip()

    def has_certificate(self) -> bool:
        """Return whether the proxy has the certificate that Caddy issues after its start."""
        try:
            trusting = ssl.create_default_context(cafile=self.authority)
            with socket.create_connection(("127.0.0.1", self.port), PATIENCE_SECONDS) as plain:
                trusting.wrap_socket(plain, server_hostname=SITE).close()
        except (FileNotFoundError, ssl.SSLError, ConnectionResetError):
            return False
        return True

    def badge(self, path: str, *options: str) -> dict[str, Any]:
        body, written = self.curl(path, *options)
        assert written == "2 200"
        badge: dict[str, Any] = json.loads(body)
        return badge


def written(folder: Path, proxy: str, upstream: str) -> Path:
    """Write the file of a proxy before a server at a port or at a socket; return its path."""
    service = ["--systemd"] if upstream.startswith("unix:") else []
    assert main(["init", *service, proxy, SITE, "--out", str(folder / "setup")]) == 0
    return folder / "setup" / {"--nginx": "vu-mi.conf", "--caddy": "Caddyfile"}[proxy]


def nginx(folder: Path, upstream: str, site: Site) -> Sequence[str]:
    key = folder / "key.pem"
    succeed(
        *("openssl", "req", "-x509", "-nodes", "-newkey", "ec"),
        *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2", "-subj", f"/CN={SITE}"),
        *("-addext", f"subjectAltName=DNS:{SITE}", "-keyout", key, "-out", site.authority),
    )
    certificates = f"/etc/letsencrypt/live/{SITE}"
    changes = {
        "listen 80;": f"listen 127.0.0.1:{site.plain};",
        "listen 443 ": f"listen 127.0.0.1:{site.port} ",
        f"{certificates}/fullchain.pem": str(site.authority),
        f"{certificates}/privkey.pem": str(key),
        f"server {SOCKET if upstream.startswith('unix:') else PORT};": f"server {upstream};",
    }
    return proxies.nginx_example(folder, changes, written(folder, "--nginx", upstream))


def caddy(folder: Path, upstream: str, site: Site) -> Sequence[str]:
    example = written(folder, "--caddy", upstream)
    return proxies.caddy_example(folder, site.port, site.plain, example)


COMMANDS = {"nginx": nginx, "caddy": caddy}
AUTHORITIES = {"nginx": "certificate.pem", "caddy": "caddy/pki/authorities/local/root.crt"}


LIMITS = {"CLIENT_NEW_IDS_PER_MINUTE": str(NEW_IDS)}


@contextmanager
def on_a_port(folder: Path) -> Iterator[str]:
    with running(folder, TRUSTED_PROXIES="127.0.0.1", **LIMITS) as server:
        yield f"{server.host}:{server.port}"


@contextmanager
def on_a_unix_socket(folder: Path) -> Iterator[str]:
    with killed(start(folder, HOST=f"unix:{folder}/socket", **LIMITS)) as process:
        assert process.stdout
        assert process.stdout.readline()
        yield f"unix:{folder}/socket"


@pytest.fixture(scope="module", params=[on_a_port, on_a_unix_socket])
def upstream(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Return the address of a server, in the words of nginx."""
    with request.param(tmp_path_factory.mktemp("data")) as address:
        yield address


@contextmanager
def proxied(name: str, upstream: str, folder: Path) -> Iterator[Site]:
    """Run the example of a proxy before an upstream."""
    for program in (name, "curl", "openssl"):
        require(program)
    made = Site(free_port(), free_port(), folder / AUTHORITIES[name])
    command = COMMANDS[name](folder, upstream, made)
    variables = {"UPSTREAM": upstream.replace("unix:", "unix/")}
    with proxies.started(command, folder, made.port, variables, made.has_certificate):
        yield made


@pytest.fixture(scope="module", params=COMMANDS)
def site(
    request: pytest.FixtureRequest, upstream: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    with proxied(request.param, upstream, tmp_path_factory.mktemp(request.param)) as made:
        yield made


class CutShort(StreamRequestHandler):
    """A server that ends each connection within its answer."""

    def handle(self) -> None:
        self.request.recv(65_536)
        self.wfile.write(CUT_SHORT)


@contextmanager
def dying() -> Iterator[str]:
    with serving(CutShort) as port:
        yield f"127.0.0.1:{port}"


@contextmanager
def killed_on_a_unix_socket(folder: Path) -> Iterator[str]:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(f"{folder}/socket")
    yield f"unix:{folder}/socket"


DOWN: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "port": lambda _: nullcontext(f"127.0.0.1:{free_port()}"),
    "dying": lambda _: dying(),
    "socket": killed_on_a_unix_socket,
}


@pytest.mark.parametrize("down", DOWN)
@pytest.mark.parametrize("name", COMMANDS)
def test_no_log_names_a_visitor_while_the_server_is_down(
    name: str, down: str, tmp_path: Path
) -> None:
    visitor = ("--interface", VISITOR, "--referer", "https://referrer.example/", "-A", "Eve")
    paths = ("/api/v1/views.svg?id=octocat", "/badges/api/v1/views.svg?id=octocat")
    with DOWN[down](tmp_path) as upstream, proxied(name, upstream, tmp_path) as made:
        with ThreadPoolExecutor() as pool:  # Caddy tries for 10 s
            list(pool.map(lambda path: made.curl(path, *visitor, allowed=CUT_SHORT_CODES), paths))
        made.curl("/.well-known/acme-challenge/octocat", *visitor, port=made.plain)
    log = (tmp_path / "log").read_text()
    assert not [mark for mark in (VISITOR, "octocat", "referrer", "Eve") if mark in log]


def test_badges_are_served_by_http_2_with_and_without_the_prefix(site: Site) -> None:
    query = f"/api/v1/views?id=prefix%2F{site.port}"
    shown = [site.badge(f"{prefix}{query}")["message"] for prefix in ("", "/badges", "")]
    assert shown == ["0", "1", "2"]


def test_the_page_is_under_the_prefix_and_plain_http_is_redirected(site: Site) -> None:
    body, written = site.curl("/badges/")
    assert (body[:15].lower(), written) == ("<!doctype html>", "2 200")
    assert site.curl("/badges")[1].endswith("/badges/")
    path = "/api/v1/views?id=a%2Fb"
    version, status, location = site.curl(path, port=site.plain)[1].split()
    assert (version, status in {"301", "308"}) == ("1.1", True)
    assert (location[: len(f"https://{SITE}")], location[-len(path) :]) == (f"https://{SITE}", path)


def test_each_client_has_limits_of_its_own(site: Site) -> None:
    """Clients connect from other addresses of loopback."""

    def view(number: int, *options: str) -> bool:
        badge = site.badge(f"/api/v1/views?id=limits%2F{site.port}%2F{number}", *options)
        return "isError" not in badge

    network = f"127.{site.port // 256}.{site.port % 256}"  # other sites have the same upstream
    busy, other = (("--interface", f"{network}.{last}") for last in (2, 3))
    assert [view(number, *busy) for number in range(NEW_IDS + 1)] == [True] * NEW_IDS + [False]
    assert view(NEW_IDS + 1, *other)
    assert not view(NEW_IDS + 2, *busy, "--header", "X-Forwarded-For: 127.0.9.9")


def test_a_body_of_the_largest_size_passes(site: Site) -> None:
    _, written = site.curl("/api/v1/events", "--data-binary", "@-", body="x" * 262_144)
    assert written == "2 401"


# ---- restarts of the service

CLIENTS = 8
RESTARTS = 3
VIEWS_BETWEEN = 100
"""The views before each restart, and after the last one."""
SERVE = "export LISTEN_PID=$$ LISTEN_FDS=1; exec 3<&{0} {0}<&-; exec {1} -m vumi serve"


@contextmanager
def managing(folder: Path) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Listen at a socket as systemd does; yield the function that starts the server with it."""
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
            with Visitors(partial(visit, site, trusting), CLIENTS) as visitors:
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
