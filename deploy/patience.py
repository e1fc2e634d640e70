"""The repetition of calls to AWS that fail for a while.

AWS answers some calls with an error that passes by itself: a new table is not found at first, its
backups may take 20 minutes, and other restores may be in progress.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import TypeVar

from botocore.exceptions import ClientError

Result = TypeVar("Result")

POLL_SECONDS = 10.0
"""Seconds between two tries, and between two checks of a restore, which can take hours."""
MAX_ATTEMPTS = 121
"""Tries of a call: 20 minutes, which AWS may need to set up the backups of a new table."""
TRANSIENT = frozenset(
    {
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ResourceConflictException",
        "ResourceInUseException",
        "ServiceException",
        "TableInUseException",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""Errors of DynamoDB and Lambda that pass by themselves (their API references)."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The repetition of calls to AWS that fail for a while."""

    pause: Callable[[float], None] = time.sleep

    def call(self, operation: Callable[[], Result], also: Container[str] = ()) -> Result:
        """Return the result of a call. Repeat it after a transient error, or one of `also`."""
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return operation()
            except ClientError as error:
                code = error.response["Error"]["Code"]
                if code not in TRANSIENT and code not in also:
                    raise
            self.pause(POLL_SECONDS)
        return operation()
