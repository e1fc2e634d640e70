"""The proxies whose `X-Forwarded-For` is believed, and the address of a client."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TypeAlias

from chalicelib import telemetry
from chalicelib.settings import parts_of
from vumi.server.sockets import UNIX

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

MAX_PROXIES = 10
"""Addresses of a header that are read. A request has passed fewer proxies."""


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The networks of trusted proxies; `unix` trusts the peer at a Unix socket, too."""

    networks: tuple[Network, ...] = ()
    unix: bool = False

    @classmethod
    def parse(cls, setting: str) -> TrustedProxies:
        """Parse the setting TRUSTED_PROXIES. Raises `ValueError`."""
        return cls(tuple(map(_parse_network, parts_of(setting))))

    def client_of(self, peer: str, forwarded: str) -> str:
        """Return the address of the client, or `UNIX` if the proxy does not tell it.

        `forwarded` is the header. Each proxy appends the address of its own peer, so only the
        addresses that trusted proxies have appended are believed: from the right, up to the first
        one that is not trusted. A malformed one ends the search too.
        """
        if not (self.networks or self.unix):
            return peer
        client = peer
        for given in reversed(forwarded.rsplit(",", MAX_PROXIES)[-MAX_PROXIES:]):
            address = parse_address(given.strip())
            if address is None or not self.trusts(client):
                break
            client = str(address)
        return client

    def trusts(self, client: str) -> bool:
        """Return whether an address is a trusted proxy's."""
        address = parse_address(client)
        if address is None:
            return self.unix and client == UNIX
        return any(address in network for network in self.networks)


def warn_of_exposure(hosts: Iterable[str], proxies: TrustedProxies) -> None:
    """Log if other machines reach the server without a proxy, which would end TLS."""
    exposed = [host for host in hosts if not ip_address(host.partition("%")[0]).is_loopback]
    if exposed and not proxies.networks:
        telemetry.event(
            logging.WARNING,
            "plain_http_exposed",
            addresses=exposed,
            fix="put a proxy with TLS before it and name its network in TRUSTED_PROXIES, or unset"
            " HOST",
        )


def parse_address(given: str) -> Address | None:
    """Return an address, as IPv4 if it is mapped to IPv6, or None for any other text."""
    try:
        address = ip_address(given)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _parse_network(part: str) -> Network:
    try:
        return ip_network(part)
    except ValueError as reason:
        raise ValueError(
            "must be networks like 10.0.0.0/8 or fd00::/8, separated by commas, not"
            f" {part!r}: {reason}"
        ) from None
