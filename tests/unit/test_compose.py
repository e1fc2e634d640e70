"""The compose file: Caddy alone is reachable, and both services have only the rights they need.

The files of hosts have the volume, the port and the health of the image.
"""

from __future__ import annotations

import json
import tomllib
from ipaddress import ip_address, ip_network
from typing import Any

import yaml

from simulation.environment import ROOT

EXAMPLES = ROOT / "examples"
COMPOSE: dict[str, Any] = yaml.safe_load((EXAMPLES / "compose.yaml").read_text())
VU_MI, CADDY = (COMPOSE["services"][name] for name in ("vu-mi", "caddy"))


def test_clients_reach_only_caddy() -> None:
    assert "ports" not in VU_MI
    assert "network_mode" not in VU_MI
    assert {port.partition(":")[0] for port in CADDY["ports"]} == {"80", "443"}


def test_vu_mi_believes_the_address_of_caddy_alone() -> None:
    [network] = COMPOSE["networks"]
    addresses = [one["networks"][network]["ipv4_address"] for one in (CADDY, VU_MI)]
    assert VU_MI["environment"]["TRUSTED_PROXIES"] == addresses[0]
    [given] = COMPOSE["networks"][network]["ipam"]["config"]
    assert {ip_address(one) for one in addresses} < set(ip_network(given["subnet"]).hosts())


def test_services_write_only_to_their_volumes_and_have_no_rights_of_root() -> None:
    for service in (VU_MI, CADDY):
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert {"mem_limit", "pids_limit"} <= service.keys()
    assert "cap_add" not in VU_MI
    assert CADDY["cap_add"] == ["NET_BIND_SERVICE"]


HOSTS = EXAMPLES / "hosts"


def test_hosts_keep_the_volume_of_the_image_and_ask_for_its_health() -> None:
    fly = tomllib.loads((HOSTS / "fly.toml").read_text())
    [render] = yaml.safe_load((HOSTS / "render.yaml").read_text())["services"]
    railway = json.loads((HOSTS / "railway.json").read_text())
    image = (ROOT / "Containerfile").read_text()
    assert fly["mounts"]["destination"] == render["disk"]["mountPath"] == "/data"
    assert "\nVOLUME /data\n" in image
    assert f"\nEXPOSE {fly['http_service']['internal_port']}\n" in image
    [check] = fly["http_service"]["checks"]
    paths = {check["path"], render["healthCheckPath"], railway["deploy"]["healthcheckPath"]}
    assert paths == {"/healthz"}
