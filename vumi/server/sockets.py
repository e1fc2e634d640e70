"""The sockets of the web server, and the Unix socket to which a proxy of this machine connects.

The server accepts connections without the interpreter, and its interface does not tell of them. The
operating system lists them for this process. Each function that looks at descriptors expects that
one is gone, or is another file, because the server may close it at any moment.

The web server binds a temporary path, which then replaces the path of the Unix socket. So no client
meets a socket whose rights are not set yet, and only a socket that nobody listens on is replaced.
A service manager that gives its own socket keeps it during a restart, and connections wait in it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import stat
import struct
import tempfile
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from chalicelib.units import Seconds
from vumi.errors import ReportedError

Peer: TypeAlias = tuple[str, int]
"""The address and the port of a client."""
Endpoint: TypeAlias = Peer | Path
"""The address of a server, or the path at which its Unix socket was bound."""

UNIX = "unix"
"""The address of all clients of a Unix socket, which have none of their own."""
DESCRIPTORS = "/dev/fd"
KEPT_PEERS = 1_024
"""Connections whose peer is kept for their next request."""
MAPPED = "::ffff:"
"""The beginning of an IPv4 address in the form of IPv6 (RFC 4291, section 2.5.5.2)."""
BUFFER_BYTES = 65_536
"""The system doubles it. Without it, each connection may use megabytes of the system's memory."""
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which data that the client does not read is dropped."""
INTEGER = struct.Struct("i")
TEMPORARY = "~"
MAX_PATH_BYTES = 107 - len(TEMPORARY)
"""The longest path: an address has room for 108 bytes with a zero at its end (unix(7))."""


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
                found = None
                if _is_on(one, addresses):
                    found = Accepted(to_peer(*one.getpeername()[:2]), descriptor, _unsent(one))
                yield found
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


def find_listening(endpoint: Endpoint) -> int | None:
    """Return the descriptor that listens, or will listen, at an endpoint."""
    for descriptor in _descriptors():
        with suppress(OSError), _borrow(descriptor) as one:
            if _is_at(one, endpoint) and not _is_connected(one):
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


@lru_cache(KEPT_PEERS)
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


class UnusablePathError(ReportedError):
    """The server can't have a socket at a path. The message says why."""


class UnixSocket:
    """A Unix socket at an absolute path, free when it is made. Raises `UnusablePathError`."""

    def __init__(self, path: Path, mode: int) -> None:
        self.path = path.parent.resolve() / path.name
        self.temporary = self.name = Path(f"{self.path}{TEMPORARY}")
        self._mode = mode
        self._inode = 0
        if len(bytes(self.path)) > MAX_PATH_BYTES:
            raise UnusablePathError(
                f"HOST: {self.path} has {len(bytes(self.path))} bytes, and the path of a Unix"
                f" socket has room for {MAX_PATH_BYTES}: set a shorter one"
            )
        _check_free(self.path)
        if _check_free(self.temporary):
            self.temporary.unlink()  # left by a kill
        _check_folder(self.temporary)

    def hand_over(self) -> None:
        """Leave the socket that the web server has bound."""

    def publish(self) -> None:
        """Give the bound socket its rights and its path. Raises `UnusablePathError`."""
        self.temporary.chmod(self._mode)
        self._inode = self.temporary.stat().st_ino
        _check_free(self.path)
        self.temporary.replace(self.path)

    def remove(self) -> None:
        """Remove the socket, unless another file has its path now."""
        with suppress(FileNotFoundError):
            if self.path.lstat().st_ino == self._inode:
                self.path.unlink()


class GivenSocket(UnixSocket):
    """The socket of a service manager, which has its path and its rights.

    The web server binds another socket, whose place it takes. Raises `UnusablePathError` if it is
    not at the path.
    """

    def __init__(self, path: Path, given: socket.socket) -> None:
        if given.family != socket.AF_UNIX or given.getsockname() != str(path):
            raise UnusablePathError(
                f"HOST: the service manager listens at {given.getsockname()}, not at {path}: set"
                " HOST and ListenStream= to the same path"
            )
        self.path = self.name = path
        self.temporary = Path(tempfile.mkdtemp(prefix="vumi-")) / "socket"
        self._given = given

    def hand_over(self) -> None:
        """Put the given socket in the place of the one that the web server has bound."""
        bound = find_listening(self.temporary)
        if bound is None:
            raise OSError(errno.EBADF, "the web server has bound no socket")
        os.dup2(self._given.fileno(), bound, inheritable=False)
        shutil.rmtree(self.temporary.parent)

    def publish(self) -> None:
        """Keep only the web server's descriptor; the manager has published the socket."""
        self._given.close()

    def remove(self) -> None:
        """Leave the socket, in which connections wait for the next process."""


def _check_folder(path: Path) -> None:
    """Bind a path, which the web server can only do without an explanation of its errors."""
    try:
        with socket.socket(socket.AF_UNIX) as trial:
            trial.bind(bytes(path))
        path.unlink()
    except OSError as error:
        raise UnusablePathError(
            f"HOST: no socket can be made in {path.parent}/ ({error.strerror}): create the folder,"
            " or give the user that runs vu-mi the right to write to it"
        ) from None


def _check_free(path: Path) -> bool:
    """Return whether a socket that nobody listens on has a path.

    Raises `UnusablePathError` if another file has it, or if a process listens.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(mode):
        raise UnusablePathError(f"HOST: {path} is not a socket: remove it, or set another path")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(0)
        try:
            probe.connect(bytes(path))
        except ConnectionRefusedError:
            return True
        except OSError:  # a full queue of connections, or no right to connect
            pass
    raise UnusablePathError(
        f"HOST: {path} is in use: stop the process that listens there, or set another path"
    )
