"""The ARNs of the queues and the stream, which Chalice's decorators need before they exist.

Only `chalice deploy` uses them, from the stage's environment variables in `.chalice/config.json`.
The template of `chalice package` replaces them with its own resources.
"""

from __future__ import annotations

import os

VIEWS_QUEUE = os.environ.get("VIEWS_QUEUE_ARN", "arn:aws:sqs:us-east-1:000000000000:vu-mi-views")
TABLE_STREAM = os.environ.get(
    "TABLE_STREAM_ARN", "arn:aws:dynamodb:us-east-1:000000000000:table/vu-mi/stream/label"
)
TIMERS_QUEUE = os.environ.get("TIMERS_QUEUE_ARN", "arn:aws:sqs:us-east-1:000000000000:vu-mi-timers")
DISTRIBUTION_QUEUE = os.environ.get(
    "DISTRIBUTION_QUEUE_ARN", "arn:aws:sqs:us-east-1:000000000000:vu-mi-distribution"
)
