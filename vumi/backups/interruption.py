"""The end of a command by SIGTERM, which removes its unfinished copy."""

from __future__ import annotations

import signal


def clean_up_on_sigterm() -> None:
    """Interrupt the command by SIGTERM as by SIGINT, so that it cleans up before it ends."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
