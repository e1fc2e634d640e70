"""The script of web pages, `/count.js`, which counts a page and its site and shows their counts."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chalicelib.http import responses
from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import ANY_OPTIONS, public_read
from chalicelib.lazy import lazy

if TYPE_CHECKING:
    import hashlib

    from chalicelib.resources import Resources
else:
    hashlib = lazy("hashlib")

FILE = Path(__file__).with_name("count.js")
CACHED_SECONDS = 3_600
COMMENT = re.compile(r"(^| )// .*$", re.MULTILINE)


def get_count_script(request: Request, _: Resources) -> Response:
    """Return the script of web pages, or 304 to a browser that has it."""
    script, tag = _load()
    headers = {"Cache-Control": f"public, max-age={CACHED_SECONDS}", "ETag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(304, headers)
    kind = {"Content-Type": "text/javascript;charset=utf-8", **responses.NOSNIFF}
    return Response(200, {**kind, **headers}, script)


@cache
def _load() -> tuple[bytes, str]:
    """Read the script without comments and indentation, and make its tag.

    The tag is a weak one, because some servers compress the script.
    """
    text = COMMENT.sub("", FILE.read_text(encoding="utf-8"))
    script = "\n".join(filter(None, map(str.strip, text.splitlines()))).encode()
    return script, f'W/"{hashlib.sha256(script).hexdigest()[:16]}"'


ROUTES = (public_read("/count.js", get_count_script, options=ANY_OPTIONS),)
