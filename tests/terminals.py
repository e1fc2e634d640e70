"""Terminals: one on which the program runs, and a stream that is one."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from io import StringIO


def run_on_terminal(*arguments: str, **environment: str) -> tuple[int, str]:
    """Run `vumi`, and return its status and what it writes to a pseudo-terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.run(  # noqa: S603  our own program
        [sys.executable, "-m", "vumi", *arguments],
        env={**os.environ, "TERM": "xterm", **environment},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        check=False,
    )
    os.close(theirs)
    seen = os.read(ours, 10_000).decode()
    os.close(ours)
    return process.returncode, seen


class Terminal(StringIO):
    """A stream that a person reads."""

    def isatty(self) -> bool:
        return True
