"""The steps of a new Lambda process: import a handler, make its clients, handle its first event.

`python -m bench.speed.first_event MODULE HANDLER RESOURCE ...` reads an event as JSON from standard
input. Its last line has the processor seconds until the clients are made and until the event is
handled; the lines before are the log of the handler.
"""

from __future__ import annotations

import importlib
import json
import sys
import time


def main(module: str, handler: str, *resources: str) -> None:
    """Start a lambda that uses these resources of `chalicelib.resources`, and print its times."""
    event = json.load(sys.stdin)
    started = time.process_time()
    handle = getattr(importlib.import_module(module), handler)
    for resource in resources:
        getattr(importlib.import_module("chalicelib.aws.resources").current(), resource)
    ready = time.process_time()
    answer = handle(event, None)
    handled = time.process_time()
    if (answer or {}).get("batchItemFailures") or "isError" in (answer or {}).get("body", ""):
        raise RuntimeError(f"the event was not handled: {answer}")
    print(json.dumps([ready - started, handled - started]))


if __name__ == "__main__":
    main(*sys.argv[1:])
