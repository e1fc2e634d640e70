"""`python -m vumi`: the program `vumi`."""

from __future__ import annotations

from vumi.cli.program import run

if __name__ == "__main__":
    run()
