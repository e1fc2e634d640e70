"""The routes of the service: the builder at `/`, its logos, the script of web pages, the health.

On the builder, users choose a badge and copy its line.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from chalicelib.badges.options import STYLES, Badge
from chalicelib.http import responses
from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import ANY_OPTIONS, Route, public_read
from chalicelib.lazy import lazy
from chalicelib.settings import Feature
from chalicelib.storage.items import Key

if TYPE_CHECKING:
    import hashlib

    from chalicelib.badges import logos, svg
    from chalicelib.history import chart, history
    from chalicelib.http import page
    from chalicelib.resources import Resources
else:
    logos, svg = lazy("chalicelib.badges.logos"), lazy("chalicelib.badges.svg")
    chart = lazy("chalicelib.history.chart")
    history, page = lazy("chalicelib.history.history"), lazy("chalicelib.http.page")
    hashlib = lazy("hashlib")

DAYS = (3, 5, 4, 6, 9, 7, 6, 8, 12, 10, 9, 8, 11, 15, 13, 10, 12, 14, 19, 16, 13, 15, 17, 22, 19)
BADGES = {
    **{style: Badge("views", "1.2k", style=style) for style in STYLES},
    "period": Badge("views", "12 today \u00b7 1234"),
    "spark": Badge("views", "1234", spark=DAYS),
    "logo": Badge("views", "1234", logo="github"),
}
"""The pictures of the page, by the name that an `img` has after `example:`. Another is a chart."""
EXAMPLE = re.compile(r'"example:([a-z-]+)"')
OF_EVENTS = re.compile(r"<!-- events -->.*?<!-- /events -->", re.DOTALL)
LOGOS_SECONDS = 86_400
SCRIPT = Path(__file__).with_name("count.js")
SCRIPT_SECONDS = 3_600
COMMENT = re.compile(r"(^| )// .*$", re.MULTILINE)
PROBE = Key("HEALTH", "HEALTH")
"""An item that never exists: reading it shows that the table answers."""


def get_page(_: Request, resources: Resources) -> Response:
    """Answer the page."""
    return page.respond(text(has_events=Feature.EVENTS in resources.settings.features))


def get_logos(_: Request, __: Resources) -> Response:
    """Return the path of each logo by its name, which is drawn in a box of 24 x 24."""
    return Response(
        200, {**responses.TYPES, "Cache-Control": f"public, max-age={LOGOS_SECONDS}"}, _logos()
    )


@cache
def text(*, has_events: bool) -> str:
    """Return the page with its pictures, and with countdowns only if there are events."""
    whole = EXAMPLE.sub(lambda found: f'"{_draw(found[1])}"', page.text())
    return whole if has_events else OF_EVENTS.sub("", whole)


def _draw(name: str) -> str:
    drawn = svg.draw(BADGES[name]) if name in BADGES else _draw_chart()
    return f"data:image/svg+xml,{quote(drawn, safe=' /:=;,')}"


def _draw_chart() -> str:
    first = datetime(2026, 1, 1, tzinfo=UTC)
    days = tuple(history.Bucket(first + timedelta(at), views) for at, views in enumerate(DAYS))
    month = history.History(history.Interval.DAY, len(days), first.date(), days, is_current=False)
    return chart.draw(month, chart.Look(320, 110))


@cache
def _logos() -> bytes:
    return json.dumps(logos.paths(), separators=(",", ":")).encode()


def get_count_script(request: Request, _: Resources) -> Response:
    """Return the script of web pages, or 304 to a browser that has it."""
    script, tag = _load_script()
    headers = {"Cache-Control": f"public, max-age={SCRIPT_SECONDS}", "ETag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(304, headers)
    kind = {"Content-Type": "text/javascript;charset=utf-8", **responses.NOSNIFF}
    return Response(200, {**kind, **headers}, script)


@cache
def _load_script() -> tuple[bytes, str]:
    """Read the script without comments and indentation, and make its tag.

    The tag is a weak one, because some servers compress the script.
    """
    text = COMMENT.sub("", SCRIPT.read_text(encoding="utf-8"))
    script = "\n".join(filter(None, map(str.strip, text.splitlines()))).encode()
    return script, f'W/"{hashlib.sha256(script).hexdigest()[:16]}"'


def get_health(_: Request, resources: Resources) -> Response:
    """Return 200 while the table answers, 503 while it does not."""
    resources.table.get(PROBE)
    return responses.json({"status": "ok"})


ROUTES = (
    Route("GET", "/healthz", get_health, from_any_site=True, options=ANY_OPTIONS),
    Route("GET", "/", get_page, with_head=True, options=ANY_OPTIONS),
    public_read("/logos.json", get_logos, options=ANY_OPTIONS),
    public_read("/count.js", get_count_script, options=ANY_OPTIONS),
)
