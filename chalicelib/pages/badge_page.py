"""The public page of a badge, and its picture for link previews. Neither counts a view.

The page has the count, periods, chart and lines, complete without its script. An id is the text of
a stranger. It is escaped in the page, percent-encoded in each URL, and linked to nothing but this
server.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from chalicelib.badges.responses import HEADERS
from chalicelib.counting import badge_count, ids
from chalicelib.history.periods import Show
from chalicelib.http import responses
from chalicelib.http.errors import BadRequestError
from chalicelib.http.fields import number
from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import Route, public_read
from chalicelib.lazy import lazy
from chalicelib.resources import Resources
from chalicelib.units import Seconds

if TYPE_CHECKING:
    import html
    import pathlib
    import string

    from chalicelib.history import history
    from chalicelib.history.history import History
    from chalicelib.http import page
    from chalicelib.pages import preview
    from chalicelib.settings import Settings
else:
    html, pathlib, string = lazy("html"), lazy("pathlib"), lazy("string")
    page = lazy("chalicelib.http.page")
    history = lazy("chalicelib.history.history")
    preview = lazy("chalicelib.pages.preview")

PERIODS = (Show.TODAY, Show.WEEK, Show.MONTH, Show.YEAR)
SPANS = (7, 30, 90, 365)
"""The days of a chart that the page links to."""
SUMMARY = "{today} today, {week} this week, {month} this month, {year} this year."
FROZEN = '<p class="soft note">This badge is frozen: it takes no views.</p>'
GITHUB_LINE = (
    '<li><img class="badge" src="{1}&amp;peek=1" alt="{0}"><div class="line">'
    '<pre><code>![{0}]({2})</code></pre><button type="button" hidden><span>Copy</span>'
    '<span class="unseen"> {0}</span></button></div></li>'
)
BEGIN = (
    '<p class="soft">GitHub counts the visitors and clones of a repository, and keeps 14 days. Its'
    " owner can keep and show them here: <em>docs/github-traffic.md</em> of vu-mi has a workflow"
    " that tells them every day.</p>"
)

HOST = r"[A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?"
SCHEMES = {"http", "https"}


class PageOptions(ids.IdOption):
    """The options of a badge's page."""

    days = number(range(1, 366), "The days of the chart, up to today.", 30)


def get_badge_page(request: Request, resources: Resources) -> Response:
    """Show a badge as a page for people: its count, its periods, its chart, and lines to copy."""
    asked = ids.read(PageOptions, request.query, resources)
    badge_id, days, now = asked.badge_id, asked.days, resources.view_clock()
    # The history is read first, so that no period is higher than the count, which never falls.
    span = history.Span(max(days, _days_of_year(now)))
    found = history.read(resources.table, badge_id, span, now, with_github=True)
    count = badge_count.read(resources.table, badge_id)
    shown = BadgePage(
        badge_id,
        count.shown,
        found,
        root_url(request, resources.settings),
        days,
        is_frozen=count.summary.frozen,
    )
    headers = {**page.restrictions(template()), **responses.NOT_STORED}
    return Response(200, headers, shown.to_html().encode())


def get_badge_picture(request: Request, resources: Resources) -> Response:
    """Draw the last 30 days as a PNG of 1200 x 630 pixels, for link previews."""
    badge_id = ids.read(ids.IdOption, request.query, resources).badge_id
    span = history.Span(preview.DAYS)
    found = history.read(resources.table, badge_id, span, resources.view_clock())
    drawn = preview.draw([bucket.views for bucket in found.buckets])
    return Response(200, {"Content-Type": "image/png", **HEADERS}, drawn)


def _days_of_year(now: Seconds) -> int:
    """Return the days since the first of January or the last Monday, and one more.

    Another clock may be ahead, and a history ends with the day of its latest view.
    """
    today = datetime.fromtimestamp(now, UTC).timetuple()
    return max(today.tm_yday, today.tm_wday + 1) + 1


def template() -> str:
    """Return the template of the page."""
    return page.load(pathlib.Path(__file__).with_name("badge_page.html"))


