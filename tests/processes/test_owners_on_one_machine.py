"""The proof of a badge's owner on a real `python -m vumi`, with a real host of files.

The host has HTTP and HTTPS. The server looks where its setting `PROOFS` says.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from simulation.authority import Authority
from tests.processes.hosts import ID, hosting
from tests.processes.programs import Server, running

BADGES = "/api/v1/badges"
KEY = "k" * 43


def claim(server: Server, badge_id: str, **fields: Any) -> tuple[int, Any]:
    return server.ask("POST", BADGES, {"id": badge_id, **fields})


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_badge_with_views_is_proven(tmp_path: Path, scheme: str) -> None:
    authority = Authority.create(tmp_path)
    tls = authority.server(x509.IPAddress(ip_address("127.0.0.1"))) if scheme == "https" else None
    data, trust = tmp_path / "data", {"SSL_CERT_FILE": str(authority.file())}
    with hosting(tls) as host, running(data, **host.proof_settings(scheme), **trust) as server:
        assert server.badge(ID)["message"] == "0"
        status, asked = claim(server, ID, proof=True)
        assert status == 202
        assert asked["url"] == f"{scheme}://127.0.0.1:{host.port}/{ID}/.vu-mi"
        host.files[f"/{ID}/.vu-mi"] = f"# badges\n{asked['challenge']}\n"
        secret = claim(server, ID, proof=asked["proof"])[1]["secret"]
        assert host.asked == [f"/{ID}/.vu-mi"]
        shown = server.ask("GET", f"{BADGES}?id={ID}", token=secret)[1]
        assert (shown["count"], shown["proven"]) == (1, ID)
        status, out, err = server.stop()
    assert status == 0
    written = [out.encode(), err.encode(), *(p.read_bytes() for p in data.iterdir() if p.is_file())]
    for told in (secret, asked["proof"]):
        assert not [text for text in written if told.encode() in text]


def test_hosts_that_hang_leave_badges_alone(tmp_path: Path) -> None:
    """Four fetches from one host may wait; others are refused, and badges are counted meanwhile."""
    with (
        hosting() as host,
        running(tmp_path, **host.proof_settings()) as server,
        ThreadPoolExecutor(12) as clients,
    ):
        claims = [clients.submit(claim, server, f"hang/{n}", proof=KEY) for n in range(12)]
        while wait(claims, 0.05).not_done:
            server.badge(ID)
        answers = [one.result() for one in claims]
        found = [refused["error"].get("found") or str(status) for status, refused in answers]
        assert sorted(found) == [*["503"] * 8, *["no response within 5 s"] * 4]
        assert len(host.asked) == 4
        assert server.peek(ID) > 0


def test_a_stranger_reaches_no_private_host(tmp_path: Path) -> None:
    """Also if webhooks may call it, because a stranger chooses the host of the id."""
    with running(tmp_path, WEBHOOK_ALLOW="127.0.0.0/8,::1") as server:
        for badge_id in ("https://localhost/", "https://127.0.0.1/", "https://[::1]/"):
            status, refused = claim(server, badge_id, proof=KEY)
            assert (status, refused["error"]["code"]) == (400, "not_provable")
