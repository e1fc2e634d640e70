"""The tests that need DynamoDB Local: `make dynamodb-local` starts it and runs them."""

from __future__ import annotations

import os

collect_ignore_glob = [] if "AWS_ENDPOINT_URL" in os.environ else ["test_*.py"]
