"""The web server: waitress before Chalice's `LocalGateway`, which calls the app as AWS does."""

from __future__ import annotations

import base64
import errno
import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Protocol, TypeAlias

from chalice.app import Chalice
from chalice.config import Config
from chalice.local import LocalChalice, LocalGateway, LocalGatewayException
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import BaseWSGIServer, create_server
from waitress.task import ErrorTask, ThreadedTaskDispatcher, WSGITask

from chalicelib import responses, telemetry
from chalicelib.ports import StorageError
from local.database import Corrupt

THREADS = 40
"""Requests under way at once: they share commits, so that more of them cost less each."""
CONNECTIONS = 1_000
"""Open connections at once; further ones wait to be accepted."""
IDLE_SECONDS = 60
"""A connection that sends nothing for so long is closed."""
MAX_BODY_BYTES = 1_048_576
HEALTH = "/healthz"
DRAIN_SECONDS = 5.0
"""How long a stop waits for the requests under way."""

NO_TOKEN = "give a token: Authorization: Bearer TOKEN"  # noqa: S105  says that there is none

Answer: TypeAlias = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and body."""
StartResponse = Callable[[str, list[tuple[str, str]]], object]


class Together(Protocol):
    """Calls a function whose writes share a commit with those of others; raises `StorageError`."""

    def __call__(self, function: Callable[[], Answer], /) -> Answer: ...


class Gateway:
    """A WSGI application that answers as the deployed app would.

    Requests that only read and count run `together`; others, which may call the network, don't.
    """

    def __init__(self, app: Chalice, together: Together) -> None:
        # Chalice keeps the request under way on the app; this class of its own keeps one a thread.
        app.__class__ = LocalChalice
        self._gateway = _Routes(app, Config())
        self._together = together

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        status, headers, body = self._answer(environ)
        headers.append(("Content-Length", str(len(body))))
        start_response(f"{status} {_phrase(status)}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, environ: dict[str, Any]) -> Answer:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return self._handle(environ)
        try:
            return self._together(lambda: self._handle(environ))
        except StorageError as error:
            if isinstance(error, Corrupt) and environ["PATH_INFO"] == HEALTH:
                # What can be read still is, so the handler would find all well.
                return _error(503, "unavailable", "the file is corrupt, see the log")
            # Alone, the handler meets the same fault, and answers it as it would on AWS.
            return self._handle(environ)

    def _handle(self, environ: dict[str, Any]) -> Answer:
        try:
            response = self._gateway.handle_request(
                environ["REQUEST_METHOD"], _target(environ), _headers(environ), _body(environ)
            )
        except LocalGatewayException as refusal:
            return _refused(refusal)
        except Exception:  # noqa: BLE001  the connection must get an answer
            telemetry.event(logging.ERROR, "a request failed")
            return _error(500, "internal", "an internal error, see the log")
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
            return _error(404, "not_found", "there is no such route")
        case HTTPStatus.UNAUTHORIZED, _:
            status, headers, body = _error(401, "unauthorized", NO_TOKEN)
            return status, [*headers, ("WWW-Authenticate", "Bearer")], body
        case HTTPStatus.FORBIDDEN, _:
            return _error(403, "forbidden", "this token opens nothing here")
    return _error(refusal.CODE, "refused", (refusal.body or b"").decode())


def _not_allowed(allow: str) -> Answer:
    """A 405 names what is allowed. Source: RFC 9110, section 15.5.6."""
    status, headers, body = _error(405, "method_not_allowed", f"use {allow}")
    return status, [*headers, ("Allow", allow)], body


def _error(status: int, code: str, message: str) -> Answer:
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


class _Refusal(ErrorTask):
    """What waitress refuses itself: a malformed request, or one that is too large."""

    request: Any

    def execute(self) -> None:
        refused = self.request.error
        code = "too_large" if refused.code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE else "bad_request"
        _, headers, body = _error(refused.code, code, refused.body)
        self.status = f"{refused.code} {refused.reason}"
        self.response_headers = headers
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _Task(WSGITask):
    """Keeps the connection behind an answer that has no body; waitress would close it.

    Source: RFC 9112, section 6.3: such an answer ends with its head.
    """

    request: Any

    def set_close_on_finish(self) -> None:
        asked = self.request.headers.get("CONNECTION", "").lower() == "close"
        if self.has_body or self.version == "1.0" or asked:
            super().set_close_on_finish()


class _Channel(HTTPChannel):
    task_class = _Task
    error_task_class = _Refusal


class WebServer:
    """Binds on construction (`OSError` where it can't) and serves until stopped."""

    def __init__(self, application: Gateway, host: str, port: int) -> None:
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        self._sockets: dict[int, Any] = {}
        try:
            self._dispatcher = self._listen(application, host, port)
        except OSError:
            wasyncore.close_all(self._sockets)
            raise
        except ValueError:  # waitress's word for a name that has no address
            raise OSError(errno.EADDRNOTAVAIL, "no such host") from None
        self._listeners: list[Any] = [
            entry for entry in self._sockets.values() if isinstance(entry, BaseWSGIServer)
        ]
        for listener in self._listeners:
            listener.channel_class = _Channel
        self._stopping = threading.Event()

    def _listen(self, application: Gateway, host: str, port: int) -> ThreadedTaskDispatcher:
        server = create_server(
            application,
            map=self._sockets,
            host=host,
            port=port,
            threads=THREADS,
            connection_limit=CONNECTIONS,
            channel_timeout=IDLE_SECONDS,
            max_request_body_size=MAX_BODY_BYTES,
            asyncore_use_poll=True,
            ident=None,
        )
        return server.task_dispatcher

    @property
    def port(self) -> int:
        """The port it listens on, also where 0 was asked for."""
        return int(self._listeners[0].effective_port)

    def serve(self) -> None:
        """Answer requests until `stop`, then finish those under way."""
        while not self._stopping.is_set():
            self._poll(1.0)
        for listener in self._listeners:
            listener.del_channel()
            listener.socket.close()
        deadline = time.monotonic() + DRAIN_SECONDS
        while self._busy() and time.monotonic() < deadline:
            self._poll(0.05)
        self._dispatcher.shutdown()
        wasyncore.close_all(self._sockets)

    def stop(self) -> None:
        """End `serve`; may be called by a signal's handler."""
        self._stopping.set()
        with suppress(OSError):  # `serve` has ended already
            self._listeners[0].pull_trigger()

    def _poll(self, seconds: float) -> None:
        wasyncore.loop(timeout=seconds, use_poll=True, map=self._sockets, count=1)

    def _busy(self) -> bool:
        return any(
            channel.requests or channel.total_outbufs_len
            for listener in self._listeners
            for channel in listener.active_channels.values()
        )
