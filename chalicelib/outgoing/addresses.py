"""The addresses that a user's URL may resolve to: public ones, and those the operator allows.

Sources: IANA's IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890, RFC 8190) and its
registries of multicast and IPv6 address space. A block that is not globally reachable is refused
completely, with the few anycast addresses in it that are.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_network,
)
from typing import TypeAlias

from chalicelib.settings import SettingsError

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

NOT_PUBLIC_IPV4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network (RFC 791)
            "10.0.0.0/8",  # private use (RFC 1918)
            "100.64.0.0/10",  # shared by carriers' NAT (RFC 6598)
            "127.0.0.0/8",  # loopback (RFC 1122)
            "168.63.129.16/32",  # the host of a virtual machine on Azure
            "169.254.0.0/16",  # link-local (RFC 3927); clouds' metadata at 169.254.169.254
            "172.16.0.0/12",  # private use (RFC 1918)
            "192.0.0.0/24",  # protocol assignments (RFC 6890)
            "192.0.2.0/24",  # documentation (RFC 5737)
            "192.88.99.0/24",  # relays of 6to4, deprecated (RFC 7526)
            "192.168.0.0/16",  # private use (RFC 1918)
            "198.18.0.0/15",  # benchmarking (RFC 2544)
            "198.51.100.0/24",  # documentation (RFC 5737)
            "203.0.113.0/24",  # documentation (RFC 5737)
            "224.0.0.0/4",  # multicast (RFC 5771)
            "240.0.0.0/4",  # reserved, and broadcast as its last (RFC 1112, RFC 8190)
        ),
    )
)

GLOBAL_UNICAST_IPV6 = IPv6Network("2000::/3")
"""The block that IANA assigns for unicast on the Internet.

It excludes `::/8` with loopback, IPv4-compatible and local NAT64 addresses, `100::/64` (discard),
`5f00::/16` (segment routing), `fc00::/7` (unique local, clouds' metadata at fd00:ec2::254),
`fe80::/10` (link-local), `fec0::/10` (site-local) and `ff00::/8` (multicast)."""

NOT_PUBLIC_IPV6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments (RFC 2928): Teredo, benchmarking, ORCHID
            "2001:db8::/32",  # documentation (RFC 3849)
            "2002::/16",  # 6to4, an IPv4 address behind a relay, deprecated (RFC 3056, RFC 7526)
            "3fff::/20",  # documentation (RFC 9637)
        ),
    )
)

NAT64 = IPv6Network("64:ff9b::/96")
"""The last 32 bits are the IPv4 address that is reached (RFC 6052)."""


class BadNetworkError(SettingsError):
    """A part of WEBHOOK_ALLOW is not a network. The message names it and says what is valid."""


def is_public(address: Address) -> bool:
    """Return whether an address is global unicast: the same host from everywhere."""
    plain = unwrapped(address)
    if isinstance(plain, IPv4Address):
        return not any(plain in network for network in NOT_PUBLIC_IPV4)
    if plain.scope_id is not None or plain not in GLOBAL_UNICAST_IPV6:
        return False
    return not any(plain in network for network in NOT_PUBLIC_IPV6)


def unwrapped(address: Address) -> Address:
    """Return the IPv4 address that an IPv4-mapped or NAT64 address reaches, or the address."""
    if isinstance(address, IPv4Address) or address.scope_id is not None:
        return address
    if address in NAT64:
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address


@dataclass(frozen=True, slots=True)
class Allowed:
    """Private networks that may be called, also over http and on any port."""

    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, setting: str) -> Allowed:
        """Parse comma-separated CIDRs; an empty text means none. Raises `BadNetworkError`."""
        parts = setting.split(",") if setting.strip() else []
        return cls(tuple(_parse_network(part.strip()) for part in parts))

    def __bool__(self) -> bool:
        return bool(self.networks)

    def __contains__(self, address: Address) -> bool:
        forms = {address, unwrapped(address)}
        return any(form in network for form in forms for network in self.networks)


def _parse_network(part: str) -> Network:
    try:
        return ip_network(part)
    except ValueError as reason:
        raise BadNetworkError(
            f"WEBHOOK_ALLOW must be comma-separated networks like 10.0.0.0/8 or fd00::/8, "
            f"not {part!r}: {reason}"
        ) from None
