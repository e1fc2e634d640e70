"""The addresses that may be called, in every notation."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.outgoing.urls import (
    NOT_PUBLIC,
    Address,
    Allowed,
    Network,
    is_public,
    unwrapped,
)
from chalicelib.settings import SettingsError

PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"),
    *("126.255.255.255", "128.0.0.0", "168.63.129.15", "168.63.129.17"),
    *("169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0"),
    *("192.88.98.255", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"),
    *("223.255.255.255", "2000::1", "2001:200::1", "2001:4860:4860::8888", "2001:db7:ffff::1"),
    *("2001:db9::1", "2003::1", "2606:4700:4700::1111", "2a00:1450::1", "3ffe:ffff::1"),
    *("3fff:1000::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"),
]

REFUSED = {
    "this network": ["0.0.0.0", "0.1.2.3", "::"],  # noqa: S104  nothing is bound
    "private": ["10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1"],
    "loopback": ["127.0.0.1", "127.255.255.255", "::1"],
    "link-local": ["169.254.0.1", "fe80::1", "febf::1"],
    "metadata": ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16"],
    "carriers' NAT": ["100.64.0.0", "100.127.255.255"],
    "protocol assignments": ["192.0.0.1", "192.0.0.9", "192.0.0.170", "2001:1::1", "2001:1ff::"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
    "benchmarking": ["198.18.0.1", "198.19.255.255", "2001:2::1"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "reserved": ["240.0.0.1", "255.255.255.254", "255.255.255.255", "4000::1", "200::1", "e000::"],
    "unique local": ["fc00::1", "fdff::1"],
    "site-local": ["fec0::1", "feff::1"],
    "discard": ["100::1", "100:0:0:1::1"],
    "segment routing": ["5f00::1"],
    "Teredo": ["2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    "ORCHID": ["2001:10::1", "2001:20::1", "2001:2f:ffff::1"],
    "6to4": ["2002:7f00:1::", "2002:a00:1::1", "2002:808:808::1", "192.88.99.1"],
    "IPv4-mapped": ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"],
    "IPv4-compatible": ["::127.0.0.1", "::8.8.8.8"],
    "NAT64": ["64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254"],
    "NAT64, local": ["64:ff9b:1::1", "64:ff9b:1:ffff::8.8.8.8", "64:ff9b:0:1::8.8.8.8"],
    "IPv4-translated": ["::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8"],
    "with a zone": ["fe80::1%eth0", "2606:4700:4700::1111%1", "64:ff9b::8.8.8.8%1"],
}


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_called(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    ("kind", "address"), [(kind, address) for kind, some in REFUSED.items() for address in some]
)
def test_no_other_address_may_be_called(kind: str, address: str) -> None:
    assert not is_public(ip_address(address)), kind


IPV4 = st.builds(IPv4Address, st.integers(0, 2**32 - 1))
IPV6 = st.builds(IPv6Address, st.integers(0, 2**128 - 1))


@given(st.sampled_from(NOT_PUBLIC), st.data())
def test_every_address_of_a_refused_network_is_refused(
    network: Network, data: st.DataObject
) -> None:
    first, last = network[0], network[-1]
    address = ip_address(data.draw(st.integers(int(first), int(last))))
    # A number below 2^32 would read as IPv4; no refused IPv6 network has one.
    assert address in network
    assert not is_public(address)


@given(IPV4)
def test_an_ipv4_address_is_judged_alike_in_every_form(address: IPv4Address) -> None:
    mapped = IPv6Address(f"::ffff:{address}")
    nat64 = IPv6Address(f"64:ff9b::{address}")
    assert is_public(mapped) == is_public(nat64) == is_public(address)
    assert unwrapped(mapped) == unwrapped(nat64) == address


@given(st.one_of(IPV4, IPV6))
def test_an_address_that_python_calls_private_is_not_public(address: Address) -> None:
    plain = unwrapped(address)
    if plain.is_private or plain.is_multicast or plain.is_reserved or plain.is_link_local:
        assert not is_public(address)


def test_nothing_is_allowed_unless_it_is_set() -> None:
    for setting in ("", "  "):
        allowed = Allowed.parse(setting)
        assert not allowed
        assert ip_address("127.0.0.1") not in allowed


def test_networks_of_both_versions_and_single_addresses_are_allowed() -> None:
    allowed = Allowed.parse("10.0.0.0/8, fd00::/8,192.0.2.7")
    assert allowed
    inside = ["10.0.0.1", "10.255.255.255", "fd12::1", "192.0.2.7"]
    outside = ["9.255.255.255", "11.0.0.0", "fc00::1", "192.0.2.8", "8.8.8.8"]
    assert all(ip_address(address) in allowed for address in inside)
    assert not any(ip_address(address) in allowed for address in outside)


def test_an_allowed_ipv4_network_is_allowed_in_every_form_that_reaches_it() -> None:
    allowed = Allowed.parse("127.0.0.0/8")
    assert ip_address("::ffff:127.0.0.1") in allowed
    assert ip_address("64:ff9b::127.0.0.1") in allowed
    assert ip_address("::127.0.0.1") not in allowed


def test_an_allowed_ipv6_network_may_be_one_of_mapped_addresses() -> None:
    assert ip_address("::ffff:127.0.0.1") in Allowed.parse("::ffff:127.0.0.0/104")


@pytest.mark.parametrize(
    ("setting", "bad"),
    [
        ("10.0.0.0/8,localhost", "'localhost'"),
        ("10.0.0.1/8", "not '10.0.0.1/8': 10.0.0.1/8 has host bits set"),
        ("10.0.0.0/33", "'10.0.0.0/33'"),
        ("10.0.0.0/8;fd00::/8", "'10.0.0.0/8;fd00::/8'"),
        ("10.0.0.0/8,", "''"),
        (",", "''"),
    ],
)
def test_a_part_that_is_not_a_network_is_named(setting: str, bad: str) -> None:
    with pytest.raises(SettingsError, match="must be comma-separated networks") as refused:
        Allowed.parse(setting)
    assert f"{bad}" in str(refused.value)


@given(st.text())
def test_a_setting_is_read_or_refused_with_our_own_error(setting: str) -> None:
    try:
        networks = Allowed.parse(setting).networks
    except SettingsError:
        return
    assert [ip_network(part.strip()) for part in setting.split(",") if part.strip()] == [*networks]
