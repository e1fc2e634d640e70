"""The Unix socket of the web server, to which a proxy of this machine connects.

The web server binds a temporary path, which then replaces the path of the socket. So no client
meets a socket whose rights are not set yet, and only a socket that nobody listens on is replaced.
A service manager that gives its own socket keeps it during a restart, and connections wait in it.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from vumi.errors import ReportedError
from vumi.server import sockets

TEMPORARY = "~"
MAX_PATH_BYTES = 107 - len(TEMPORARY)
"""The longest path: an address has room for 108 bytes with a zero at its end (unix(7))."""


class UnusablePathError(ReportedError):
    """The server can't have a socket at a path. The message says why."""


class UnixSocket:
    """A Unix socket at an absolute path, free when it is made. Raises `UnusablePathError`."""

    def __init__(self, path: Path, mode: int) -> None:
        self.path = path.parent.resolve() / path.name
        self.temporary = self.name = Path(f"{self.path}{TEMPORARY}")
        self._mode = mode
        self._inode = 0
        _check_length(self.path)
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
        bound = sockets.find_listening(self.temporary)
        if bound is None:
            raise OSError(errno.EBADF, "the web server has bound no socket")
        os.dup2(self._given.fileno(), bound, inheritable=False)
        shutil.rmtree(self.temporary.parent)

    def publish(self) -> None:
        """Keep only the web server's descriptor; the manager has published the socket."""
        self._given.close()

    def remove(self) -> None:
        """Leave the socket, in which connections wait for the next process."""


def _check_length(path: Path) -> None:
    if len(bytes(path)) > MAX_PATH_BYTES:
        raise UnusablePathError(
            f"HOST: {path} has {len(bytes(path))} bytes, and the path of a Unix socket has room for"
            f" {MAX_PATH_BYTES}: set a shorter one"
        )


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
