"""The handlers in this process, over the storage of a measurement."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.resources import Resources
from chalicelib.storage.ports import check_object_name


@dataclass
class Shelf:
    """An `Archive` that keeps only the size of each object, in bytes."""

    _sizes: list[int] = field(default_factory=list)

    def put(self, name: str, body: bytes) -> None:
        check_object_name(name)
        self._sizes.append(len(body))

    def take(self) -> tuple[int, ...]:
        """Return the sizes of the objects since the last call."""
        taken, self._sizes = tuple(self._sizes), []
        return taken


@contextmanager
def handlers_over(given: Resources) -> Iterator[None]:
    """Let the handlers use these resources, and discard all that they log on Lambda."""
    with Path(os.devnull).open("w") as nowhere:
        telemetry.write_to(nowhere, with_metrics=True)
        resources.use(given)
        try:
            yield
        finally:
            resources.use(None)
            telemetry.write_to(sys.stderr, with_metrics=False)
