"""The pictures of the README and the docs, drawn by the current code.

`python -m tests.pictures` writes them.
"""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from chalicelib.badges import own_logo
from chalicelib.badges.options import Badge, CountFormat
from chalicelib.badges.svg import draw
from chalicelib.history import chart
from chalicelib.history.history import Bucket, History, Interval

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
LAST = datetime(2026, 11, 21, tzinfo=UTC)
DAYS = 30
NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'
GAP, ROW = 8, 36
OWN_LOGO = (
    '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2">'
    '<path d="M1 12s4-8 11-8 11 8 11 8-4 8-11 8-11-8-11-8z"/><circle cx="12" cy="12" r="3"/></svg>'
)


def pictures() -> dict[str, str]:
    """Return the documents by the names of their files."""
    count = CountFormat({"format": ["comma"]}).write(1_234_567)
    short = CountFormat({"format": ["short"]}).write(1_234_567)
    month = tuple(bucket.views for bucket in _history().buckets)
    green = Badge("seen", short, "brightgreen", style="for-the-badge")
    return {
        "flat.svg": draw(Badge("views", count, logo="github")),
        "for-the-badge.svg": draw(green),
        "spark.svg": draw(Badge("views", "17 today · 3,456", spark=month)),
        "logos.svg": _arrange(_logos()),
        "sparklines.svg": _arrange(_sparklines()),
        "history-light.svg": chart.draw(_history(), chart.Look(theme="light")),
        "history-dark.svg": chart.draw(_history(), chart.Look(theme="dark")),
        "visitors-light.svg": chart.draw(_visited(), chart.Look(theme="light", has_visitors=True)),
        "visitors-dark.svg": chart.draw(_visited(), chart.Look(theme="dark", has_visitors=True)),
    }


def _visited() -> History:
    """Return the history with GitHub's unique visitors, but for three days."""
    history = _history()
    days = {
        f"{bucket.start:%Y-%m-%d}": {"visitors": bucket.views * (3 + place % 4) // 8}
        for place, bucket in enumerate(history.buckets)
        if place not in range(11, 14)
    }
    return replace(history, github=days)


def _logos() -> list[list[Badge]]:
    """Return rows of badges with logos: in each style, and with another colour or an own logo."""
    named = ("python", "linux", "postgresql", "docker", "javascript")
    own = own_logo.parse(own_logo.PREFIX + b64encode(OWN_LOGO.encode()).decode())
    return [
        [Badge("views", "1,234", logo=name) for name in named],
        [Badge("views", "1,234", style="social", logo=name) for name in named],
        [Badge("", "1,234", color, logo="github") for color in ("blue", "green", "yellow", "red")],
        [
            Badge("views", "1,234", style="for-the-badge", logo="git", logo_color="gold"),
            Badge("views", "1,234", style="for-the-badge", logo=own),
        ],
    ]


def _sparklines() -> list[list[Badge]]:
    """Return rows of badges with sparklines: in each style, and in other colours and lengths."""
    month = tuple(bucket.views for bucket in _history().buckets)
    quarter = tuple(
        views + 40 * (place // DAYS) for place, views in enumerate(month[:15] * (3 * DAYS // 15))
    )
    low, high = ("flat", "flat-square", "plastic", "social"), "for-the-badge"
    return [
        [Badge("views", "1,234", style=style, spark=month) for style in low],
        [Badge("views", "1,234", style=high, spark=month)],
        [
            Badge("views", "12 today · 3,456", color, spark=month)
            for color in ("brightgreen", "yellow", "white", "black")
        ],
        [
            Badge("views", "1,234", spark=month[-7:]),
            Badge("views", "1,234", spark=quarter),
            Badge("views", "0", spark=(0,) * DAYS),
        ],
    ]


def _arrange(rows: list[list[Badge]]) -> str:
    """Draw badges in rows."""
    content, width, y = "", 0.0, 0
    for row in rows:
        x = 0.0
        for document in map(draw, row):
            content += document.replace(NAMESPACE, f'x="{x:g}" y="{y}"', 1)
            x += float(re.findall(r' width="([\d.]+)"', document)[0]) + GAP
        width, y = max(width, x - GAP), y + ROW
    size = f'width="{width:g}" height="{y}"'
    return f"<svg {NAMESPACE} {size}>{content}</svg>"


def _history() -> History:
    """Return a month of views with weekends, and one day on which somebody linked to the badge."""
    starts = [LAST - timedelta(days=ago) for ago in reversed(range(DAYS))]
    buckets = tuple(Bucket(start, _views(place, start)) for place, start in enumerate(starts))
    return History(Interval.DAY, DAYS, starts[0].date(), buckets)


def _views(place: int, start: datetime) -> int:
    linked = {17: 5, 18: 3, 19: 2}.get(place, 1)
    return (17 if start.isoweekday() in {6, 7} else 38 + place * 11 % 17) * linked


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, drawn in pictures().items():
        (FOLDER / name).write_text(drawn + "\n", encoding="utf-8")
