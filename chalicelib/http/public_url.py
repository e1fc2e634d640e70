"""The URL under which visitors reach this server, for pages that name it to other sites.

A URL from a request's headers may only be in a response that no cache stores, because the client
writes them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chalicelib.http.errors import BadRequestError

if TYPE_CHECKING:
    from chalicelib.http.messages import Request
    from chalicelib.settings import Settings

HOST = re.compile(r"[A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
SCHEMES = {"http", "https"}


def root(request: Request, settings: Settings) -> str:
    """Return the URL of this server, with a slash at its end.

    It is the operator's `PUBLIC_URL`, or else that of the request: `Host`, and the scheme that a
    proxy or API Gateway names in `X-Forwarded-Proto`. Raises `BadRequestError` for another host.
    """
    if settings.public_url:
        return settings.public_url
    host = request.headers.get("host", "localhost")
    if HOST.fullmatch(host) is None:
        raise BadRequestError(
            "the header Host must be a name or an address, with or without a port"
        )
    scheme = request.headers.get("x-forwarded-proto", "")
    return f"{scheme if scheme in SCHEMES else 'http'}://{host}/"
