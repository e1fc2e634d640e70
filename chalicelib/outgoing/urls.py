"""The URLs of users: they are parsed, resolved, and refused if they may not be called.

A URL is checked when the event is created (`check_url`, `permitted`) and again when it is delivered
(`webhooks.Sender`), because the name may resolve to another address by then. Its addresses must be
public, or those that the operator allows.

Sources: IANA's IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890, RFC 8190) and its
registries of multicast and IPv6 address space. A block that is not globally reachable is refused
completely, with the few anycast addresses in it that are.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from threading import BoundedSemaphore, Thread
from typing import Any, TypeAlias
from urllib.parse import quote, urlsplit

from chalicelib.http.errors import BadRequestError
from chalicelib.settings import SettingsError
from chalicelib.units import Seconds

MAX_URL_CHARACTERS = 2048
MAX_NAME_CHARACTERS = 253
"""The maximum length of a host name (RFC 1035, 255 bytes with the length of each label)."""
DEFAULT_PORTS = {"https": 443, "http": 80}
PORTS = (443, 8443)
DNS_SECONDS = 5.0
STRANGERS_SLOTS = BoundedSemaphore(16)
"""Slots for the names of strangers, of which one machine resolves fewer than it has threads."""

LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""A host whose last label matches is an IPv4 address (WHATWG URL, "ends in a number checker"):
getaddrinfo resolves `127.1`, `0x7f.1` and `2130706433` to loopback."""
AMBIGUOUS_CHARACTERS = frozenset("ßς\u200c\u200d")
"""Characters that IDNA 2003, as in Python, and IDNA 2008 encode differently (UTS 46)."""
UNENCODED_CHARACTERS = "%/:;=@!$&'()*+,?[]"
"""Characters that are not encoded in a path and query (RFC 3986, `reserved`)."""

NOT_PUBLIC = tuple(
    map(
        ip_network,
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
            "2001::/23",  # protocol assignments (RFC 2928): Teredo, benchmarking, ORCHID
            "2001:db8::/32",  # documentation (RFC 3849)
            "2002::/16",  # 6to4, an IPv4 address behind a relay, deprecated (RFC 3056, RFC 7526)
            "3fff::/20",  # documentation (RFC 9637)
        ),
    )
)
GLOBAL_UNICAST_IPV6 = IPv6Network("2000::/3")
"""The block that IANA assigns for unicast on the Internet.

It excludes `::/8` with loopback, IPv4-compatible and local NAT64 addresses, `100::/64` (discard),
`5f00::/16` (segment routing), `fc00::/7` (unique local, clouds' metadata at fd00:ec2::254),
`fe80::/10` (link-local), `fec0::/10` (site-local) and `ff00::/8` (multicast)."""
NAT64 = IPv6Network("64:ff9b::/96")
"""The last 32 bits are the IPv4 address that is reached (RFC 6052)."""

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Record: TypeAlias = tuple[int, int, int, str, tuple[Any, ...]]
Resolver: TypeAlias = Callable[..., Sequence[Record]]
"""A function like `socket.getaddrinfo`, called with host, port and the keyword `type`."""


class BadUrlError(BadRequestError):
    """A URL may not be called. The message says what is wrong and what to give."""


class UnreachableError(BadRequestError):
    """A name can't be resolved now."""


def is_public(address: Address) -> bool:
    """Return whether an address is global unicast: the same host from everywhere."""
    plain = unwrapped(address)
    if isinstance(plain, IPv6Address) and (plain.scope_id or plain not in GLOBAL_UNICAST_IPV6):
        return False
    return not any(plain in network for network in NOT_PUBLIC)


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
        """Parse comma-separated CIDRs; an empty text means none. Raises `SettingsError`."""
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
        raise SettingsError(
            f"WEBHOOK_ALLOW must be comma-separated networks like 10.0.0.0/8 or fd00::/8, "
            f"not {part!r}: {reason}"
        ) from None


