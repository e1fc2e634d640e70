"""Where the consumers' events come from, as Chalice wants to know it before they exist.

Only `chalice deploy` reads these, from the stage's environment variables in `.chalice/config.json`;
the template of `chalice package` puts its own resources in their place.
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
