"""The address of a client, which only trusted proxies may give."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from vumi.server.clients import MAX_PROXIES, TrustedProxies, warn_of_exposure
from vumi.server.sockets import UNIX

PROXIES = TrustedProxies.parse("10.0.0.0/8, 192.0.2.7, fd00::/8")


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("198.51.100.1", "", "198.51.100.1"),
        ("198.51.100.1", "203.0.113.9", "198.51.100.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("fd00::1", "2001:db8::1", "2001:db8::1"),
        ("10.0.0.1", "::ffff:203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "198.51.100.1, 203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "203.0.113.9, 10.1.1.1,192.0.2.7", "203.0.113.9"),
        ("10.0.0.1", "198.51.100.1,203.0.113.9 ,\t10.1.1.1", "203.0.113.9"),
        ("10.0.0.1", "10.2.2.2, 10.1.1.1", "10.2.2.2"),
        ("10.0.0.1", "203.0.113.9, 192.0.2.8", "192.0.2.8"),
    ],
)
def test_the_client_is_the_rightmost_address_that_is_not_trusted(
    peer: str, forwarded: str, client: str
) -> None:
    assert PROXIES.client_of(peer, forwarded) == client


@pytest.mark.parametrize(
    "malformed", ["unknown", "", "203.0.113.9:80", "[2001:db8::1]", "1.2.3", "_hidden", "'"]
)
def test_a_malformed_entry_ends_the_search_at_the_last_trusted_one(malformed: str) -> None:
    assert PROXIES.client_of("10.0.0.1", f"203.0.113.9, {malformed}") == "10.0.0.1"
    assert PROXIES.client_of("10.0.0.1", f"203.0.113.9, {malformed}, 10.1.1.1") == "10.1.1.1"


def test_a_long_header_is_read_up_to_a_number_of_proxies() -> None:
    """So a client that adds thousands of trusted addresses costs no more than others."""
    trusted = ", ".join(f"10.1.1.{number}" for number in range(MAX_PROXIES))
    assert PROXIES.client_of("10.0.0.1", f"203.0.113.9, {trusted}") == "10.1.1.0"
    assert PROXIES.client_of("10.0.0.1", "203.0.113.9, " + trusted[10:]) == "203.0.113.9"


def test_nobody_is_trusted_by_default() -> None:
    assert TrustedProxies().client_of("10.0.0.1", "203.0.113.9") == "10.0.0.1"
    assert TrustedProxies().client_of(UNIX, "203.0.113.9") == UNIX
    assert TrustedProxies.parse(" , ") == TrustedProxies()


def test_the_peer_at_a_unix_socket_is_trusted_if_the_server_has_one() -> None:
    """Without an address from it, all of its requests are one client's."""
    assert TrustedProxies(unix=True).client_of(UNIX, "203.0.113.9") == "203.0.113.9"
    assert TrustedProxies(unix=True).client_of(UNIX, "") == UNIX
    both = replace(PROXIES, unix=True)
    assert both.client_of(UNIX, "203.0.113.9, 10.0.0.1") == "203.0.113.9"
    assert both.client_of(UNIX, "203.0.113.9, x") == UNIX
    assert both.client_of("10.0.0.1", "203.0.113.9, unix") == "10.0.0.1"
    assert PROXIES.client_of(UNIX, "203.0.113.9") == UNIX


@pytest.mark.parametrize("wrong", ["10.0.0.0/33", "10.0.0.1/8", "proxy", "unix", "/run/x.sock"])
def test_a_malformed_network_is_refused_with_the_valid_forms(wrong: str) -> None:
    message = f"must be networks like .*, separated by commas, not '{wrong}': "
    with pytest.raises(ValueError, match=message):
        TrustedProxies.parse(f"10.0.0.0/8, {wrong}")


@pytest.mark.parametrize(
    ("hosts", "proxies", "exposed"),
    [
        (["127.0.0.1", "::1"], "", []),
        (["0.0.0.0"], "", ["0.0.0.0"]),  # noqa: S104  only named
        (["::1", "192.0.2.7", "fe80::1%lo"], "", ["192.0.2.7", "fe80::1%lo"]),
        (["0.0.0.0"], "10.0.0.0/8", []),  # noqa: S104  only named
        ([], "", []),
    ],
)
def test_an_address_that_others_reach_without_a_proxy_is_logged(
    hosts: list[str], proxies: str, exposed: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "vu-mi"):
        warn_of_exposure(hosts, TrustedProxies.parse(proxies))
    logged = [(one.message, one.__dict__["fields"]["addresses"]) for one in caplog.records]
    assert logged == ([("plain_http_exposed", exposed)] if exposed else [])
