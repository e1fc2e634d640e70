"""The errors that the program reports in one line, and the numbers in its messages.

Any other error is a bug.
"""

from __future__ import annotations


class ReportedError(Exception):
    """A command failed. The message says what failed and how to fix it.

    `status` is the exit status of the program: 1, or 3 if a check has found something wrong.
    """

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, like `1 badge` or `1,000 badges`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
