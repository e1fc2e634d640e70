"""The limits per client, and the address of a client, which only trusted proxies may give."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.resources import Action
from vumi.server.clients import (
    MAX_CLIENTS,
    MAX_PROXIES,
    MAX_REFUSAL_DELAY_SECONDS,
    REFUSAL_SECONDS,
    ClientLimits,
    Rate,
    RefusalPace,
    SharedCapacity,
    TooManyBodiesError,
    TrustedProxies,
    network_of,
    warn_of_exposure,
)
from vumi.server.connections import Limits
from vumi.server.sockets import UNIX

RATE = Rate(300, 60)


class Limited:
    """Limits of claims, at a time that the test sets."""

    def __init__(self, rate: Rate = RATE) -> None:
        self.now = 1_000.0
        self.limits = ClientLimits({Action.CLAIM: rate}, lambda: self.now)

    def claim(self, client: str = "192.0.2.1", times: int = 1) -> list[float]:
        return [self.limits.wait(Action.CLAIM, client) for _ in range(times)]


@pytest.mark.parametrize(
    ("claims", "pause", "waits"),
    [
        (0, 0.0, [0.0] * 300 + [0.2] * 100),
        (300, 0.2, [0.0, 0.2]),
        (300, 60.0, [0.0] * 300 + [0.2]),
        (300, 86_400.0, [0.0] * 300 + [0.2]),
    ],
    ids=["full", "one action later", "full again", "and no fuller"],
)
def test_a_bucket_has_its_actions_and_a_refused_one_makes_no_other_wait_longer(
    claims: int, pause: float, waits: list[float]
) -> None:
    limited = Limited()
    limited.claim(times=claims)
    limited.now += pause
    assert limited.claim(times=len(waits)) == waits


def test_clients_and_actions_have_their_own_buckets() -> None:
    limited = Limited(Rate(1, 60))
    assert limited.claim("192.0.2.1", 2) == [0.0, 60.0]
    assert limited.claim("192.0.2.2", 2) == [0.0, 60.0]
    assert limited.limits.refused == {Action.CLAIM: 2}
    assert limited.limits.wait(Action.REQUEST, "192.0.2.1") == 0.0, "not limited"
    assert limited.claim("", 9) == [0.0] * 9, "no address"


def test_the_client_that_has_the_fewest_actions_left_is_known() -> None:
    limited = Limited()
    assert limited.limits.left() == {"claim": 300}
    limited.claim("192.0.2.1", 7)
    limited.claim("2001:db8::1", 5)
    assert limited.limits.left() == {"claim": 293}
    limited.now += 60
    assert limited.limits.left() == {"claim": 300}


def test_the_bucket_that_was_unused_for_the_longest_time_is_dropped() -> None:
    """So the memory is bounded. A dropped bucket is full when its client comes again."""
    limited = Limited(Rate(2, 60))
    clients = [f"10.{number >> 8}.{number & 255}.1" for number in range(MAX_CLIENTS + 1)]
    oldest, second, *rest = clients
    for client in (oldest, second, *rest[:-1], oldest, rest[-1]):
        assert limited.claim(client) == [0.0]
    assert limited.claim(oldest) == [30.0], "kept, because it was used again"
    assert limited.claim(second, 3) == [0.0, 0.0, 30.0], "dropped"


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("a name", "a name"),
    ],
)
def test_ipv6_counts_by_its_network_and_mapped_ipv4_as_ipv4(address: str, client: str) -> None:
    assert network_of(address) == client
    limited = Limited(Rate(1, 60))
    assert [*limited.claim(address), *limited.claim(client.replace("/64", "9"))] == [0.0, 60.0]


NEIGHBOURS = [f"2001:db8:1:{number:x}::1" for number in range(1_024)]
"""Clients of one /48, of which each 256 are of one /56."""


@pytest.mark.parametrize(
    ("clients", "allowed"),
    [
        (NEIGHBOURS[:256], 20),
        (NEIGHBOURS, 40),
        ([f"192.0.2.{number}" for number in range(256)], 40),
        ([f"198.51.{number}.1" for number in range(9)], 90),
        (["10.0.0.1", "a name", "10.0.0.2", "another name"], 40),
    ],
)
def test_the_clients_of_one_network_share_its_bucket(clients: list[str], allowed: int) -> None:
    """A /56 has two shares, and a /48 and an IPv4 /24 have four."""
    limited = Limited(Rate(10, 60))
    waits = [wait for _ in range(10) for client in clients for wait in limited.claim(client)]
    assert waits.count(0.0) == allowed
    limited.now += 60
    assert limited.claim(clients[-1], 10) == [0.0] * 10


def test_an_action_that_a_network_refuses_takes_nothing_from_its_client() -> None:
    limited = Limited(Rate(1, 60))
    first, second, third = NEIGHBOURS[:3]
    assert [*limited.claim(first), *limited.claim(second)] == [0.0, 0.0]
    assert limited.claim(third) == [30.0]
    limited.now += 30
    assert limited.claim(third) == [0.0]


def test_a_client_that_others_push_out_does_not_start_again_with_a_full_bucket() -> None:
    """The bucket of its network stays as it is."""
    limited = Limited(Rate(1, 86_400))
    clients = ("2001:db8:1::1", "192.0.2.1")
    allowed = 0
    for push in range(6):
        allowed += sum(not wait for client in clients for wait in limited.claim(client))
        for number in range(push * MAX_CLIENTS // 2, (push + 1) * MAX_CLIENTS // 2):
            limited.claim(f"2001:db8:{2 + number // 2:x}:{number % 2:x}::1")
            limited.claim(f"10.{number >> 8}.{number & 255}.1")
    assert allowed == 2 + 4, "of a /56 and of a /24"


@given(
    st.integers(1, 50),
    st.integers(1, 60),
    st.lists(st.integers(0, 10_000_000), max_size=200),
)
def test_in_no_period_more_is_allowed_than_a_full_bucket_and_what_it_gains(
    actions: int, seconds: int, pauses: list[int]
) -> None:
    limited, allowed = Limited(Rate(actions, seconds)), list[float]()
    for pause in pauses:
        limited.now += pause / 1_000_000
        wait = limited.claim()[0]
        assert wait <= seconds
        if not wait:
            allowed.append(limited.now)
    for first, began in enumerate(allowed):
        for last, ended in enumerate(allowed[first:], 1):
            gained = (ended - began + 0.001) * actions / seconds
            assert last <= actions + gained + 0.001


def test_refusals_of_one_client_follow_each_other_and_wait_for_no_other_client() -> None:
    now = 5.0
    pace = RefusalPace(lambda: now)
    assert [pace.delay(f"2001:db8::{place}") for place in (1, 2)] == pytest.approx([0.0, 0.01])
    assert pace.delay("192.0.2.1") == 0.0
    now += 60.0
    delays = [pace.delay("2001:db8::1") for _ in range(Limits().share)]
    paced = [place * REFUSAL_SECONDS for place in range(len(delays))]
    assert delays == pytest.approx(paced), "those of all connections come one after another"
    assert max(pace.delay("2001:db8::1") for _ in range(1_000)) == MAX_REFUSAL_DELAY_SECONDS


def test_the_pace_remembers_a_bounded_number_of_clients() -> None:
    pace = RefusalPace(lambda: 5.0)
    pace.delay("192.0.2.1")
    for number in range(MAX_CLIENTS):
        pace.delay(str(number))
    assert pace.delay("192.0.2.1") == 0.0


# ---- bodies have bounds for all, and a client may hold as much as is free


def shares(capacity: SharedCapacity, client: str, size: int, held: ExitStack) -> bool:
    """Return whether a client has a share of a size, and hold it."""
    try:
        held.enter_context(capacity.share(client, size))
    except TooManyBodiesError:
        return False
    return True


def test_one_client_holds_at_most_half_of_the_capacity() -> None:
    capacity = SharedCapacity(100)
    with ExitStack() as held:
        assert [shares(capacity, "192.0.2.1", 10, held) for _ in range(6)] == [True] * 5 + [False]
        assert shares(capacity, "192.0.2.2", 20, held)
        assert capacity.free == 30
    assert capacity.free == 100
    with capacity.share("192.0.2.1", 100):
        assert capacity.free == 0


def test_the_addresses_of_an_ipv6_network_are_one_client() -> None:
    capacity = SharedCapacity(100)
    with capacity.share("2001:db8::1", 50), pytest.raises(TooManyBodiesError):
        capacity.share("2001:db8::2", 10).__enter__()


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
