"""AWS clients with given answers, and the errors that botocore raises."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from botocore.exceptions import ClientError

Request: TypeAlias = dict[str, Any]


class FakeClient:
    """A boto3 client: one function answers every operation; `calls` records the requests."""

    def __init__(self, answer: Callable[[str, Request], Request]) -> None:
        self._answer = answer
        self.calls: list[tuple[str, Request]] = []

    def __getattr__(self, operation: str) -> Callable[..., Request]:
        def call(**request: Any) -> Request:
            self.calls.append((operation, copy.deepcopy(request)))
            return self._answer(operation, request)

        return call

    @property
    def operations(self) -> list[str]:
        return [operation for operation, _ in self.calls]

    @property
    def requests(self) -> list[Request]:
        return [request for _, request in self.calls]


def script(*answers: Request | Exception) -> FakeClient:
    """Return a client that gives these answers in turn; any further call fails the test."""
    left = iter(answers)

    def answer(operation: str, _: Request) -> Request:
        following = next(left, None)
        if following is None:
            raise AssertionError(f"{operation} is one call more than the {len(answers)} expected")
        if isinstance(following, Exception):
            raise following
        return following

    return FakeClient(answer)


def client_error(code: str, status: int = 400, **answer: Any) -> ClientError:
    """Return the error that botocore raises for an answer with an error code."""
    response: Any = {
        "Error": {"Code": code, "Message": f"the message of {code}"},
        "ResponseMetadata": {"HTTPStatusCode": status},
        **answer,
    }
    return ClientError(response, "Operation")


def cancelled(*reasons: str | Mapping[str, Any]) -> ClientError:
    """Return the error of a cancelled transaction, with one reason for each write."""
    given = [{"Code": reason} if isinstance(reason, str) else dict(reason) for reason in reasons]
    return client_error("TransactionCanceledException", CancellationReasons=given)
