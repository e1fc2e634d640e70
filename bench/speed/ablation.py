"""`python -m bench.speed.ablation STEP`: `python -m vumi` without one of its optimizations.

The optimization is removed from outside, so the rest of the engine is as shipped.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import patch

from vumi.cli.program import main
from vumi.server import common_commits
from vumi.storage import commits, database
from vumi.workers import changes
from vumi.workers.views import ViewWorker


def _commit_each_request() -> None:
    """Give each request its own commit."""
    patch.object(common_commits, "COMMIT_SECONDS", 0.0).start()


def _store_messages() -> None:
    """Write a message in the commit of its visitor, then deliver it, then delete it."""
    patch.object(ViewWorker, "commit", lambda _, function: function()).start()


def _nest_each_write() -> None:
    """Give each write within a commit its own savepoint."""
    patch.object(database, "nested", _nest).start()


def _nest(connection: sqlite3.Connection, job: commits.Job[Any], **_: object) -> Any:
    return commits.nested(connection, job)


def _fold_large_batches() -> None:
    """Fold a thousand removals in one commit."""
    patch.object(changes, "MIN_BATCH_CHANGES", changes.MAX_BATCH_CHANGES).start()


STEPS: Mapping[str, Callable[[], None]] = {
    "requests share a commit": _commit_each_request,
    "views are stored by the commit that answers": _store_messages,
    "writes that need none have no savepoint": _nest_each_write,
    "a fold is as large as fits into 10 ms": _fold_large_batches,
}
"""The optimizations, each with the function that removes it."""

if __name__ == "__main__":
    STEPS[sys.argv[1]]()
    sys.exit(main(["serve"]))
