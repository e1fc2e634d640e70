"""Programs as processes beside a server, such as nginx and Caddy before it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from simulation.environment import ROOT
from simulation.server_process import START_SECONDS

EXAMPLES = ROOT / "examples"

NOTHING: Mapping[str, str] = MappingProxyType({})
NGINX = """
daemon off;
user root;
pid {folder}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {servers}
}}
"""
"""A configuration that writes only to its folder. Its workers read the folders of the tests."""


def nginx(folder: Path, servers: str) -> Sequence[str]:
    """Return the command of an nginx with these servers."""
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, servers=servers))
    return ["nginx", "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy(folder: Path, configuration: str) -> Sequence[str]:
    """Return the command of a Caddy with this Caddyfile."""
    (folder / "Caddyfile").write_text(configuration)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


CADDY = """
	admin off
	local_certs
	skip_install_trust
	default_bind 127.0.0.1
	http_port {plain}
	https_port {port}
"""
"""Global options: a certificate of Caddy's own authority, and other ports."""


def nginx_example(
    folder: Path, changes: Mapping[str, str], example: Path = EXAMPLES / "nginx.conf"
) -> Sequence[str]:
    """Return the command of an nginx with the example, in which some words are others."""
    text = example.read_text()
    for old, new in {
        "    listen [::]:80;\n": "",
        "    listen [::]:443 ssl http2;\n": "",
        **changes,
    }.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return nginx(folder, text)


def caddy_example(
    folder: Path, port: int, plain: int, example: Path = EXAMPLES / "Caddyfile"
) -> Sequence[str]:
    """Return the command of a Caddy with the example, on a port for HTTPS and one for HTTP."""
    text = example.read_text()
    assert text.count("\n{\n") == 1
    options = CADDY.format(port=port, plain=plain)
    return caddy(folder, text.replace("\n{\n", "\n{" + options))


PROXIES: dict[str, Callable[[Path, str], Sequence[str]]] = {"nginx": nginx, "caddy": caddy}


@contextmanager
def started(
    command: Sequence[str | Path],
    folder: Path,
    port: int,
    variables: Mapping[str, str] = NOTHING,
    is_ready: Callable[[], bool] = lambda: True,
) -> Iterator[None]:
    """Run a program in a folder; it is ready on entry, and is ended afterwards."""
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    environment = {**os.environ, **home, **variables}
    log = folder / "log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(  # noqa: S603  our own words
            command, cwd=folder, env=environment, stdout=stderr, stderr=stderr
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not (accepts(port) and is_ready()):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def accepts(port: int) -> bool:
    """Return whether a program listens on a port."""
    try:
        socket.create_connection(("127.0.0.1", port), START_SECONDS).close()
    except ConnectionRefusedError:
        return False
    return True
