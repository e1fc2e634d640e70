"""The access to the metrics: by an operator's token, or by a program on the same machine.

Every request from a proxy on this machine comes from loopback too, and so does one that a page of
another site sends from the operator's browser. So a request without a token must show none of their
marks, and any header that a scraper, curl or a browser does not send by itself is one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from chalicelib.http import authentication
from chalicelib.http.errors import ForbiddenError
from chalicelib.http.guards import OF_A_USER, OWN_SITE
from chalicelib.http.messages import Request
from vumi.server.clients import TrustedProxies, parse_address

if TYPE_CHECKING:
    from chalicelib.http.authentication import AuthenticationResources

DIRECT = """
accept accept-charset accept-encoding accept-language cache-control connection cookie dnt host
if-modified-since if-none-match pragma priority upgrade-insecure-requests user-agent
x-prometheus-scrape-timeout-seconds
"""
DIRECT_HEADERS = frozenset(DIRECT.split())
OF_A_BROWSER = "sec-"
"""The beginning of the names of headers that only a browser itself sets (Fetch standard)."""
KEEP_ALIVE = {"", "keep-alive"}
"""Values of `Connection`: nginx sends `close`, and otherwise may show no mark of a proxy."""


class MetricsAccess(StrEnum):
    """The requests that may read the metrics, by the setting METRICS."""

    LOCAL = "local"
    """Those with an operator's token, and those of programs on this machine."""
    TOKEN = "token"  # noqa: S105  no secret
    """Those with an operator's token."""


def check(
    request: Request,
    resources: AuthenticationResources,
    access: MetricsAccess,
    proxies: TrustedProxies,
) -> None:
    """Raise `UnauthorizedError` or `ForbiddenError` unless a request may read the metrics."""
    if access is MetricsAccess.LOCAL and is_local(request, proxies):
        return
    header = request.headers.get("authorization", "")
    if not authentication.authenticate(header, resources).is_operator:
        raise ForbiddenError(OF_A_USER)


def is_local(request: Request, proxies: TrustedProxies) -> bool:
    """Return whether a program on this machine sent a request, without a proxy or a token.

    A host name that is no loopback name may be another site's (DNS rebinding).
    """
    headers = request.headers
    return (
        _is_loopback(request.client)
        and not proxies.trusts(request.client)
        and _is_loopback_host(headers.get("host", ""))
        and all(name in DIRECT_HEADERS or name.startswith(OF_A_BROWSER) for name in headers)
        and headers.get("connection", "").lower() in KEEP_ALIVE
        and headers.get("sec-fetch-site", "none") in OWN_SITE
    )


def _is_loopback_host(host: str) -> bool:
    name, _, port = host.rpartition(":") if host[-1:] != "]" else (host, "", "")
    if not name:
        name, port = port, ""
    if port and not (port.isascii() and port.isdecimal()):
        return False
    return name.lower() == "localhost" or _is_loopback(name.removeprefix("[").removesuffix("]"))


def _is_loopback(text: str) -> bool:
    address = parse_address(text)
    return address is not None and address.is_loopback
