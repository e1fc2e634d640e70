"""The texts of a chart, which say what it shows in words and numbers."""

from __future__ import annotations

from datetime import datetime

from chalicelib.badges.options import short
from chalicelib.history.buckets import Interval
from chalicelib.history.history import Bucket, History

CURRENT = {
    Interval.HOUR: "this hour",
    Interval.DAY: "today",
    Interval.WEEK: "this week",
    Interval.MONTH: "this month",
}
PREPOSITIONS = {
    Interval.HOUR: "at",
    Interval.DAY: "on",
    Interval.WEEK: "in the week of",
    Interval.MONTH: "in",
}
WHOLE_MEAN = 10
"""The mean from which on it is shown as a whole number."""


def write_headline(history: History, *, is_short: bool = False) -> str:
    """Write the number of views and the length of the history."""
    total = short(history.total) if is_short else f"{history.total:,}"
    return f"{total} {'view' if history.total == 1 else 'views'} {_write_span(history)}"


def write_current(history: History) -> str:
    """Write the views of the current bucket."""
    return f"{history.buckets[-1].views:,} {CURRENT[history.by]}"


def describe(history: History, *, is_log: bool) -> str:
    """Describe the bars in words."""
    by, last, peak = history.by, history.buckets[-1], find_peak(history)
    first = by.label(history.buckets[0].start)
    unit = "an hour" if by is Interval.HOUR else f"a {by}"
    text = f"Views {unit} from {first} to {by.label(last.start)}, UTC."
    text += f" At most {peak.views:,}, {_write_when(by, peak.start)}."
    text += f" On average {compute_mean(history):,.1f}."
    if history.is_current:
        text += f" {CURRENT[by].capitalize()} {last.views:,} so far."
    return text + (" The scale is logarithmic." if is_log else "")


def describe_visitors(history: History) -> str:
    """Describe the line of GitHub's unique visitors in words."""
    known = [one for one in history.visitors if one is not None]
    if not known:
        return " GitHub's unique visitors a day are not known."
    days = f"{len(known)} of {len(history.buckets)}"
    return f" GitHub's unique visitors a day: at most {max(known):,}. Known days: {days}."


def write_visitors(bucket: Bucket, visitors: int) -> str:
    """Write a day and its unique visitors."""
    return f"{Interval.DAY.label(bucket.start)}: {visitors:,} unique visitors"


def write_bucket(by: Interval, bucket: Bucket) -> str:
    """Write a bucket and its views."""
    return f"{by.label(bucket.start)}: {bucket.views:,}"


def find_peak(history: History) -> Bucket:
    """Return the first bucket with the most views."""
    return max(history.buckets, key=lambda bucket: bucket.views)


def compute_mean(history: History) -> float:
    """Return the views divided by the number of buckets."""
    return history.total / len(history.buckets)


def write_mean(history: History) -> str:
    """Write the mean with at most one decimal place."""
    mean = compute_mean(history)
    if mean >= WHOLE_MEAN:
        return short(round(mean))
    written = f"{mean:.1f}"
    return "<0.1" if written == "0.0" else written.removesuffix(".0")


def _write_span(history: History) -> str:
    by, amount = history.by, len(history.buckets)
    if amount == 1:
        return CURRENT[by] if history.is_current else _write_when(by, history.buckets[0].start)
    if by is Interval.HOUR and history.days > 1:
        return f"in {history.days} days"
    return f"in {amount} {by}s"


def _write_when(by: Interval, start: datetime) -> str:
    return f"{PREPOSITIONS[by]} {by.label(start)}"
