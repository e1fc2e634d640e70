"""The web server answers as the deployed app would, whole and in the product's shapes."""

from __future__ import annotations

import errno
import gc
import http.client
import io
import json
import re
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from chalice.app import Chalice, Response
from vumi.server.gateway import Gateway
from waitress.channel import HTTPChannel

from app import app as product
from chalicelib.http.responses import ANY_TYPE
from chalicelib.settings import Settings
from chalicelib.storage.errors import Refused, StorageError, Unavailable
from vumi.engine import Engine
from vumi.server.web import MAX_BODY_BYTES, POLL_SECONDS, TOGETHER, WebServer

Result = TypeVar("Result")

NOW = 1_000_000.0
PATIENCE = 10.0
"""Seconds after which what does not come is taken for hung."""
LARGE = 12_000_000
"""More bytes than the buffers of a socket take."""


@dataclass
class Answered:
    """What a WSGI server would send."""

    status: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def environ(method: str, target: str, body: bytes = b"", **more: str) -> dict[str, Any]:
    """What waitress hands on of a request."""
    return {
        "REQUEST_METHOD": method,
        "REQUEST_URI": target,
        "CONTENT_LENGTH": str(len(body)) if body else "",
        "wsgi.input": io.BytesIO(body + b"the next request"),
        **more,
    }


def call(gateway: Gateway, given: dict[str, Any]) -> Answered:
    started: list[tuple[str, list[tuple[str, str]]]] = []
    body = b"".join(gateway(given, lambda status, headers: started.append((status, headers))))
    [(status, headers)] = started
    return Answered(status, dict(headers), body)


@dataclass
class Together:
    """Runs a function at once and counts that; raises instead where told to."""

    error: Exception | None = None
    after: bool = False
    calls: int = 0

    def __call__(self, function: Callable[[], Result], /) -> Result:
        self.calls += 1
        if self.error is not None and not self.after:
            raise self.error
        answer = function()
        if self.error is not None:
            raise self.error
        return answer


@dataclass
class Small:
    """A small app that tells what it was asked."""

    app: Chalice
    calls: list[str] = field(default_factory=list)
    entered: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)
    meeting: threading.Barrier = field(default_factory=lambda: threading.Barrier(2))


def _add_what_waits(small: Small) -> None:
    app = small.app

    @app.route("/slow", methods=["GET", "POST"], content_types=ANY_TYPE)
    def slow() -> dict[str, str]:
        small.entered.set()
        assert small.go_on.wait(PATIENCE)
        return {"slow": "but done"}

    @app.route("/meet")
    def meet() -> dict[str, Any]:
        small.meeting.wait(PATIENCE)
        request = app.current_request
        assert request is not None
        return request.to_original_event()["multiValueQueryStringParameters"]  # type: ignore[no-any-return]

    @app.route("/meeting", methods=["POST"], content_types=ANY_TYPE)
    def meeting() -> dict[str, bool]:
        small.meeting.wait(PATIENCE)
        return {"met": True}

    @app.route("/large")
    def large() -> Response:
        small.entered.set()
        return Response(b"x" * LARGE, {"Content-Type": "text/plain"})


@pytest.fixture
def small() -> Small:
    app = Chalice(app_name="small", configure_logs=False)
    small = Small(app)

    @app.route("/echo", methods=["GET", "POST", "PUT"], content_types=["application/json"])
    def echo() -> dict[str, Any]:
        request = app.current_request
        assert request is not None
        small.calls.append(request.method)
        return {
            "method": request.method,
            "query": request.to_original_event()["multiValueQueryStringParameters"],
            "body": request.json_body if request.raw_body else None,
            "token": request.headers.get("authorization"),
        }

    @app.route("/names/{name}")
    def names(name: str) -> dict[str, Any]:
        return {"name": name}

    @app.route("/teapot")
    def teapot() -> Response:
        return Response("short and stout", {"X-Shape": "round"}, 418)

    @app.route("/shared", cors=True)
    def shared() -> dict[str, Any]:
        return {}

    @app.route("/strange")
    def strange() -> Response:
        return Response("", status_code=599)

    @app.route("/nothing", methods=["PUT"], content_types=["application/json"])
    def nothing() -> Response:
        return Response("", status_code=204)

    _add_what_waits(small)
    return small


