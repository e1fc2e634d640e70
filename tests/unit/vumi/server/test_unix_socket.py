"""The Unix socket: its rights, and the files that it replaces or leaves."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vumi.server.unix_socket import MAX_PATH_BYTES, GivenSocket, UnixSocket, UnusablePathError


@contextmanager
def listening(
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
    with listening(path.with_name("other")):
        path.symlink_to("other")


def test_a_given_socket_takes_the_place_of_the_one_that_the_web_server_binds(
    tmp_path: Path,
) -> None:
    path = tmp_path / "vumi.sock"
    with listening(path) as given, socket.socket(socket.AF_UNIX) as bound:
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
    with listening(tmp_path / "given.sock") as given, pytest.raises(UnusablePathError) as refused:
        GivenSocket(tmp_path / "vumi.sock", given)
    assert "given.sock, not at" in str(refused.value)


@pytest.mark.parametrize("mode", [0o660, 0o600, 0o666])
def test_the_socket_gets_its_rights_before_its_path(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "vumi.sock"
    made = UnixSocket(path, mode)
    with listening(made.temporary):
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
        with listening(stale):
            pass
    made = UnixSocket(path, 0o660)
    with listening(made.temporary):
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
    with listening(path, kind, backlog), socket.socket(socket.AF_UNIX, kind) as waiting:
        waiting.connect(str(path))
        assert refusal(path) == (
            f"HOST: {path} is in use: stop the process that listens there, or set another path"
        )
        assert path.is_socket()


def test_a_socket_that_begins_to_listen_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "vumi.sock"
    made = UnixSocket(path, 0o660)
    with listening(made.temporary), listening(path):
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
    with listening(made.temporary):
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
    with listening(made.temporary):
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
