"""An archive in memory, which can fail."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from typing import Any

from chalicelib.storage.errors import StorageError


@dataclass
class FakeArchive:
    """An archive in memory; it raises `failure` for names that contain `failing`."""

    failure: StorageError | None = None
    failing: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)

    def put(self, name: str, body: bytes) -> None:
        if self.failure is not None and self.failing in name:
            raise self.failure
        self.objects[name] = body

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines of all objects, in the order of the objects' names."""
        return [
            json.loads(line)
            for _, body in sorted(self.objects.items())
            for line in gzip.decompress(body).decode().splitlines()
        ]