@pytest.fixture
def gateway(small: Small) -> Gateway:
    return Gateway(small.app, Together())


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """The product's storage, with nothing running that would take messages off the queue."""
    engine = Engine(tmp_path, Settings(), lambda: NOW)
    engine.prepare()
    kind = product.__class__
    yield engine
    product.__class__ = kind
    engine.stop()


def taken(engine: Engine) -> list[str]:
    """The ids of the badges whose views are stored, or wait on the queue to be."""
    waiting = [json.loads(message.body)["id"] for message in engine.queue.receive(100)]
    database = engine.table._database  # noqa: SLF001  no partition lists all badges
    stored = database.read("SELECT pk FROM items WHERE sk LIKE 'VIEW#%' ORDER BY sk")
    return [pk.removeprefix("USER#") for (pk,) in stored] + waiting


def test_a_get_is_answered_with_a_badge_and_counted(engine: Engine) -> None:
    gateway = Gateway(product, engine.together)

    answered = call(gateway, environ("GET", "/api/v1/views?id=a"))

    assert answered.status == "200 OK"
    assert answered.json == {"schemaVersion": 1, "label": "views", "message": "0", "color": "blue"}
    assert answered.headers["Content-Type"] == "application/json"
    assert answered.headers["Content-Length"] == str(len(answered.body))
    assert "no-store" in answered.headers["Cache-Control"]
    assert taken(engine) == ["a"]


def test_a_head_is_answered_without_a_body_and_not_counted(engine: Engine) -> None:
    gateway = Gateway(product, engine.together)
    whole = call(gateway, environ("GET", "/api/v1/views?id=a&peek=1"))

    answered = call(gateway, environ("HEAD", "/api/v1/views?id=a"))

    assert answered.status == "200 OK"
    assert answered.body == b""
    assert answered.headers == whole.headers  # its Content-Length is that of the GET
    assert taken(engine) == []


@pytest.mark.parametrize(
    ("target", "badge_id"),
    [
        ("/api/v1/views?id=owner%2Fname", "owner/name"),
        ("/api/v1/views?id=owner/name", "owner/name"),
        ("/api/v1/views?id=%C3%BC%20%F0%9F%98%80", "ü 😀"),
        ("/api/v1/views?id=a+b", "a b"),
        ("/api/v1/views?id=a%2Bb%26c%3Dd", "a+b&c=d"),
        ("/api/v1/views?id=%2525", "%25"),
        ("/v1/api/views?id=a", "a"),
    ],
)
def test_an_id_is_read_as_it_was_meant(engine: Engine, target: str, badge_id: str) -> None:
    answered = call(Gateway(product, engine.together), environ("GET", target))

    assert answered.json["message"] == "0"
    assert taken(engine) == [badge_id]


def test_a_view_is_counted_though_the_common_commit_failed(engine: Engine) -> None:
    gateway = Gateway(product, Together(Unavailable("the disk is full")))

    answered = call(gateway, environ("GET", "/api/v1/views?id=a"))

    assert answered.json["message"] == "0"
    assert taken(engine) == ["a"]


def test_a_route_that_does_not_exist_is_not_found(gateway: Gateway) -> None:
    answered = call(gateway, environ("GET", "/no/such/route"))

    assert answered.status == "404 Not Found"
    assert answered.json == {"error": {"code": "not_found", "message": "there is no such route"}}
    assert answered.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("header", ["Bearer x", "Bearer \u00fc"])
