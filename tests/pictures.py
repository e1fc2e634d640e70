"""The pictures of the README, drawn by the current code.

|`python -m tests.pictures` writes them; `test_pictures.py` checks that they are current.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from chalicelib.badges.badge import Badge
from chalicelib.badges.options import Options
from chalicelib.badges.svg import draw
from chalicelib.views import chart
from chalicelib.views.history import Bucket, By, History

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
LAST = datetime(2026, 11, 21, tzinfo=UTC)
DAYS = 30


def pictures() -> dict[str, str]:
    """Return the documents by the names of their files."""
    count = Options(format="comma").message(1_234_567)
    short = Options(format="short").message(1_234_567)
    green = Badge("seen", short, "brightgreen", style="for-the-badge")
    return {
        "flat.svg": draw(Badge("views", count, logo="github")),
        "for-the-badge.svg": draw(green),
        "history.svg": chart.draw(_history(), chart.Look()),
    }


def _history() -> History:
    """Return a month of views with weekends, and one day on which somebody linked to the badge."""
    starts = [LAST - timedelta(days=ago) for ago in reversed(range(DAYS))]
    buckets = tuple(Bucket(start, _views(place, start)) for place, start in enumerate(starts))
    return History(By.DAY, DAYS, starts[0].date(), buckets)


def _views(place: int, start: datetime) -> int:
    linked = {17: 5, 18: 3, 19: 2}.get(place, 1)
    return (17 if start.isoweekday() in {6, 7} else 38 + place * 11 % 17) * linked


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, drawn in pictures().items():
        (FOLDER / name).write_text(drawn + "\n", encoding="utf-8")
