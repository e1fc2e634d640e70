"""The sockets of the process, and the Unix socket: its rights, and the files that it replaces."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from vumi.server import sockets
from vumi.server.sockets import (
    MAX_PATH_BYTES,
    Accepted,
    GivenSocket,
    Peer,
    UnixSocket,
    UnusablePathError,
)

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


@contextmanager
def listening_at(
    path: Path, kind: socket.SocketKind = socket.SOCK_STREAM, backlog: int = 8
) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, kind) as listener:
        listener.bind(str(path))
        if kind is socket.SOCK_STREAM:
            listener.listen(backlog)
        yield listener


def accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True


def refusal(path: Path) -> str:
    with pytest.raises(UnusablePathError) as refused:
        UnixSocket(path, 0o660)
    return str(refused.value)


def link_to_a_socket(path: Path) -> None:
    with listening_at(path.with_name("other")):
        path.symlink_to("other")


def test_a_given_socket_takes_the_place_of_the_one_that_the_web_server_binds(
    tmp_path: Path,
) -> None:
    path = tmp_path / "vumi.sock"
    with listening_at(path) as given, socket.socket(socket.AF_UNIX) as bound:
        made = GivenSocket(path, given)
        assert accepts(path)
        bound.bind(str(made.temporary))
        made.hand_over()
        made.publish()
        accepted, _ = bound.accept()
        accepted.close()
        made.remove()
        assert accepts(path)
        assert not made.temporary.parent.exists()


def test_a_given_socket_of_another_path_is_refused(tmp_path: Path) -> None:
    refused = pytest.raises(UnusablePathError, match=r"given\.sock, not at")
    with listening_at(tmp_path / "given.sock") as given, refused:
        GivenSocket(tmp_path / "vumi.sock", given)


@pytest.mark.parametrize("mode", [0o660, 0o600, 0o666])
def test_the_socket_gets_its_rights_before_its_path(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "vumi.sock"
    made = UnixSocket(path, mode)
    with listening_at(made.temporary):
        assert not path.exists()
        made.publish()
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert accepts(path)
        made.remove()
    assert os.listdir(tmp_path) == []  # noqa: PTH208  names


def test_a_socket_that_a_kill_left_is_replaced(tmp_path: Path) -> None:
    """And one that a kill left before it had its path."""
    path = tmp_path / "vumi.sock"
    for stale in (path, Path(f"{path}~")):
        with listening_at(stale):
            pass
    made = UnixSocket(path, 0o660)
    with listening_at(made.temporary):
        made.publish()
        assert accepts(path)


@pytest.mark.parametrize(
    ("kind", "backlog"), [(socket.SOCK_STREAM, 8), (socket.SOCK_STREAM, 0), (socket.SOCK_DGRAM, 0)]
)
def test_a_socket_that_a_process_has_is_in_use(
    tmp_path: Path, kind: socket.SocketKind, backlog: int
) -> None:
    """A look at a full queue of connections does not wait."""
    path = tmp_path / "vumi.sock"
    with listening_at(path, kind, backlog), socket.socket(socket.AF_UNIX, kind) as waiting:
        waiting.connect(str(path))
        assert refusal(path) == (
            f"HOST: {path} is in use: stop the process that listens there, or set another path"
        )
        assert path.is_socket()


def test_a_socket_that_begins_to_listen_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "vumi.sock"
    made = UnixSocket(path, 0o660)
    with listening_at(made.temporary), listening_at(path):
        with pytest.raises(UnusablePathError, match="is in use"):
            made.publish()
        assert accepts(path)


@pytest.mark.parametrize("name", ["vumi.sock", "vumi.sock~"])
@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, os.mkfifo, link_to_a_socket])
def test_another_kind_of_file_is_never_removed_and_no_link_is_followed(
    tmp_path: Path, name: str, make: Callable[[Path], object]
) -> None:
    make(tmp_path / name)
    message = f"HOST: {tmp_path / name} is not a socket: remove it, or set another path"
    assert refusal(tmp_path / "vumi.sock") == message
    assert (tmp_path / name).exists()


def test_a_stop_leaves_the_file_of_another(tmp_path: Path) -> None:
    path = tmp_path / "vumi.sock"
    made = UnixSocket(path, 0o660)
    with listening_at(made.temporary):
        made.publish()
        path.unlink()
        path.write_text("precious")
        made.remove()
        assert path.read_text() == "precious"
        path.unlink()
        made.remove()


def test_the_longest_path_can_be_bound_and_a_longer_one_is_explained(tmp_path: Path) -> None:
    longest = tmp_path / ("é" + "x" * (MAX_PATH_BYTES - len(bytes(tmp_path)) - 3))
    assert len(bytes(longest)) == MAX_PATH_BYTES
    made = UnixSocket(longest, 0o660)
    with listening_at(made.temporary):
        made.publish()
    longer = Path(f"{longest}x")
    assert refusal(longer) == (
        f"HOST: {longer} has 107 bytes, and the path of a Unix socket has room for 106:"
        " set a shorter one"
    )


def test_a_folder_may_be_a_link_and_one_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run" / "vumi.sock"
    assert refusal(path).startswith(
        f"HOST: no socket can be made in {path.parent}/ (No such file or directory): create the"
    )
    path.parent.mkdir()
    (tmp_path / "link").symlink_to("run")
    assert UnixSocket(tmp_path / "link" / "vumi.sock", 0o660).path == path
