"""The line of a terminal that shows that a long command goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TextIO, TypeVar

from chalicelib.units import WholeSeconds

Counted = TypeVar("Counted")

FIRST_SECONDS: WholeSeconds = 2
"""A command that takes less shows no line."""
CLEAR_LINE = "\r\x1b[K"


@dataclass
class Progress:
    """What a command does, and how much it has done."""

    doing: str
    stream: TextIO
    done: int = 0
    shown: bool = field(default=False, init=False)

    def count(self, items: Iterable[Counted]) -> Iterator[Counted]:
        """Yield the items and count them."""
        for item in items:
            yield item
            self.done += 1

    def run(self, is_over: Callable[[float], bool]) -> None:
        """Draw the line of a terminal every second until `is_over`, which waits, returns true."""
        seconds = 0
        while not is_over(1.0):
            seconds += 1
            if seconds >= FIRST_SECONDS and self.stream.isatty():
                self.draw(seconds)

    def draw(self, seconds: WholeSeconds) -> None:
        """Replace the line."""
        done = f", {self.done:,} so far" if self.done else ""
        self._write(f"{CLEAR_LINE}{self.doing} ({seconds} s{done})")
        self.shown = True

    def hide(self) -> None:
        """Remove the line, so that a message can be printed."""
        if self.shown:
            self._write(CLEAR_LINE)
            self.shown = False

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


@contextmanager
def progress(doing: str) -> Iterator[Progress]:
    """Show a line while the block runs, on a terminal alone."""
    line, over = Progress(doing, sys.stderr), Event()
    thread = Thread(target=line.run, args=(over.wait,), daemon=True)
    thread.start()
    try:
        yield line
    finally:
        over.set()
        thread.join()
        line.hide()
