"""A host with a public file, for the proofs of owners, and a resolver of host names."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chalicelib.outgoing.urls import Record


@dataclass
class Host:
    """A host whose files have these lines, or a failure; `asked` records its fetches."""

    lines: Sequence[str] = ()
    failure: Exception | None = None
    asked: list[tuple[str, bool]] = field(default_factory=list)

    def fetch(self, url: str, *, is_listed: bool) -> bytes:
        self.asked.append((url, is_listed))
        if self.failure:
            raise self.failure
        return "\n".join(self.lines).encode(errors="surrogateescape")


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
