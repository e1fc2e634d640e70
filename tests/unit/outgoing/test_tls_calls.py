"""The client of users' URLs over TLS: the names and the authorities of certificates."""

from __future__ import annotations

import ssl
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509 import DNSName, IPAddress

from chalicelib.outgoing.http_client import HttpClient
from simulation.authority import Authority
from simulation.resources import Names
from tests.unit.outgoing.receivers import (
    LATE,
    LOOPBACK,
    OK,
    SHORT,
    Script,
    drips,
    post,
    receiver,
    silent,
)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.create(tmp_path)


def test_tls_verifies_the_name_of_a_connection_to_the_address(authority: Authority) -> None:
    names = Names(["127.0.0.1"], ["127.0.0.9"])
    with receiver(tls=authority.server(DNSName("hooks.example"))) as server:
        url = server.url("https", "HOOKS.example.")
        assert post(url, resolver=names, trust=authority.trusted) == 200
    assert server.names == ["hooks.example"]
    assert names.asked == [("hooks.example", server.port)]
    assert f"\r\nHost: hooks.example:{server.port}\r\n".encode() in server.requests[0]


ADDRESS = IPAddress(ip_address("127.0.0.1"))


@pytest.mark.parametrize(
    ("host", "certified", "is_known", "found"),
    [
        ("127.0.0.1", ADDRESS, True, ""),
        ("a.example", DNSName("other.example"), True, "Hostname mismatch"),
        ("a.example", DNSName("a.example"), False, "unable to get local issuer certificate"),
    ],
)
def test_a_certificate_of_a_known_authority_for_the_host_is_accepted_alone(
    authority: Authority, host: str, certified: DNSName | IPAddress, found: str, *, is_known: bool
) -> None:
    trust: dict[str, Any] = {"trust": authority.trusted} if is_known else {}
    with receiver(tls=authority.server(certified)) as server:
        url = server.url("https", host)
        answer = post(url, resolver=Names(["127.0.0.1"]), **trust)
        assert len(server.requests) == (not found)
    refusal = f"the certificate is not accepted: {found}"
    assert str(answer).startswith(refusal if found else "200")


@pytest.mark.parametrize(
    ("script", "is_secure", "found"),
    [
        (silent, False, LATE),
        (lambda connection: connection.sendall(OK), False, "TLS failed: "),
        (drips(b"HTTP/1.1 200 OK\r\nX: ", b"y"), True, LATE),
    ],
)
def test_a_server_that_is_slow_or_has_no_tls_is_an_error(
    authority: Authority, script: Script, found: str, *, is_secure: bool
) -> None:
    with receiver(script, authority.server(ADDRESS) if is_secure else None) as server:
        answer = post(server.url("https"), trust=authority.trusted, seconds=SHORT)
    assert str(answer).startswith(found)


def test_the_system_decides_which_certificates_to_trust_from_tls_1_2_on() -> None:
    context = HttpClient(LOOPBACK).trust()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
