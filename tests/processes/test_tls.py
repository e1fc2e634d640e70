"""The TLS context of a Lambda function, in a process of its own as on Lambda."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from bench import aws_events as events
from bench.stubbed_aws import BADGE_ID, StubbedAws, serving
from chalicelib.aws.resources import ON_LAMBDA
from simulation.environment import ENVIRONMENT
from tests.processes.programs import succeed

REQUESTS = 8
PROGRAM = f"""
import json, ssl, sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

contexts = []
create = ssl.create_default_context

def create_and_count(*given, **more):
    contexts.append(create(*given, **more))
    return contexts[-1]

ssl.create_default_context = create_and_count
from chalicelib.aws import get_views
from chalicelib.outgoing.http_client import HttpClient

at_start = len(contexts)
together = Barrier({REQUESTS})

def answer(event):
    together.wait()
    return get_views.handler(event, None)["body"]

with ThreadPoolExecutor({REQUESTS}) as threads:
    bodies = list(threads.map(answer, [json.loads(sys.argv[1])] * {REQUESTS}))
    if contexts:
        HttpClient(None).trust()
print(json.dumps([at_start, len(contexts), bodies]))
"""


def start(environment: Mapping[str, str]) -> tuple[int, int, list[str]]:
    """Start `get_views`, and send it its first requests in parallel.

    Return the number of contexts after the start and at the end, and the bodies of the answers.
    """
    printed = succeed(
        *(sys.executable, "-c", PROGRAM, json.dumps(events.get_views(BADGE_ID))),
        env={"PATH": os.environ["PATH"], **ENVIRONMENT, **environment, ON_LAMBDA: "vu-mi"},
    )
    at_start, at_end, bodies = json.loads(printed.splitlines()[-1])
    return at_start, at_end, bodies


def test_parallel_first_requests_share_the_context_that_the_start_has_made(tmp_path: Path) -> None:
    """The client of users' URLs shares it too."""
    with serving(StubbedAws(live_views=3), tmp_path) as environment:
        at_start, at_end, bodies = start(environment)
    assert (at_start, at_end) == (1, 1)
    assert "1237" in {json.loads(body)["message"] for body in bodies}


def test_an_endpoint_without_tls_needs_no_context() -> None:
    at_start, at_end, bodies = start({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
    assert (at_start, at_end) == (0, 0)
    assert all(json.loads(body)["isError"] for body in bodies)
