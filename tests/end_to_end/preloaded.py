"""`python -m vumi` in a fork of an interpreter that has imported it already.

An import takes ten times as long as the rest of a start, and tests start hundreds of programs. Each
fork is a process of its own, with its own environment and output. It runs the module as `python -m`
does, and ends as that does.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from threading import Thread
from types import TracebackType
from typing import IO, Any, NoReturn, Self

from simulation.environment import ROOT

INTEGER_BYTES = 4
IMPORTED = ("chalicelib.events.webhooks.sender", "vumi.metrics.monitoring")
"""Modules that most servers import after their start."""


class Forked:
    """A running program, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.returncode: int | Any = None
        self._answers, theirs = socket.socketpair()
        out, out_end = os.pipe()
        error, error_end = os.pipe()
        self.stdout, self.stderr = _open(out), _open(error)
        ends = (theirs.fileno(), out_end, error_end)
        socket.send_fds(_interpreter(), [b"\0"], ends)
        theirs.close()
        os.close(out_end)
        os.close(error_end)
        self._answers.sendall(json.dumps([list(arguments), dict(environment)]).encode())
        self._answers.shutdown(socket.SHUT_WR)
        self.pid = self._receive()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stdout.close()
        self.stderr.close()
        self.wait()

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            ready, _, _ = select.select([self._answers], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired("vumi", timeout or 0)
            self.returncode = self._receive()
            self._answers.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended since
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, *, timeout: float | None = None) -> tuple[str, str]:
        """Return the rest of the output after the program ended."""
        texts = {self.stdout: "", self.stderr: ""}

        def read(stream: IO[str]) -> None:
            with stream:
                texts[stream] = stream.read()

        readers = [Thread(target=read, args=(stream,), daemon=True) for stream in texts]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(timeout)
            if reader.is_alive():
                raise subprocess.TimeoutExpired("vumi", timeout or 0)
        self.wait(timeout)
        out, error = texts.values()
        return out, error

    def _receive(self) -> int:
        number = self._answers.recv(INTEGER_BYTES, socket.MSG_WAITALL)
        if not number:
            raise ConnectionError("the interpreter that makes the forks has ended")
        return int.from_bytes(number, signed=True)


def _open(descriptor: int) -> IO[str]:
    return open(descriptor, encoding="utf-8", errors="replace")


@cache
def _interpreter() -> socket.socket:
    """Start the interpreter, which ends with this one."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(  # noqa: S603  this module
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


class Forks:
    """The interpreter, which makes a fork for each message of `control` until that is closed."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._answers: dict[int, socket.socket] = {}
        self._woken, self._wakes = socket.socketpair()
        self._wakes.settimeout(0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)

    def run(self) -> Sequence[str] | None:
        """Return the arguments in each fork, and nothing at the end."""
        while True:
            ready, _, _ = select.select([self._control, self._woken], [], [])
            if self._woken in ready:
                self._woken.recv(select.PIPE_BUF)
                self._tell_ends()
            if self._control in ready:
                message, descriptors, _, _ = socket.recv_fds(self._control, 1, 3)
                if not message:
                    return None
                answer, out, error = descriptors
                if arguments := self._fork(socket.socket(fileno=answer), out, error):
                    return arguments

    def _tell_ends(self) -> None:
        for pid in list(self._answers):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                with self._answers.pop(pid) as answer:
                    _send(answer, os.waitstatus_to_exitcode(status))

    def _fork(self, answer: socket.socket, out: int, error: int) -> Sequence[str] | None:
        """Return the arguments in the fork."""
        asked = b"".join(iter(lambda: answer.recv(select.PIPE_BUF), b""))
        if pid := os.fork():
            self._answers[pid] = answer
            _send(answer, pid)
            os.close(out)
            os.close(error)
            return None
        arguments, environment = json.loads(asked)
        self._become(answer, out, error)
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        return list(arguments)

    def _become(self, answer: socket.socket, out: int, error: int) -> None:
        """Leave nothing of the interpreter to a fork."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for end in (answer, self._control, self._woken, self._wakes, *self._answers.values()):
            end.close()
        os.dup2(out, 1)
        os.dup2(error, 2)
        os.close(out)
        os.close(error)


def _send(answer: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):
        answer.sendall(number.to_bytes(INTEGER_BYTES, signed=True))


def main() -> NoReturn:
    """Import the program, and run it in each fork."""
    program = import_module("vumi.cli.program")
    for command in program.COMMANDS.values():
        import_module(f"vumi.cli.{command.partition(':')[0]}")
    for name in IMPORTED:
        import_module(name)
    gc.collect()
    gc.freeze()
    arguments = Forks(socket.socket(fileno=int(sys.argv[1]))).run()
    if arguments is not None:
        sys.argv[1:] = arguments
        runpy.run_module("vumi", run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    main()
