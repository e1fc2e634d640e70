"""The files of proxies that `vumi init` writes, checked by Caddy and nginx.

`test_systemd.py` runs those of systemd.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation import proxies
from simulation.environment import free_port
from tests.processes.programs import require, succeed
from vumi.cli.program import main

HOST = "views.example.org"


@pytest.fixture(params=[[], ["--systemd"]], ids=["port", "socket"])
def service(request: pytest.FixtureRequest) -> list[str]:
    options: list[str] = request.param
    return options


def test_caddy_accepts_its_file(service: list[str], tmp_path: Path) -> None:
    require("caddy")
    assert main(["init", *service, "--caddy", HOST, "--out", str(tmp_path)]) == 0
    command = ("caddy", "validate", "--adapter", "caddyfile", "--config", tmp_path / "Caddyfile")
    succeed(*command, env={"PATH": "/usr/bin", "HOME": str(tmp_path)})


def test_nginx_accepts_its_file(service: list[str], tmp_path: Path) -> None:
    """The certificate and the ports are others."""
    for program in ("nginx", "openssl"):
        require(program)
    assert main(["init", *service, "--nginx", HOST, "--out", str(tmp_path)]) == 0
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    issue = ("openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-subj", f"/CN={HOST}")
    curve = ("-pkeyopt", "ec_paramgen_curve:prime256v1")
    succeed(*issue, *curve, "-keyout", key, "-out", certificate)
    changes = {
        f"/etc/letsencrypt/live/{HOST}/fullchain.pem": str(certificate),
        f"/etc/letsencrypt/live/{HOST}/privkey.pem": str(key),
        "listen 80;": f"listen 127.0.0.1:{free_port()};",
        "listen 443 ": f"listen 127.0.0.1:{free_port()} ",
    }
    command = proxies.nginx_example(tmp_path, changes, tmp_path / "vu-mi.conf")
    succeed(*command, "-t")
