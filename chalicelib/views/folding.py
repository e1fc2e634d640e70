"""The fold, which moves a badge's watermark to a mark and counts the views that it passes.

One update adds the views to the count and to the history and moves the watermark, on the condition
that the summary has not changed since it was read. The views stay in the table: they are
no longer live, because they are not later than the watermark.

Two folds of one badge, drawn with the version of its summary:

    version   4 ─────────────────────▶ 5
    first     reads 4, counts 2 views, writes on 4: done
    second    reads 4, counts 2 views, writes on 4: fails, reads 5, whose watermark is
              at the mark: nothing is left to do

A fold depends on the watermark and on the table, not on the stream. So removals of markers may
arrive twice, in any order, in parallel, or never: the next fold counts the views of a lost one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from chalicelib.storage.errors import Unavailable
from chalicelib.storage.items import text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailed, Put, Write
from chalicelib.views import keys
from chalicelib.views.summary import Hour, Summary, hour_of, read
from chalicelib.views.view import earliest, latest, milliseconds
from chalicelib.views.windows import Windows, marker_item

TRIES = 10
"""A try fails if another write changed the summary."""
MAX_VIEWS = 8_000
"""Views that one step of a fold reads, or more if they have the same millisecond."""
UNLIMITED = 1_000_000


@dataclass(frozen=True, slots=True)
class Folder:
    """The fold of badges in a table; `clock` is seconds since 1970."""

    table: Table
    windows: Windows
    clock: Callable[[], float]

    def fold(self, badge_id: str, mark: int) -> int:
        """Fold the views up to a mark that are older than the grace; return their number.

        `mark` is milliseconds since 1970. Raises `StorageError`; steps before it stay folded.
        """
        folded = failures = 0
        while failures < TRIES:
            try:
                step = self._step(badge_id, mark)
            except ConditionFailed:
                failures += 1
                continue
            folded += step.counted
            if step.is_last:
                return folded
        raise Unavailable(f"{badge_id} was changed by {TRIES} other writes; try again")

    def fold_all(self, badge_id: str) -> int:
        """Fold all views that are older than the grace; return their number."""
        return self.fold(badge_id, self.windows.foldable(self.clock()))

    def is_over(self, mark: int) -> bool:
        """Return whether the grace after a mark (in seconds) is over."""
        return mark * 1000 <= self.windows.foldable(self.clock())

    def postpone(self, badge_id: str, mark: int) -> None:
        """Put the marker of a window (its mark in seconds) again, so that TTL removes it later.

        Raises `StorageError`.
        """
        ttl = self.windows.marker_ttl(max(mark, int(self.clock())))
        self.table.write(Put(marker_item(badge_id, mark, ttl)))

    def _step(self, badge_id: str, mark: int) -> Step:
        """Fold the views of at most one day."""
        now = self.clock()
        upto = min(mark, self.windows.foldable(now))
        own = read(self.table, badge_id)
        if upto <= own.watermark:
            return Step(0, is_last=True)
        target = read(self.table, own.alias) if own.alias else own
        passed = self._passed(own, target, upto)
        if not passed.views:
            return Step(0, is_last=True)
        counted = Counter(hour_of(at) for at in passed.views if at > target.reset)
        if counted and (finished := target.finished_day(counted)):
            self.table.write(finished)
        self.table.write(*_writes(own, target, counted, passed.upto, now))
        return Step(counted.total(), is_last=passed.upto == upto)

    def _passed(self, own: Summary, target: Summary, upto: int) -> Passed:
        """Read the views that the watermark passes: about `MAX_VIEWS`, and one new day, at most."""
        views = self._read(own.badge_id, own.watermark + 1, upto, MAX_VIEWS)
        if len(views) == MAX_VIEWS:
            upto = views[-1]
            views = [at for at in views if at < upto] + self._read(own.badge_id, upto, upto)
        if not views:
            return Passed(upto, ())
        end = _end_of(max(hour_of(views[0]).day, target.today.day))
        return Passed(min(upto, end), tuple(at for at in views if at <= end))

    def _read(self, badge_id: str, first: int, last: int, limit: int = UNLIMITED) -> list[int]:
        """Read the times of the views between two times, both included."""
        items = self.table.query(
            keys.partition(badge_id),
            first=keys.VIEW + earliest(first),
            last=keys.VIEW + latest(last),
            attributes=("SK",),
            limit=limit,
        )
        return [milliseconds(text(item, "SK").removeprefix(keys.VIEW)) for item in items]


@dataclass(frozen=True, slots=True)
class Step:
    """The number of views that a step of a fold counted, and whether it was the last step."""

    counted: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class Passed:
    """The times of the views that the watermark passes when it moves to `upto` (milliseconds)."""

    upto: int
    views: tuple[int, ...]


def _writes(
    own: Summary, target: Summary, counted: Counter[Hour], upto: int, now: float
) -> list[Write]:
    """Return the writes that count views and move the watermark: two items for an alias."""
    if not own.alias:
        return [own.counted(now, counted, watermark=upto)]
    moved = own.update(now, {"watermark": upto})
    return [moved, target.counted(now, counted)] if counted else [moved]


def _end_of(day: str) -> int:
    """Return the last millisecond of a day (UTC)."""
    following = datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=1)
    return int(following.timestamp() * 1000) - 1
