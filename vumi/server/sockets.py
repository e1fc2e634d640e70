"""The sockets of the web server, as the operating system lists them for this process.

The server accepts connections without the interpreter, and its interface does not tell of them.
Each of these functions looks at descriptors that the server may close at any moment, so each
expects that a descriptor is gone, or is another file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from chalicelib.units import Seconds

Peer: TypeAlias = tuple[str, int]
"""The address and the port of a client."""
Endpoint: TypeAlias = Peer | Path
"""The address of a server, or the path at which its Unix socket was bound."""

UNIX = "unix"
"""The address of all clients of a Unix socket, which have none of their own."""
DESCRIPTORS = "/dev/fd"
MAPPED = "::ffff:"
"""The beginning of an IPv4 address in the form of IPv6 (RFC 4291, section 2.5.5.2)."""
BUFFER_BYTES = 65_536
"""The system doubles it. Without it, each connection may use megabytes of the system's memory."""
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which data that the client does not read is dropped."""
INTEGER = struct.Struct("i")


@dataclass(frozen=True, slots=True)
class Accepted:
    """A connection of a client, with the number of bytes that the client has not received."""

    peer: Peer
    descriptor: int
    unsent: int = 0

    def close(self) -> None:
        """End the connection, so that the server finds it closed."""
        with suppress(OSError), _duplicate(self.descriptor) as own:
            if to_peer(*own.getpeername()[:2]) != self.peer:
                return
            if self.unsent:
                own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            own.shutdown(socket.SHUT_RDWR)


def accepted(addresses: Sequence[Peer]) -> Iterator[Accepted | None]:
    """Yield the connection of each descriptor of the process, None for any other file."""
    for descriptor in _descriptors():
        try:
            with _borrow(descriptor) as one:
                yield _look(one, descriptor) if _is_on(one, addresses) else None
        except OSError:
            yield None


def limit(addresses: Sequence[Peer], unread_seconds: Seconds) -> None:
    """Bound the memory of connections, and the time that a client may take to receive data.

    Accepted sockets inherit it from the sockets that listen. Source: tcp(7), `TCP_USER_TIMEOUT`,
    which is only on Linux.
    """
    for descriptor in _descriptors():
        with suppress(OSError), _borrow(descriptor) as one:
            if _is_on(one, addresses):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
                if option := getattr(socket, "TCP_USER_TIMEOUT", 0):
                    one.setsockopt(socket.IPPROTO_TCP, option, int(unread_seconds * 1000))


def find_listening(endpoint: Endpoint, *, but: int = -1) -> int | None:
    """Return the descriptor that listens, or will listen, at an endpoint, except one."""
    for descriptor in _descriptors():
        with suppress(OSError), _borrow(descriptor) as one:
            if descriptor != but and _is_at(one, endpoint) and not _is_connected(one):
                return descriptor
    return None


def stop_accepting(endpoint: Endpoint) -> None:
    """Take the socket that listens from the server, which goes on with its open connections.

    Its descriptor becomes a socket at which nobody calls. New connections are refused, or wait
    for the next process if a service manager keeps the socket.
    """
    if (descriptor := find_listening(endpoint)) is not None:
        with socket.socket(socket.AF_UNIX) as silent:
            silent.settimeout(0)
            os.dup2(silent.fileno(), descriptor, inheritable=False)


def connected(endpoint: Endpoint) -> Iterator[Peer]:
    """Yield the client of each open connection of an endpoint."""
    for descriptor in _descriptors():
        with suppress(OSError), _borrow(descriptor) as one:
            if _is_at(one, endpoint) and _is_connected(one):
                yield (UNIX, 0) if isinstance(endpoint, Path) else to_peer(*one.getpeername()[:2])


def _is_at(one: socket.socket, endpoint: Endpoint) -> bool:
    if isinstance(endpoint, Path):
        return one.family == socket.AF_UNIX and one.getsockname() == str(endpoint)
    return _is_on(one, [endpoint])


def _is_connected(one: socket.socket) -> bool:
    try:
        one.getpeername()
    except OSError as error:
        return error.errno != errno.ENOTCONN
    return True


def _descriptors() -> list[int]:
    return [int(name) for name in os.listdir(DESCRIPTORS)]  # noqa: PTH208  a path for each is dear


@contextmanager
def _borrow(descriptor: int) -> Iterator[socket.socket]:
    """Look at a descriptor as a socket, without closing it. Raises `OSError` for another file."""
    borrowed = socket.socket(fileno=descriptor)
    try:
        yield borrowed
    finally:
        borrowed.detach()


@contextmanager
def _duplicate(descriptor: int) -> Iterator[socket.socket]:
    """Open the socket of a descriptor again, so that it stays the same socket."""
    own = os.dup(descriptor)
    try:
        with _borrow(own) as duplicate:
            yield duplicate
    finally:
        os.close(own)


def _is_on(one: socket.socket, addresses: Sequence[Peer]) -> bool:
    if one.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    host, port = one.getsockname()[:2]
    return any(port == own and bound in (host, "0.0.0.0", "::") for bound, own in addresses)  # noqa: S104  compared


def _look(one: socket.socket, descriptor: int) -> Accepted:
    return Accepted(to_peer(*one.getpeername()[:2]), descriptor, _unsent(one))


def to_peer(host: str, port: int | str) -> Peer:
    """Return a client as each part of the server names it.

    An IPv4 address has no IPv6 form, and an IPv6 address no zone.
    """
    if not host:
        return UNIX, int(port)
    address = host.partition("%")[0]
    return address.removeprefix(MAPPED) if "." in address else address, int(port)


def _unsent(one: socket.socket) -> int:
    """Return the bytes that the client has not acknowledged. Source: tcp(7), `SIOCOUTQ`.

    Return 0 where the system does not tell, as on macOS.
    """
    try:
        buffer = fcntl.ioctl(one, termios.TIOCOUTQ, bytes(INTEGER.size))
    except OSError:
        return 0
    return int(INTEGER.unpack(buffer)[0])
