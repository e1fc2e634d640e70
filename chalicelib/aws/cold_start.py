"""The pause of the garbage collector in a Lambda function's first request, a cold start."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Turn the garbage collector off while clients are imported and created.

    They live as long as the process, so a collection frees nothing. It would take about a tenth of
    the cold start's processor time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
