"""A host with a public file, for the proofs of owners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


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
