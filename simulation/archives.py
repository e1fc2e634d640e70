"""An archive that keeps its objects or fails."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from typing import Any

from chalicelib.storage.errors import StorageError


@dataclass
class FakeArchive:
    """An archive that keeps its objects; `failure` is raised for names with `failing` in them."""

    failure: StorageError | None = None
    failing: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)

    def put(self, name: str, body: bytes) -> None:
        if self.failure is not None and self.failing in name:
            raise self.failure
        self.objects[name] = body

    def lines(self) -> list[dict[str, Any]]:
        """The lines of all objects, in the order of their names."""
        return [
            json.loads(line)
            for _, body in sorted(self.objects.items())
            for line in gzip.decompress(body).decode().splitlines()
        ]