def test_a_route_that_does_not_exist_is_not_found_with_a_token_either(
    gateway: Gateway, header: str
) -> None:
    answered = call(gateway, environ("GET", "/nowhere", HTTP_AUTHORIZATION=header))
    assert answered.status.startswith("404 ")
    assert b"Bearer" not in answered.body


def test_a_wrong_method_is_not_allowed_and_the_right_ones_are_named(gateway: Gateway) -> None:
    answered = call(gateway, environ("DELETE", "/echo"))

    assert answered.status == "405 Method Not Allowed"
    message = "use GET, POST, PUT"
    assert answered.json == {"error": {"code": "method_not_allowed", "message": message}}
    assert answered.headers["Allow"] == "GET, POST, PUT"


def test_options_is_a_method_like_any_other(gateway: Gateway) -> None:
    """API Gateway answers it by itself only where a route has CORS."""
    answered = call(gateway, environ("OPTIONS", "/names/a"))

    assert answered.status == "405 Method Not Allowed"
    assert answered.headers["Allow"] == "GET"


def test_options_is_answered_where_a_route_has_cors(gateway: Gateway) -> None:
    answered = call(gateway, environ("OPTIONS", "/shared"))

    assert answered.status == "200 OK"
    assert answered.headers["Access-Control-Allow-Methods"] == "GET,OPTIONS"


def test_a_body_and_its_headers_reach_the_handler(gateway: Gateway) -> None:
    body = json.dumps({"name": "ü"}, ensure_ascii=False).encode()
    given = environ("POST", "/echo?a=1&b=2&a=3", body, CONTENT_TYPE="application/json")

    answered = call(gateway, given | {"HTTP_AUTHORIZATION": "Bearer x"})

    assert answered.status == "200 OK"
    assert answered.json == {
        "method": "POST",
        "query": {"a": ["1", "3"], "b": ["2"]},
        "body": {"name": "ü"},
        "token": "Bearer x",
    }


def test_no_more_is_read_than_the_body(gateway: Gateway) -> None:
    given = environ("POST", "/echo", b"{}", CONTENT_TYPE="application/json")

    assert call(gateway, given).json["body"] == {}
    assert given["wsgi.input"].read() == b"the next request"


def test_without_a_body_nothing_is_read(gateway: Gateway) -> None:
    given = environ("GET", "/echo")

    assert call(gateway, given).json["body"] is None
    assert given["wsgi.input"].read() == b"the next request"


def test_a_part_of_the_path_stays_one_part_where_it_is_encoded(gateway: Gateway) -> None:
    """API Gateway hands on what is percent-encoded, and so does this."""
    assert call(gateway, environ("GET", "/names/a%2Fb")).json == {"name": "a%2Fb"}


def test_a_semicolon_is_part_of_a_name(gateway: Gateway) -> None:
    """Python's `urlparse` would cut the path off there, and a request would mean another badge."""
    answered = call(gateway, environ("GET", "/names/a;b?c;d"))
    assert answered.json == {"name": "a%3Bb"}


def test_a_hash_is_part_of_a_name(gateway: Gateway) -> None:
    """`urlparse` would cut the path off there too, and an authorizer would see all of it."""
    answered = call(gateway, environ("GET", "/names/a#b?c#d"))
    assert answered.json == {"name": "a%23b"}


def test_a_badge_is_answered_whatever_type_a_body_would_have(engine: Engine) -> None:
    gateway = Gateway(product, engine.together)
    for shown, kind in enumerate(("text/plain", "image/png", "nonsense")):
        answered = call(gateway, environ("GET", "/api/v1/views?id=a", CONTENT_TYPE=kind))
        assert answered.json["message"] == str(shown)
    assert taken(engine) == ["a", "a", "a"]


def test_a_status_and_headers_of_the_handler_s_own_are_sent(gateway: Gateway) -> None:
    answered = call(gateway, environ("GET", "/teapot"))

    assert answered.status == "418 I'm a Teapot"
    assert answered.headers["X-Shape"] == "round"
    assert answered.body == b"short and stout"
    assert answered.headers["Content-Length"] == "15"


