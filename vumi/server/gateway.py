"""Chalice's `LocalGateway` as a WSGI application: it calls the app as API Gateway does."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any, Protocol, TypeAlias, TypeVar

from chalice.app import Chalice
from chalice.config import Config
from chalice.local import LocalChalice, LocalGateway, LocalGatewayException

from chalicelib import telemetry
from chalicelib.http import responses
from chalicelib.storage.errors import StorageError
from vumi.storage.database import Corrupt

SHARING = ("GET", "HEAD")
"""Methods whose requests only read and count, and so may share a commit."""
ANSWER = "vu-mi.answer"
"""Where an `environ` has the answer, if there is one already."""
HEALTH = "/healthz"

NO_TOKEN = "give a token: Authorization: Bearer TOKEN"  # noqa: S105  says that there is none

Result = TypeVar("Result")
Answer: TypeAlias = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and body."""
StartResponse = Callable[[str, list[tuple[str, str]]], object]


class Together(Protocol):
    """Calls a function whose writes share a commit with those of others; raises `StorageError`."""

    def __call__(self, function: Callable[[], Result], /) -> Result: ...


class Gateway:
    """A WSGI application that answers as the deployed app would.

    Requests that only read and count run `together`; others, which may call the network, don't.
    What answers many requests at once asks for their `answers`, and puts each into its `environ`.
    """

    def __init__(self, app: Chalice, together: Together) -> None:
        # Chalice keeps the request under way on the app; this class of its own keeps one a thread.
        app.__class__ = LocalChalice
        self._gateway = _Routes(app, Config())
        self._together = together

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        status, headers, body = environ.get(ANSWER) or self._answer(environ)
        headers.append(("Content-Length", str(len(body))))
        start_response(f"{status} {_phrase(status)}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def answers(self, requests: Sequence[dict[str, Any]]) -> list[Answer]:
        """Answer requests that only read and count in one commit, or raise `StorageError`.

        Then none is answered, and each is to be tried alone.
        """
        return self._together(lambda: [self._handle(environ) for environ in requests])

    def _answer(self, environ: dict[str, Any]) -> Answer:
        if environ["REQUEST_METHOD"] not in SHARING:
            return self._handle(environ)
        try:
            [answer] = self.answers([environ])
        except StorageError as error:
            if isinstance(error, Corrupt) and environ["PATH_INFO"] == HEALTH:
                # What can be read still is, so the handler would find all well.
                return error_answer(503, "unavailable", "the file is corrupt, see the log")
            # Alone, the handler meets the same fault, and answers it as it would on AWS.
            return self._handle(environ)
        return answer

    def _handle(self, environ: dict[str, Any]) -> Answer:
        try:
            response = self._gateway.handle_request(
                environ["REQUEST_METHOD"], _target(environ), _headers(environ), _body(environ)
            )
        except LocalGatewayException as refusal:
            return _refused(refusal)
        except Exception:  # noqa: BLE001  the connection must get an answer
            telemetry.event(logging.ERROR, "a request failed")
            return error_answer(500, "internal", "an internal error, see the log")
        if response["statusCode"] == HTTPStatus.METHOD_NOT_ALLOWED:
            return _not_allowed(response["headers"]["Allow"])
        return _answered(response)


class _Routes(LocalGateway):
    """Answers OPTIONS as any other method where a route has no CORS, as API Gateway does."""

    def _has_user_defined_options_method(self, lambda_event: Any) -> bool:
        route = self._app_object.routes[lambda_event["requestContext"]["resourcePath"]]
        return "OPTIONS" in route or all(entry.cors is None for entry in route.values())


def _answered(response: dict[str, Any]) -> Answer:
    status, body = response["statusCode"], response["body"] or ""
    headers = [(name, str(value)) for name, value in response["headers"].items()]
    for name, values in response["multiValueHeaders"].items():
        headers += [(name, str(value)) for value in values]
    if response.get("isBase64Encoded"):
        return status, headers, base64.b64decode(body)
    return status, headers, body.encode() if isinstance(body, str) else body


def _refused(refusal: LocalGatewayException) -> Answer:
    """Where it has no such route, API Gateway says that the request is not authorized."""
    match refusal.CODE, refusal.headers.get("x-amzn-ErrorType"):
        case HTTPStatus.FORBIDDEN, "UnauthorizedException":
            return error_answer(404, "not_found", "there is no such route")
        case HTTPStatus.UNAUTHORIZED, _:
            status, headers, body = error_answer(401, "unauthorized", NO_TOKEN)
            return status, [*headers, ("WWW-Authenticate", "Bearer")], body
        case HTTPStatus.FORBIDDEN, _:
            return error_answer(403, "forbidden", "this token opens nothing here")
    return error_answer(refusal.CODE, "refused", (refusal.body or b"").decode())


def _not_allowed(allow: str) -> Answer:
    """A 405 names what is allowed. Source: RFC 9110, section 15.5.6."""
    status, headers, body = error_answer(405, "method_not_allowed", f"use {allow}")
    return status, [*headers, ("Allow", allow)], body


def error_answer(status: int, code: str, message: str) -> Answer:
    """An error in the product's form."""
    return _answered(responses.error(status, code, message).to_dict())


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _target(environ: dict[str, Any]) -> str:
    """Path and query, without what Python takes apart in a path: all behind `;` or `#`.

    Behind a `#` the authorizer would see another path than the route that is called.
    """
    target: str = environ["REQUEST_URI"]
    path, mark, query = target.partition("?")
    return path.replace(";", "%3B").replace("#", "%23") + mark + query


def _headers(environ: dict[str, Any]) -> dict[str, str]:
    headers = {
        # What is not ASCII the gateway would stumble over; no header here may have it.
        name[5:].replace("_", "-").lower(): value.encode("ascii", "replace").decode()
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    if environ.get("CONTENT_TYPE"):
        headers["content-type"] = environ["CONTENT_TYPE"]
    return headers


def _body(environ: dict[str, Any]) -> bytes | None:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    return environ["wsgi.input"].read(length) if length else None
