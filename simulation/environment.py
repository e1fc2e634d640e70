"""The project's folder, an environment without an AWS account, and a free port of loopback."""

from __future__ import annotations

import socket
from collections.abc import MutableMapping
from pathlib import Path

NO_CLIENT_LIMITS = {
    "CLIENT_NEW_IDS_PER_MINUTE": "0",
    "CLIENT_NEW_IDS_PER_DAY": "0",
    "CLIENT_CLAIMS_PER_MINUTE": "0",
    "CLIENT_CHANGES_PER_MINUTE": "0",
}
"""The settings of a server that gets all its requests from one address."""
ROOT = Path(__file__).parent.parent
"""The folder in which programs of the project start."""
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
    "TABLE_NAME": "vu-mi",
    "VIEWS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/000000000000/vu-mi-views",
}


def isolate(environment: MutableMapping[str, str]) -> None:
    """Remove the user's AWS accounts and endpoints from the environment."""
    for name in [name for name in environment if name.startswith("AWS_")]:
        del environment[name]
    environment.update(ENVIRONMENT)


def free_port() -> int:
    """Return a port of loopback on which nothing listens now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
