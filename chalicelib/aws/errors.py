"""The mapper of AWS's errors: try again (`UnavailableError`), or don't."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from chalicelib.lazy import lazy
from chalicelib.storage.errors import StorageError, StorageRefusedError, UnavailableError

if TYPE_CHECKING:
    from botocore import exceptions
    from botocore.exceptions import ClientError
else:
    exceptions = lazy("botocore.exceptions")

TRANSIENT = frozenset(
    {
        "InternalFailure",
        "InternalServerError",
        "KmsThrottled",
        "LimitExceededException",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "Throttling",
        "ThrottledException",
        "ThrottlingError",
        "ThrottlingException",
        "TransactionConflict",
        "TransactionConflictException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
"""Error codes after which the same call may work (DynamoDB's and SQS's API references)."""

SERVER_ERROR = 500


def code_of(error: ClientError) -> str:
    """Return the error code of an answer, without the namespace that SQS puts before it."""
    return error.response.get("Error", {}).get("Code", "").rsplit(".", 1)[-1]


def meaning(error: ClientError) -> StorageError:
    """Return the `StorageError` for an error of AWS."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    transient = code_of(error) in TRANSIENT or status >= SERVER_ERROR
    return (UnavailableError if transient else StorageRefusedError)(str(error))


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise a `StorageError` in place of botocore's errors."""
    try:
        yield
    except exceptions.ClientError as error:
        raise meaning(error) from error
    except (
        exceptions.HTTPClientError,
        exceptions.ConnectionError,
        exceptions.ChecksumError,
    ) as error:
        raise UnavailableError(str(error)) from error
    except exceptions.BotoCoreError as error:
        raise StorageRefusedError(str(error)) from error
