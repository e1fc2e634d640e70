"""Clients of AWS, made by botocore itself: boto3 would make the same in more time."""

from __future__ import annotations

from functools import cache
from typing import Any

from botocore.config import Config
from botocore.loaders import Loader
from botocore.session import Session, get_session

SERVICES = ("dynamodb", "s3", "sqs")
CONFIG = Config(
    # One answer of DynamoDB or SQS takes milliseconds, and a badge can't wait longer than this.
    connect_timeout=1.0,
    read_timeout=1.0,
    # `Retry` alone decides about further tries.
    retries={"total_max_attempts": 1},
    max_pool_connections=32,
    # botocore would compose its own for each request, in 0.2 ms.
    user_agent="vu-mi",
    # DynamoDB and SQS check each request themselves; botocore's check takes a tenth of a GET.
    parameter_validation=False,
)


class ServicesLoader(Loader):
    """The loader of botocore's data, for these services.

    botocore's own lists its 400 folders to find out which services there are.
    """

    def list_available_services(self, type_name: str) -> list[str]:  # noqa: ARG002
        return list(SERVICES)


def aws_client(service: str) -> Any:
    """Return a new client of a service."""
    return _session().create_client(service, config=CONFIG)


@cache
def _session() -> Session:
    """Return the session of all clients: each session reads botocore's data, in 35 ms."""
    session = get_session()
    session.register_component("data_loader", ServicesLoader())
    return session