class BadgePage(NamedTuple):
    """The page of a badge.

    `history` has at least all days since the first of January. `root` is the URL of this server,
    with a slash at its end. The chart has `days` days.
    """

    badge_id: str
    shown: int
    history: History
    root: str
    days: int
    is_frozen: bool = False

    def to_html(self) -> str:
        return string.Template(template()).substitute(
            **{name: html.escape(value) for name, value in self._texts().items()},
            days="".join(map(self._link_span, SPANS)),
            note=FROZEN if self.is_frozen else "",
            github=self._write_github(),
        )

    def _write_github(self) -> str:
        """Return the badges of GitHub's numbers with their lines, or how to begin."""
        badge = f"api/v1/views.svg?id={quote(self.badge_id, safe='')}&show="
        lines = (
            GITHUB_LINE.format(name, *map(html.escape, (badge + name, self.root + badge + name)))
            for name in (Show.VISITORS, Show.CLONES)
        )
        return f'<ul class="lines">{"".join(lines)}</ul>' if self.history.github else BEGIN

    def _texts(self) -> dict[str, str]:
        """Return the texts of the template, which are not escaped."""
        encoded_id = quote(self.badge_id, safe="")
        known = [one for one in self.history.visitors[-self.days :] if one is not None]
        visitors = "&with=visitors" if known else ""
        badge, chart, page = (
            f"{route}?id={encoded_id}"
            for route in ("api/v1/views.svg", "api/v1/views/history.svg", "s")
        )
        url = self.root + page
        periods = {name: f"{views:,}" for name, views in self._periods().items()}
        return {
            "id": self.badge_id,
            "encoded_id": encoded_id,
            "url": url,
            "title": f"{self.badge_id}: {self.shown:,} {self._views}",
            "summary": SUMMARY.format(**periods),
            "picture": f"{self.root}s.png?id={encoded_id}",
            "picture_width": str(preview.WIDTH),
            "picture_height": str(preview.HEIGHT),
            "count": f"{self.shown:,}",
            "views": self._views,
            "since": f" since {self.history.since}" if self.history.since else "",
            **periods,
            "badge": badge,
            "chart": f"{chart}&days={self.days}{visitors}",
            "described": self._describe_chart(),
            "history": f"api/v1/views/history?id={encoded_id}",
            "markdown": f"[![views]({self.root}{badge})]({url})",
            "html": f'<a href="{url}"><img src="{self.root}{badge}" alt="views"></a>',
            "chart_line": self._write_chart_line(f"{self.root}{chart}{visitors}", url),
        }

    @property
    def _views(self) -> str:
        return "view" if self.shown == 1 else "views"

    def _periods(self) -> dict[str, int]:
        days = self.history.buckets
        starts = {period.value: period.start(days[-1].start) for period in PERIODS}
        return {
            name: sum(day.views for day in days if day.start >= start)
            for name, start in starts.items()
        }

    def _describe_chart(self) -> str:
        days = self.history.buckets[-self.days :]
        most = max(days, key=lambda day: day.views)
        total = f"{sum(day.views for day in days):,} views in {self.days} days"
        return f"{total}; most on {most.start.date()}: {most.views:,}" if most.views else total

    def _write_chart_line(self, chart: str, url: str) -> str:
        """Return the line that GitHub and an HTML page show in their own theme, as the builder."""
        dark, light = (html.escape(f"{chart}&theme={theme}") for theme in ("dark", "light"))
        named = html.escape(" ".join(f"Views of {self.badge_id} by day".split()))
        return (
            f'<a href="{url}"><picture><source media="(prefers-color-scheme: dark)"'
            f' srcset="{dark}"><img src="{light}" alt="{named}"></picture></a>'
        )

    def _link_span(self, days: int) -> str:
        query = f"id={quote(self.badge_id, safe='')}&amp;days={days}"
        current = ' aria-current="true"' if days == self.days else ""
        return f'<li><a href="?{query}"{current}>{days} days</a></li>'


def root_url(request: Request, settings: Settings) -> str:
    """Return the URL of this server, with a slash at its end.

    It is the operator's `PUBLIC_URL`, or else that of the request: `Host`, and the scheme that a
    proxy or API Gateway names in `X-Forwarded-Proto`. Raises `BadRequestError` for another host.
    A client writes the headers, so no cache may store a response with this URL.
    """
    if settings.public_url:
        return settings.public_url
    host = request.headers.get("host", "localhost")
    if re.fullmatch(HOST, host) is None:
        raise BadRequestError(
            "the header Host must be a name or an address, with or without a port"
        )
    scheme = request.headers.get("x-forwarded-proto", "")
    return f"{scheme if scheme in SCHEMES else 'http'}://{host}/"


ROUTES = (
    Route("GET", "/s", get_badge_page, with_head=True, options=PageOptions),
    public_read("/s.png", get_badge_picture, options=ids.IdOption),
)
