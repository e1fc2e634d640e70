"""A receiver of webhooks in a separate process, which records when each POST arrives.

`python -m bench.speed.receiver` prints its port and answers every request with 204. After the end
of standard input it prints the `webhook-id` and the time of every POST as JSON.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from simulation.environment import ROOT
from simulation.raw_http import END_OF_HEAD, complete

ANSWER = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
BACKLOG = 4_096
NAME = "webhook-id:"


@dataclass(frozen=True, slots=True)
class Receiver:
    """A running receiver."""

    port: int
    process: subprocess.Popen[str]

    def received(self) -> list[tuple[str, float]]:
        """End the receiver; return the id of every POST and its time in seconds since 1970."""
        out, _ = self.process.communicate("")
        return [(webhook_id, at) for webhook_id, at in json.loads(out)]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver on this machine."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.speed.receiver"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield Receiver(int(line), process)
        finally:
            process.kill()


def main() -> None:
    """Receive until standard input ends."""
    received: list[tuple[str, float]] = []
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as server:
        print(server.getsockname()[1], flush=True)
        with selectors.DefaultSelector() as selector:
            selector.register(sys.stdin, selectors.EVENT_READ)
            selector.register(server, selectors.EVENT_READ)
            _serve(server, selector, received)
    print(json.dumps(received))


def _serve(
    server: socket.socket, selector: selectors.BaseSelector, received: list[tuple[str, float]]
) -> None:
    parts: dict[socket.socket, bytes] = {}
    while True:
        for key, _ in selector.select():
            ready = key.fileobj
            if ready is server:
                accepted, _ = server.accept()
                parts[accepted] = b""
                selector.register(accepted, selectors.EVENT_READ)
            elif isinstance(ready, socket.socket):
                parts[ready] += (part := ready.recv(65_536))
                if not part or complete(parts[ready]):
                    _finish(ready, parts.pop(ready), received)
                    selector.unregister(ready)
                    ready.close()
            else:
                return


def _finish(connection: socket.socket, request: bytes, received: list[tuple[str, float]]) -> None:
    at = time.time()
    for line in request.partition(END_OF_HEAD)[0].decode().split("\r\n"):
        if line.lower().startswith(NAME):
            received.append((line[len(NAME) :].strip(), at))
            connection.sendall(ANSWER)


if __name__ == "__main__":
    main()