@dataclass(frozen=True, slots=True)
class Url:
    """A URL in the normal form that is stored; `check_url` does not change it.

    `host` is in lower case and ASCII; an IPv6 address has no brackets. `target` is path and query.
    `address` is the host if it is an address, else None.
    """

    scheme: str
    host: str
    port: int
    target: str
    address: Address | None = None

    @property
    def authority(self) -> str:
        """Return host and port as in the header `Host`."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def check_url(url: str, allowed: Allowed) -> Url:
    """Parse a URL and apply the rules that need no network. Raises `BadUrlError`."""
    _check_length(url)
    if not all(character.isprintable() and character not in " \\" for character in url):
        raise BadUrlError("the URL has a space, a control character or a backslash: encode it as %")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise BadUrlError("the URL's host is malformed: give one like example.com") from None
    if parts.scheme not in DEFAULT_PORTS:
        raise BadUrlError("the URL must begin with https://")
    raw_host, raw_port = _split_netloc(parts.netloc)
    host, address = _parse_ipv6(raw_host) if raw_host.startswith("[") else _parse_name(raw_host)
    query = f"?{parts.query}" if parts.query else ""
    target = quote(f"{parts.path or '/'}{query}", safe=UNENCODED_CHARACTERS)
    checked = Url(parts.scheme, host, _parse_port(raw_port, parts.scheme), target, address)
    _check_length(str(checked))
    if address:
        _check_addresses(checked, (address,), allowed)
    elif not allowed:
        _check_public_form(checked)
    return checked


def _check_length(url: str) -> None:
    if len(url) > MAX_URL_CHARACTERS:
        raise BadUrlError(
            f"the URL has {len(url)} characters, encoded: give at most {MAX_URL_CHARACTERS}"
        )


def _split_netloc(netloc: str) -> tuple[str, str]:
    """Split host and port, because urlsplit differs between versions of Python."""
    if "@" in netloc:
        raise BadUrlError("the URL has a user name: leave out what stands before the @")
    if not netloc.startswith("["):
        host, _, port = netloc.partition(":")
        return host, port
    host, bracket, rest = netloc.partition("]")
    if rest and not rest.startswith(":"):
        raise BadUrlError("the URL's IPv6 address must be followed by a port or nothing")
    return host + bracket, rest[1:]


def _parse_port(raw: str, scheme: str) -> int:
    if not raw:
        return DEFAULT_PORTS[scheme]
    decimal = raw.isascii() and raw.isdecimal()
    if not (decimal and 1 <= int(raw) <= 65_535):  # noqa: PLR2004
        raise BadUrlError("the URL's port must be a number from 1 to 65535")
    return int(raw)


def _parse_ipv6(raw: str) -> tuple[str, Address]:
    if "%" in raw:
        raise BadUrlError("the URL's IPv6 address has a zone: leave out the % and what follows")
    try:
        address = IPv6Address(raw[1:-1])
    except ValueError:
        raise BadUrlError("the URL's brackets must contain an IPv6 address") from None
    return str(address), address


def _parse_name(raw: str) -> tuple[str, Address | None]:
    name = (raw.lower() if raw.isascii() else _encode(raw)).removesuffix(".")
    if not name:
        raise BadUrlError("the URL has no host: give one like https://example.com/")
    labels = name.split(".")
    if NUMBER.fullmatch(labels[-1]):
        try:
            return name, IPv4Address(name)
        except ValueError:
            raise BadUrlError("an IPv4 address must be written as four decimal numbers") from None
    if len(name) > MAX_NAME_CHARACTERS or not all(map(LABEL.fullmatch, labels)):
        raise BadUrlError("the URL's host is not a valid DNS name: give one like example.com")
    return name, None


def _encode(name: str) -> str:
    """Encode a name for the DNS (IDNA 2003)."""
    try:
        if AMBIGUOUS_CHARACTERS.isdisjoint(name) and len(name) <= MAX_NAME_CHARACTERS:
            return name.encode("idna").decode().lower()
    except UnicodeError:
        pass
    raise BadUrlError("the URL's host can't be encoded: give it in its xn-- form")


def _check_addresses(url: Url, addresses: Sequence[Address], allowed: Allowed) -> None:
    for address in addresses:
        if address in allowed:
            continue
        _check_public_form(url)
        if not is_public(address):
            raise BadUrlError(
                f"{url.host[:80]} resolves to an address that is not public:"
                " give a host on the Internet"
            )


def _check_public_form(url: Url) -> None:
    if url.scheme != "https":
        raise BadUrlError("the URL must begin with https://")
    if url.port not in PORTS:
        raise BadUrlError(f"the URL's port must be {' or '.join(map(str, PORTS))}, not {url.port}")


def permitted(
    url: Url,
    allowed: Allowed,
    resolver: Resolver = socket.getaddrinfo,
    seconds: Seconds = DNS_SECONDS,
) -> tuple[Address, ...]:
    """Return the addresses of a URL if all of them may be called.

    The error does not name the address, because users may not learn the addresses of a private
    network. Raises `BadUrlError` and `UnreachableError`.
    """
    addresses = (url.address,) if url.address else _resolve(url, resolver, seconds)
    _check_addresses(url, addresses, allowed)
    return addresses


def _resolve(url: Url, resolver: Resolver, seconds: Seconds) -> tuple[Address, ...]:
    """Resolve a name to its distinct addresses. Raises `UnreachableError`.

    The system's resolver has no timeout that can be set, so it runs on a thread, which is abandoned
    after `seconds`.
    """
    resolved: Future[Sequence[Record]] = Future()

    def run() -> None:
        try:
            resolved.set_result(resolver(url.host, url.port, type=socket.SOCK_STREAM))
        except Exception as failure:  # noqa: BLE001  raised by `result`
            resolved.set_exception(failure)

    Thread(target=run, daemon=True).start()
    try:
        records = resolved.result(seconds)
    except TimeoutError:
        raise UnreachableError(f"{url.host[:80]} was not resolved in time") from None
    except OSError:
        records = ()
    if not records:
        raise UnreachableError(f"{url.host[:80]} does not resolve to an address")
    return tuple(dict.fromkeys(ip_address(record[4][0]) for record in records))


def resolve_for_stranger(resolver: Resolver, *arguments: Any, **options: Any) -> Sequence[Record]:
    """Resolve a name in a slot, also on an abandoned thread.

    Raises `UnreachableError` if all slots are taken.
    """
    if not STRANGERS_SLOTS.acquire(blocking=False):
        raise UnreachableError("too many host names are being resolved: try again in 30 s")
    try:
        return resolver(*arguments, **options)
    finally:
        STRANGERS_SLOTS.release()
