"""nginx and Caddy as processes before a server of the tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.end_to_end.server import PATIENCE_SECONDS

NOTHING: Mapping[str, str] = MappingProxyType({})
NGINX = """
daemon off;
user root;
pid {folder}/nginx.pid;
events {{}}
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


def require(program: str) -> None:
    """Skip the test without a program that make can't install; on CI, fail."""
    if shutil.which(program) is None:
        missing = f"make can't install {program}: apt-get install {program}"
        (pytest.fail if "CI" in os.environ else pytest.skip)(missing)


def nginx(folder: Path, servers: str) -> Sequence[str]:
    """Return the command of an nginx with these servers."""
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, servers=servers))
    return ["nginx", "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy(folder: Path, configuration: str) -> Sequence[str]:
    """Return the command of a Caddy with this Caddyfile."""
    (folder / "Caddyfile").write_text(configuration)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


PROXIES: dict[str, Callable[[Path, str], Sequence[str]]] = {"nginx": nginx, "caddy": caddy}


@contextmanager
def started(
    command: Sequence[str],
    folder: Path,
    port: int,
    variables: Mapping[str, str] = NOTHING,
    is_ready: Callable[[], bool] = lambda: True,
) -> Iterator[None]:
    """Run a proxy; it accepts connections and is ready on entry, and is ended afterwards."""
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    environment = {**os.environ, **home, **variables}
    log = folder / "log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, env=environment, stdout=stderr, stderr=stderr)  # noqa: S603  our own words
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (accepts(port) and is_ready()):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS).close()
    except ConnectionRefusedError:
        return False
    return True