def test_a_status_without_a_name_is_sent_all_the_same(gateway: Gateway) -> None:
    assert call(gateway, environ("GET", "/strange")).status == "599 "


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_only_reads_and_counts_runs_together(small: Small, method: str) -> None:
    together = Together()

    call(Gateway(small.app, together), environ(method, "/echo"))

    assert together.calls == 1


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_what_may_call_the_network_runs_alone(small: Small, method: str) -> None:
    together = Together(Unavailable("never asked"))
    given = environ(method, "/echo", b"{}", CONTENT_TYPE="application/json")

    answered = call(Gateway(small.app, together), given)

    assert answered.json["method"] == method
    assert together.calls == 0


@pytest.mark.parametrize("error", [Unavailable("full"), Refused("broken")])
@pytest.mark.parametrize(("after", "calls"), [(False, 1), (True, 2)])
def test_a_storage_error_together_is_answered_by_the_handler_alone(
    small: Small, error: StorageError, *, after: bool, calls: int
) -> None:
    """`after`: the handler ran, and then its commit failed, so that it runs once more."""
    together = Together(error, after)

    answered = call(Gateway(small.app, together), environ("GET", "/echo"))

    assert answered.status == "200 OK"
    assert together.calls == 1
    assert small.calls == ["GET"] * calls


def test_a_fault_of_the_gateway_is_an_internal_error_and_no_broken_connection(
    gateway: Gateway,
) -> None:
    given = environ("POST", "/echo", CONTENT_LENGTH="no number")

    answered = call(gateway, given)

    assert answered.status == "500 Internal Server Error"
    message = "an internal error, see the log"
    assert answered.json == {"error": {"code": "internal", "message": message}}


def test_requests_under_way_at_once_do_not_mix(gateway: Gateway) -> None:
    """Each handler reads its request only when the other one's has begun."""
    answers: dict[str, Any] = {}

    def visit(name: str) -> None:
        answers[name] = call(gateway, environ("GET", f"/meet?name={name}")).json

    threads = [threading.Thread(target=visit, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert answers == {"one": {"name": ["one"]}, "two": {"name": ["two"]}}


@contextmanager
def serving(
    gateway: Gateway, turn: Turn | None = None
) -> Iterator[tuple[WebServer, threading.Thread]]:
    server = WebServer(gateway, "127.0.0.1", 0, turn)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server, thread
    finally:
        if thread.is_alive():
            server.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def connect(server: WebServer) -> closing[http.client.HTTPConnection]:
    return closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE))


def ask(connection: http.client.HTTPConnection, target: str) -> tuple[int, Any]:
    connection.request("GET", target)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return True
    return False


def test_a_view_is_stored_by_the_commit_that_answers_it(engine: Engine) -> None:
    """No message is left to be delivered, and the next visitor sees it."""
    gateway = Gateway(product, engine.together)

    shown = [call(gateway, environ("GET", "/api/v1/views?id=a")).json["message"] for _ in "ab"]

    assert shown == ["0", "1"]
    assert engine.queue.size() == 0


def send(server: WebServer, requests: bytes) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    client.sendall(requests)
    return client


def get(target: str, more: str = "") -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: h\r\n{more}\r\n".encode()


def test_what_came_while_others_were_answered_shares_one_commit(small: Small) -> None:
    assert _commits_behind_a_slow_one(small, 3) == 1


def test_no_more_than_so_many_share_a_commit(small: Small) -> None:
    assert _commits_behind_a_slow_one(small, TOGETHER) == 1
    small.entered.clear()
    small.go_on.clear()
    assert _commits_behind_a_slow_one(small, TOGETHER + 1) == 2


