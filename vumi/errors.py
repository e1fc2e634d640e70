"""The errors that the program reports in one line. Any other error is a bug."""

from __future__ import annotations


class ReportedError(Exception):
    """A command failed. The message says what failed and how to fix it.

    `status` is the exit status of the program.
    """

    status = 1
