"""A resolver of host names with given answers."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from chalicelib.outgoing.urls import Record


class Names:
    """A resolver that gives its answers in turn, and then always the last one."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.asked: list[tuple[str, int]] = []
        self._answers = list(answers)

    def __call__(self, host: str, port: int, **options: Any) -> list[Record]:
        assert options == {"type": socket.SOCK_STREAM}
        self.asked.append((host, port))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        family = socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port)) for address in answer]