def _commits_behind_a_slow_one(small: Small, visitors: int) -> int:
    """How many commits it takes to answer so many who ask while another is answered."""
    together = Together()
    with serving(Gateway(small.app, together)) as (server, _), ExitStack() as clients:
        slow, *others = _visitors(server, clients, 1 + visitors)
        slow.sendall(get("/slow"))
        assert small.entered.wait(PATIENCE)
        before = together.calls
        for client in others:
            client.sendall(get("/names/a"))
        small.go_on.set()
        assert [_body(client) for client in others] == [{"name": "a"}] * visitors
        assert _body(slow) == {"slow": "but done"}
    return together.calls - before


def _visitors(server: WebServer, clients: ExitStack, number: int) -> list[socket.socket]:
    """So many connections that the server has accepted, for it has answered on each."""
    visitors = [clients.enter_context(send(server, get("/names/first"))) for _ in range(number)]
    for client in visitors:
        assert _body(client) == {"name": "first"}
    return visitors


def _body(client: socket.socket) -> Any:
    response = http.client.HTTPResponse(client)
    response.begin()
    return json.loads(response.read())


def test_requests_whose_commit_failed_are_answered_alone(small: Small) -> None:
    together = Together(Unavailable("full"), after=True)
    with serving(Gateway(small.app, together)) as (server, _), connect(server) as connection:
        assert ask(connection, "/names/a") == (200, {"name": "a"})

    # In common, then alone in a commit of its own, then as its handler has it without one.
    assert together.calls == 2


def test_a_fault_in_common_is_logged_and_ends_no_server(
    small: Small, caplog: pytest.LogCaptureFixture
) -> None:
    together = Together(MemoryError())
    with serving(Gateway(small.app, together)) as (server, _), connect(server) as connection:
        connection.request("GET", "/names/a")
        answer = connection.getresponse()
        assert answer.status == 500
        answer.read()
        together.error = None
        assert ask(connection, "/names/a") == (200, {"name": "a"})
    assert "requests failed together" in caplog.text


def test_what_may_call_the_network_holds_up_nobody(small: Small) -> None:
    """A POST that waits for a GET would wait for ever if it kept the loop."""
    with serving(Gateway(small.app, Together())) as (server, _), ExitStack() as clients:
        waiting = clients.enter_context(send(server, b"POST /meeting HTTP/1.1\r\nHost: h\r\n\r\n"))
        with connect(server) as connection:
            assert ask(connection, "/meet?name=a") == (200, {"name": ["a"]})
        assert _body(waiting) == {"met": True}


def test_requests_sent_ahead_are_answered_in_their_order(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"n{place}" for place in range(20)]
    last = get("/names/last", "Connection: close\r\n")
    with (
        serving(gateway) as (server, _),
        send(server, b"".join(get(f"/names/{name}") for name in names) + last) as client,
        client.makefile("rb") as stream,
    ):
        answers = stream.read()

    found = [json.loads(part)["name"] for part in re.findall(rb'{"name":.*?}', answers)]
    assert found == [*names, "last"]
    assert not caplog.records


def test_a_get_sent_ahead_behind_a_post_is_answered_at_once(small: Small) -> None:
    """The thread of the POST wakes the loop, which would sleep on for as long as it may."""
    assert POLL_SECONDS >= PATIENCE
    post = b"POST /slow HTTP/1.1\r\nHost: h\r\n\r\n"
    with (
        serving(Gateway(small.app, Together())) as (server, _),
        send(server, post + get("/names/a", "Connection: close\r\n")) as client,
        client.makefile("rb") as stream,
    ):
        assert small.entered.wait(PATIENCE)
        small.go_on.set()
        assert stream.read().endswith(b'{"name":"a"}')


