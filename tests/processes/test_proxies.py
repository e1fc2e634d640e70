"""Real nginx and Caddy before the program: requests pass, and none gets past their rules.

Each proxy has a rule that answers 418 to all requests for events. The program would answer 401 to
them, because they have no token.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import quote

import pytest

from simulation import proxies
from simulation.environment import free_port
from tests.processes.programs import PATIENCE_SECONDS, Server, require

NGINX = """
    access_log off;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    upstream vumi {{ server {upstream}; keepalive 8; }}
    server {{
        listen 127.0.0.1:{port};
        location /api/v1/events {{ return 418; }}
        location /prefix/api/v1/events {{ return 418; }}
        location /prefix/ {{ proxy_pass http://vumi/; }}
        location /defaults/ {{
            proxy_http_version 1.0;
            proxy_set_header Host $proxy_host;
            proxy_set_header Connection close;
            proxy_pass http://{upstream}/;
        }}
        location / {{ proxy_pass http://vumi; }}
    }}
"""
CADDY = """
{{
    admin off
    auto_https off
}}
http://:{port} {{
    bind 127.0.0.1
    @events path /api/v1/events* /prefix/api/v1/events*
    route {{
        respond @events 418
        handle_path /prefix/* {{
            reverse_proxy {upstream}
        }}
        handle_path /defaults/* {{
            reverse_proxy {upstream}
        }}
        reverse_proxy {upstream}
    }}
}}
"""


CONFIGURATIONS = {"nginx": NGINX, "caddy": CADDY}


@pytest.fixture(scope="module", params=CONFIGURATIONS)
def port(
    request: pytest.FixtureRequest, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[int]:
    """Return the port of a proxy."""
    name = request.param
    require(name)
    folder = tmp_path_factory.mktemp(name)
    port = free_port()
    upstream = f"{server.host}:{server.port}"
    configuration = CONFIGURATIONS[name].format(port=port, upstream=upstream)
    command = proxies.PROXIES[name](folder, configuration)
    with proxies.started(command, folder, port):
        yield port


LAST = "GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
"""A request after which the connection is closed, unless it was closed before."""
EVENTS = "/api/v1/events"


def statuses(port: int, raw: str) -> list[int]:
    """Return the statuses of all answers on one connection."""
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as client,
        client.makefile("rb") as stream,
    ):
        client.sendall((raw + LAST).encode("latin-1"))
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", stream.read())]


def get(target: str, *headers: str) -> str:
    return "".join(f"{line}\r\n" for line in (f"GET {target} HTTP/1.1", "Host: h", *headers, ""))


@pytest.mark.parametrize("prefix", ["", "/prefix"])
def test_requests_pass_on_kept_connections_with_and_without_a_prefix(
    server: Server, port: int, prefix: str
) -> None:
    badge_id = f"proxy {port}/{prefix}"
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)) as connection:
        for _ in range(3):
            connection.request("GET", f"{prefix}/api/v1/views?id={quote(badge_id, safe='')}")
            assert connection.getresponse().read()
        kept = connection.sock
        connection.request("POST", f"{prefix}/api/v1/badges", f'{{"id": "{badge_id} 2"}}')
        answer = connection.getresponse()
        assert (answer.status, answer.read()[:6]) == (201, b'{"id":')
        assert kept is not None
        assert connection.sock is kept
    assert server.peek(badge_id) == 3


def test_the_rule_is_what_keeps_requests_out(server: Server, port: int) -> None:
    assert statuses(server.port, get(EVENTS)) == [401, 200]
    assert statuses(port, get(EVENTS)) == [418, 200]


@pytest.mark.parametrize(
    "target",
    [
        f"/{EVENTS}",
        f"//x{EVENTS}",
        f"///x{EVENTS}",
        f"/x/..{EVENTS}",
        f"/./{EVENTS[1:]}",
        "/api/v1/%65vents",
        "/api/v1//events",
        "/api%2Fv1%2Fevents",
        "/api\\v1\\events",
        f"{EVENTS}#x",
        f"/#{EVENTS}",
        f"/?#{EVENTS}",
        f"{EVENTS};x",
        f"{EVENTS}%00",
        f"{EVENTS}\xa0",
        f"http://h{EVENTS}",
        f"http://other{EVENTS}",
        f"http:{EVENTS}",
        f"/prefix{EVENTS}",
        f"/prefix/..{EVENTS}",
        f"/prefix/%2e%2e{EVENTS}",
        f"/prefix/..%2f{EVENTS}",
        f"/prefix/.{EVENTS}",
        f"/prefix//x{EVENTS}",
        f"/prefix/%2Fx{EVENTS}",
        "*",
        EVENTS[1:],
    ],
)
def test_no_target_reaches_a_route_that_the_rule_did_not_see(port: int, target: str) -> None:
    answers = statuses(port, get(target))
    assert answers
    assert 401 not in answers


SMUGGLED = get(EVENTS)
CHUNKED = "Transfer-Encoding: chunked"
AFTER = f"0\r\n\r\n{SMUGGLED}"
"""The end of a body in chunks, and a request after it."""


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([f"Content-Length: {len(AFTER)}", CHUNKED], AFTER),
        ([CHUNKED, f"Content-Length: {len(AFTER)}"], AFTER),
        ([CHUNKED, "Content-Length: 4"], f"{len(SMUGGLED):x}\r\n{SMUGGLED}\r\n0\r\n\r\n"),
        ([f"Content-Length: {len(AFTER)}", "Transfer-Encoding: xchunked"], AFTER),
        ([f"Content-Length: {len(AFTER)}", "Transfer-Encoding:\x0bchunked"], AFTER),
        ([f"Content-Length: {len(AFTER)}", "Transfer-Encoding : chunked"], AFTER),
        ([f"Content-Length: {len(SMUGGLED)}", "Content-Length: 0"], SMUGGLED),
        ([f"Content-Length: +{len(SMUGGLED)}"], SMUGGLED),
        (["Content-Length: -1"], SMUGGLED),
        ([CHUNKED], f"-1\r\n{SMUGGLED}"),
        ([CHUNKED], f"\r\n{SMUGGLED}"),
        ([CHUNKED], f"1;a\n\r\n{AFTER}"),
        (["A: a\n\r\nB: b"], ""),
        (["Host: other"], ""),
    ],
)
def test_no_framing_hides_a_request_from_the_rule(port: int, headers: list[str], body: str) -> None:
    answers = statuses(port, get("/healthz", *headers).replace("GET", "POST", 1) + body)
    assert answers
    assert 401 not in answers


@pytest.mark.parametrize("path", ["/metrics", "/prefix/metrics", "/defaults/metrics"])
def test_the_metrics_need_a_token_through_a_proxy_on_the_same_machine(
    server: Server, port: int, path: str
) -> None:
    """`/defaults/` has only what a proxy sends by itself, which is no header of nginx's own."""
    raw = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n{LAST}"
    assert statuses(port, raw) == [401, 200]
    assert server.request("/metrics")[0] == 200
