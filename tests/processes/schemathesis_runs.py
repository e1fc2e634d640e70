"""Runs of schemathesis in one process, because a process takes seconds to import it.

Each line of the standard input has the arguments of one run, and each line of the standard output
its exit status and its output, all as JSON.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

from schemathesis.cli import schemathesis


def run(arguments: list[str]) -> tuple[object, str]:
    """Return the exit status and the output of a run."""
    output = StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        try:
            schemathesis(arguments)
        except SystemExit as ended:
            return ended.code, output.getvalue()
    raise AssertionError("schemathesis always ends by SystemExit")


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)  # noqa: T201  the answer
