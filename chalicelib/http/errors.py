"""The errors of callers, and the one mapper from exceptions to responses.

Each feature derives its own errors from `ClientError`, with their status and code.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType

from chalicelib import telemetry
from chalicelib.http.messages import Response
from chalicelib.http.responses import error
from chalicelib.storage.errors import StorageError
from chalicelib.storage.writes import ConditionFailedError

RETRY_SECONDS = "1"
NOTHING: Mapping[str, str] = MappingProxyType({})


class ClientError(Exception):
    """A request that can't be done; the message says what to give instead."""

    status = 400
    code = "bad_request"
    headers: Mapping[str, str] = NOTHING
    details: Mapping[str, str] = NOTHING
    """Fields of the response beside its code and message."""


class BadRequestError(ClientError, ValueError):
    """A field, an option, a cursor or an id is missing or malformed."""


class TooLargeError(ClientError):
    """The body is larger than 256 KiB, or than 16 KiB for the owner of a badge."""

    status = 413
    code = "too_large"


class UnauthorizedError(ClientError):
    """The request has no token."""

    status = 401
    code = "unauthorized"
    headers: Mapping[str, str] = {"WWW-Authenticate": "Bearer"}


class ForbiddenError(ClientError):
    """The token is not good for the request."""

    status = 403
    code = "forbidden"


class NotFoundError(ClientError):
    """There is no such route, or no such thing."""

    status = 404
    code = "not_found"


class MethodNotAllowedError(ClientError):
    """The path has routes for other methods only (RFC 9110, section 15.5.6)."""

    status = 405
    code = "method_not_allowed"

    def __init__(self, allowed: str) -> None:
        super().__init__(f"use {allowed}")
        self.headers = {"Allow": allowed}


def to_response(failure: Exception) -> Response:
    """Answer an exception that is being handled, and log it unless it is the caller's."""
    if isinstance(failure, ClientError):
        response = error(failure.status, failure.code, str(failure), failure.details)
        headers = {**response.headers, **failure.headers}
        return Response(response.status, headers, response.body, is_refusal=True)
    telemetry.event(logging.ERROR, "request_failed")
    # An unhandled failed condition means a concurrent write: a retry reads its result.
    if isinstance(failure, StorageError | ConditionFailedError):
        return unavailable("the storage does not answer: send the same request again")
    return error(500, "internal", "internal error: see the log")


def unavailable(message: str) -> Response:
    """Answer 503, with the time after which to try again."""
    response = error(503, "unavailable", message)
    return response._replace(headers={**response.headers, "Retry-After": RETRY_SECONDS})
