"""A WSGI application over the routes: reads a request, has it answered, sends the response."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any, Protocol, TypeAlias, TypeVar

from chalicelib import telemetry
from chalicelib.http import errors, query, responses
from chalicelib.http.messages import Request, Response
from chalicelib.storage.ports import StorageError
from vumi.storage.database import Corrupt

SHARING = ("GET", "HEAD")
"""Methods whose requests only read and count, and so may share a commit."""
ANSWER = "vu-mi.answer"
"""The key of an `environ` for a response that is made already."""
HEALTH = "/healthz"

Result = TypeVar("Result")
Answer: TypeAlias = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and body."""
StartResponse = Callable[[str, list[tuple[str, str]]], object]


class Together(Protocol):
    """Calls a function whose writes share a commit with those of others; raises `StorageError`."""

    def __call__(self, function: Callable[[], Result], /) -> Result: ...


class Gateway:
    """A WSGI application that answers by `route`, which never raises.

    Requests that only read and count run `together`; others, which may call the network, don't. A
    server that answers many requests in one commit calls `answers`, and puts each response into the
    `environ` of its request.
    """

    def __init__(self, route: Callable[[Request], Response], together: Together) -> None:
        self._route = route
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
                # The route would find all well, because what can be read still is.
                return _wsgi(errors.unavailable("the file is corrupt, see the log"))
            # Alone, the route meets the same fault, and answers it as it would on AWS.
            return self._handle(environ)
        return answer

    def _handle(self, environ: dict[str, Any]) -> Answer:
        try:
            return _wsgi(self._route(_request(environ)))
        except Exception:  # noqa: BLE001  the connection must get an answer
            telemetry.event(logging.ERROR, "request_failed")
            return error_answer(500, "internal", "internal error: see the log")


def error_answer(status: int, code: str, message: str) -> Answer:
    """Return an error in the product's form."""
    return _wsgi(responses.error(status, code, message))


def _wsgi(response: Response) -> Answer:
    return response.status, list(response.headers.items()), response.body


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _request(environ: dict[str, Any]) -> Request:
    path, _, raw_query = environ["REQUEST_URI"].partition("?")
    return Request(
        method=environ["REQUEST_METHOD"],
        path=path,
        query=query.parse(raw_query),
        headers=_headers(environ),
        body=_body(environ),
    )


def _headers(environ: dict[str, Any]) -> dict[str, str]:
    headers = {
        name[5:].replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    if environ.get("CONTENT_TYPE"):
        headers["content-type"] = environ["CONTENT_TYPE"]
    return headers


def _body(environ: dict[str, Any]) -> bytes:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    return environ["wsgi.input"].read(length) if length else b""
