"""`pause_api`: switches the functions that the public reaches off, and on again.

The alarm of `MaxViewsPerDay` calls it. Source: the CloudWatch user guide, "Invoke a Lambda function
from an alarm".
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.concurrency import MapParallel, map_parallel
from chalicelib.lazy import lazy

if TYPE_CHECKING:
    from chalicelib.aws import clients
else:
    clients = lazy("chalicelib.aws.clients")

IS_PAUSED = {"ALARM": True, "OK": False}
"""Whether the functions are off, by the state of the alarm."""

resources.connect()


def handler(event: Mapping[str, Any], context: Any) -> dict[str, bool]:
    """Switch the functions as the new state of the alarm says."""
    telemetry.begin("pause_api", context)
    state = event["alarmData"]["state"]["value"]
    if state not in IS_PAUSED:
        raise ValueError(f"the state of the alarm is {state!r}; it must be ALARM or OK")
    functions = os.environ["PAUSED_FUNCTIONS"].split(",")
    switch(clients.aws_client("lambda", None), functions, is_paused=IS_PAUSED[state])
    telemetry.event(logging.WARNING, "api_switched", paused=IS_PAUSED[state])
    return {"paused": IS_PAUSED[state]}


def switch(
    client: Any,
    functions: Iterable[str],
    *,
    is_paused: bool,
    in_parallel: MapParallel = map_parallel,
) -> None:
    """Switch each function; one that fails stops no other. To switch twice is to switch once."""

    def switch_one(name: str) -> None:
        if is_paused:
            client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
        else:
            client.delete_function_concurrency(FunctionName=name)

    list(in_parallel(switch_one, functions))
