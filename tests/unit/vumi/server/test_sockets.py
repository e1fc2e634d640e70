"""The sockets of the process, as the operating system lists them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from vumi.server import sockets
from vumi.server.sockets import Accepted, Peer

PATIENCE = 10.0
LARGE = 10_000_000
"""More bytes than the buffers of two sockets take."""


@dataclass
class Pair:
    """A connection: `client` is one end, `served` the accepted one."""

    client: socket.socket
    served: socket.socket
    address: Peer

    @property
    def peer(self) -> Peer:
        host, port = self.client.getsockname()[:2]
        return host, port

    def look(self) -> Accepted:
        [found] = look(self.address)
        return found


def look(*addresses: Peer) -> list[Accepted]:
    return [one for one in sockets.accepted(addresses) if one]


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def pair(listening: socket.socket) -> Iterator[Pair]:
    address: Peer = listening.getsockname()
    one, other = socket.socketpair()
    with one, other, socket.create_connection(address, PATIENCE) as client:
        served, _ = listening.accept()
        with served:
            yield Pair(client, served, address)


def test_it_finds_the_accepted_connections_and_no_other_file(pair: Pair) -> None:
    """Neither the socket that listens, nor the other end, which has another address."""
    assert look(pair.address) == [Accepted(pair.peer, pair.served.fileno(), 0)]
    assert pair.served.fileno() >= 0
    pair.served.sendall(b"still open")
    assert pair.client.recv(100) == b"still open"


@pytest.mark.parametrize(
    ("bound", "found"),
    [("127.0.0.1", 1), ("0.0.0.0", 1), ("::", 1), ("127.0.0.2", 0)],  # noqa: S104  compared
)
def test_a_connection_is_found_by_the_address_that_was_bound(
    pair: Pair, bound: str, found: int
) -> None:
    """An outgoing connection may have the same port, with another address."""
    assert len(look((bound, pair.address[1]))) == found
    assert look((bound, pair.address[1] + 1)) == []


def fill(served: socket.socket) -> int:
    """Send until the client's buffers are full; return the number of bytes."""
    served.settimeout(0.0)
    sent = 0
    try:
        while sent < LARGE:
            sent += served.send(bytes(LARGE))
    except BlockingIOError:
        pass
    return sent


def test_a_closed_connection_is_closed_at_both_ends(pair: Pair) -> None:
    pair.look().close()
    assert (pair.served.recv(1), pair.client.recv(1)) == (b"", b"")


def test_what_the_client_has_not_received_is_told_and_dropped(pair: Pair) -> None:
    sent = fill(pair.served)
    assert 0 < pair.look().unsent <= sent
    pair.look().close()
    pair.served.close()
    with pytest.raises(ConnectionResetError), pair.client.makefile("rb") as stream:
        stream.read(sent)


def test_a_descriptor_that_is_gone_or_another_file_is_left_alone(
    pair: Pair, tmp_path: Path
) -> None:
    before = len(os.listdir(sockets.DESCRIPTORS))  # noqa: PTH208
    Accepted(("127.0.0.1", 1), pair.served.fileno()).close()
    pair.served.sendall(b"another connection")
    assert pair.client.recv(100) == b"another connection"
    with (tmp_path / "file").open("w") as file:
        number = file.fileno()
        Accepted(pair.peer, number).close()
        file.write("open")
    Accepted(pair.peer, number).close()
    assert (tmp_path / "file").read_text() == "open"
    assert len(os.listdir(sockets.DESCRIPTORS)) == before  # noqa: PTH208


def sizes(one: socket.socket) -> list[int]:
    options = (socket.SO_SNDBUF, socket.SO_RCVBUF)
    return [one.getsockopt(socket.SOL_SOCKET, option) for option in options]


def test_accepted_sockets_inherit_the_limits_of_an_address(listening: socket.socket) -> None:
    host, port = listening.getsockname()
    before = sizes(listening)
    sockets.limit([(host, port + 1)], unread_seconds=7.0)
    assert sizes(listening) == before
    sockets.limit([(host, port)], unread_seconds=7.0)
    with socket.create_connection((host, port), PATIENCE):
        served, _ = listening.accept()
        with served:
            for size in sizes(served):
                assert sockets.BUFFER_BYTES <= size <= 2 * sockets.BUFFER_BYTES
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                timeout = served.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
                assert timeout == 7_000


@pytest.mark.parametrize(
    ("host", "peer"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_a_client_has_one_name(host: str, peer: str) -> None:
    assert sockets.to_peer(host, "80") == (peer, 80)