def test_who_does_not_read_his_answers_holds_up_nobody(small: Small) -> None:
    """More is on its way to him than the sockets and waitress's own buffer take."""
    with serving(Gateway(small.app, Together())) as (server, _), ExitStack() as clients:
        deaf = clients.enter_context(send(server, get("/large") * 3))
        assert small.entered.wait(PATIENCE)
        for _ in range(20):
            with connect(server) as connection:
                assert ask(connection, "/names/a") == (200, {"name": "a"})

        deaf.shutdown(socket.SHUT_WR)
        with deaf.makefile("rb") as stream:
            assert len(stream.read()) > 3 * LARGE


def test_an_answer_is_sent_in_one_piece(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two would be two calls of the system, and wake the client twice."""
    sent: list[bytes] = []
    write = HTTPChannel.write_soon

    def watched(channel: HTTPChannel, data: bytes) -> int:
        sent.append(data)
        return write(channel, data)

    monkeypatch.setattr(HTTPChannel, "write_soon", watched)
    with serving(gateway) as (server, _), connect(server) as connection:
        assert ask(connection, "/names/a") == (200, {"name": "a"})
    assert [data.partition(b"\r\n\r\n")[2] for data in sent] == [b'{"name":"a"}']


def test_a_turn_is_taken_for_a_commit_and_its_answers(small: Small) -> None:
    turn = Turn()
    with serving(Gateway(small.app, Together()), turn) as (server, _), connect(server) as visitor:
        for _ in range(3):
            assert ask(visitor, "/names/a")[0] == 200

    assert turn.taken == 3


@dataclass
class Turn:
    """Counts how often it is taken."""

    taken: int = 0

    def __enter__(self) -> None:
        self.taken += 1

    def __exit__(self, *_: object) -> None:
        pass


def test_port_0_is_a_free_port(gateway: Gateway) -> None:
    with serving(gateway) as (first, _), serving(gateway) as (second, _):
        assert first.port > 0
        assert second.port not in (0, first.port)


def test_a_port_that_is_taken_is_an_error_at_construction(gateway: Gateway) -> None:
    with serving(gateway) as (server, _), warnings.catch_warnings():
        # What waitress had opened by then it leaves to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        assert _error_of(lambda: WebServer(gateway, "127.0.0.1", server.port)) == errno.EADDRINUSE
        gc.collect()


def _error_of(construct: Callable[[], WebServer]) -> int | None:
    """The number of the `OSError`, and nothing that would keep alive what it was raised in."""
    try:
        construct()
    except OSError as error:
        return error.errno
    return None


def test_a_connection_is_kept_for_the_next_request(gateway: Gateway) -> None:
    with serving(gateway) as (server, _), connect(server) as connection:
        assert ask(connection, "/names/first") == (200, {"name": "first"})
        kept = connection.sock
        assert ask(connection, "/no/such/route")[0] == 404
        assert ask(connection, "/names/last") == (200, {"name": "last"})

        assert kept is not None
        assert connection.sock is kept


def test_a_head_over_a_socket_leaves_the_connection_in_step(gateway: Gateway) -> None:
    with serving(gateway) as (server, _), connect(server) as connection:
        connection.request("HEAD", "/names/first")
        response = connection.getresponse()
        assert response.getheader("Content-Length") is not None
        assert response.read() == b""

        assert ask(connection, "/names/second") == (200, {"name": "second"})


def test_a_204_leaves_the_connection_open_and_in_step(gateway: Gateway) -> None:
    """It has neither a body nor a length of one (RFC 9110, section 8.6)."""
    with serving(gateway) as (server, _), connect(server) as connection:
        for _ in range(2):
            connection.request("PUT", "/nothing", b"{}", {"Content-Type": "application/json"})
            kept = connection.sock
            response = connection.getresponse()
            assert (response.status, response.read()) == (204, b"")
            assert response.getheader("Content-Length") is None
            assert response.getheader("Connection") is None
        assert ask(connection, "/names/next") == (200, {"name": "next"})

        assert kept is not None
        assert connection.sock is kept


@pytest.mark.parametrize(
    "head",
    ["PUT /nothing HTTP/1.1\r\nHost: h\r\nConnection: close", "PUT /nothing HTTP/1.0"],
    ids=["one that was asked to close", "HTTP/1.0"],
)
def test_a_204_ends_a_connection_that_is_not_to_be_kept(gateway: Gateway, head: str) -> None:
    with (
        serving(gateway) as (server, _),
        closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as client,
    ):
        client.sendall(f"{head}\r\nContent-Type: application/json\r\n\r\n".encode())
        with client.makefile("rb") as stream:
            answer = stream.read()

    assert b" 204 No Content\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


def test_a_target_that_was_not_percent_encoded_is_a_bad_request(gateway: Gateway) -> None:
    """A target is ASCII (RFC 9112, section 3.2; RFC 3986, section 2)."""
    with (
        serving(gateway) as (server, _),
        closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as client,
    ):
        client.sendall("GET /echo?id=ü HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
        with client.makefile("rb") as stream:
            answer = stream.read()

    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    head, body = answer.split(b"\r\n\r\n")
    assert b"Content-Type: application/json" in head
    assert json.loads(body)["error"]["code"] == "bad_request"


def test_a_body_that_is_too_large_is_refused(gateway: Gateway) -> None:
    with serving(gateway) as (server, _), connect(server) as connection:
        connection.putrequest("POST", "/echo")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(MAX_BODY_BYTES + 1))
        connection.endheaders()

        answer = connection.getresponse()
        assert answer.status == 413
        assert answer.getheader("Content-Type") == "application/json"
        message = f"exceeds max_body of {MAX_BODY_BYTES}"
        assert json.load(answer) == {"error": {"code": "too_large", "message": message}}


def test_a_stop_ends_serving_and_frees_the_port(gateway: Gateway) -> None:
    with serving(gateway) as (server, thread):
        with connect(server) as connection:
            assert ask(connection, "/names/a")[0] == 200
            server.stop()
            thread.join(PATIENCE)

        assert not thread.is_alive()
        assert refuses(server.port)


def test_a_second_stop_changes_nothing(gateway: Gateway) -> None:
    with serving(gateway) as (server, thread):
        server.stop()
        thread.join()
        server.stop()
        assert refuses(server.port)


def test_a_stop_before_serving_ends_it_at_once(gateway: Gateway) -> None:
    server = WebServer(gateway, "127.0.0.1", 0)
    server.stop()
    thread = threading.Thread(target=server.serve)
    thread.start()
    thread.join(PATIENCE)

    assert not thread.is_alive()
    assert refuses(server.port)


def test_a_stop_finishes_the_request_under_way(small: Small, gateway: Gateway) -> None:
    answers: list[tuple[int, Any]] = []

    def visit(server: WebServer) -> None:
        with connect(server) as connection:
            connection.request("POST", "/slow")
            response = connection.getresponse()
            answers.append((response.status, json.loads(response.read())))

    with serving(gateway) as (server, thread):
        visitor = threading.Thread(target=visit, args=(server,))
        visitor.start()
        assert small.entered.wait(PATIENCE)
        server.stop()
        while not refuses(server.port):  # until it accepts no more
            assert thread.is_alive()
        assert answers == []

        small.go_on.set()
        visitor.join(PATIENCE)
        thread.join(PATIENCE)

        assert answers == [(200, {"slow": "but done"})]
        assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_a_stop_sends_what_a_slow_visitor_has_not_read_yet(small: Small, gateway: Gateway) -> None:
    """Waitress leaves the temporary file of a large answer to the garbage collector."""
    with serving(gateway) as (server, thread), connect(server) as connection:
        connection.request("GET", "/large", headers={"Connection": "close"})
        assert small.entered.wait(PATIENCE)
        server.stop()
        while not refuses(server.port):
            assert thread.is_alive()

        assert len(connection.getresponse().read()) == LARGE
        thread.join(PATIENCE)
        assert not thread.is_alive()
    gc.collect()
