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

A view counts in the day of its own time. A step of a fold passes the views of one day, the oldest
first. If the summary is in a later day already, the same transaction adds them to their finished
day, which was read after the summary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from chalicelib.counting import keys
from chalicelib.counting.summary import Hour, Summary, hour_of, read, read_day
from chalicelib.counting.view import Counting, marker_item
from chalicelib.lazy import lazy
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Value, text
from chalicelib.storage.writes import ConditionFailedError, Put, Write
from chalicelib.ulids import earliest, latest, milliseconds
from chalicelib.units import Milliseconds, Seconds, WholeSeconds, to_milliseconds

if TYPE_CHECKING:
    from chalicelib.counting import milestones
    from chalicelib.counting.milestones import Reached
else:
    milestones = lazy("chalicelib.counting.milestones")

TRIES = 10
"""A try fails if another write changed the summary."""
MAX_VIEWS = 8_000
"""Views that one step of a fold reads, or more if they have the same millisecond."""
UNLIMITED = 1_000_000


@dataclass(frozen=True, slots=True)
class BadgeFold:
    """The fold of one badge."""

    counting: Counting
    badge_id: str

    def fold(self, mark: WholeSeconds) -> int:
        """Fold the views up to a mark that are older than the grace; return their number.

        Raises `StorageError`; steps before it stay folded.
        """
        folded = failures = 0
        while failures < TRIES:
            try:
                counted, is_last = self._take_step(mark)
            except ConditionFailedError:
                failures += 1
                continue
            folded += counted
            if is_last:
                return folded
        raise UnavailableError(f"{self.badge_id} was changed by {TRIES} other writes; try again")

    def fold_all(self) -> int:
        """Fold all views that are older than the grace; return their number."""
        return self.fold(self.counting.foldable())

    def postpone(self, mark: WholeSeconds) -> None:
        """Put the marker of a window again, so that TTL removes it later. Raises `StorageError`."""
        ttl = self.counting.windows.marker_ttl(max(mark, int(self.counting.clock())))
        self.counting.table.write(Put(marker_item(self.badge_id, mark, ttl)))

    def _take_step(self, mark: WholeSeconds) -> tuple[int, bool]:
        """Fold the views of one day at most, the oldest.

        Return their number, and whether it was the last step.
        """
        table, webhooks = self.counting.table, self.counting.webhooks
        now = self.counting.clock()
        upto = to_milliseconds(min(mark, self.counting.windows.foldable(now)))
        own = read(table, self.badge_id)
        if upto <= own.watermark:
            return 0, True
        target = read(table, own.alias) if own.alias else own
        end, views = self._read_passed(own.watermark + 1, upto)
        if not views:
            return 0, True
        counted = Counter(hour_of(at) for at in views if at > target.reset)
        if counted and (finished := target.finished_day(counted)):
            table.write(finished)
        reached = milestones.reach(table, target, counted.total(), now, webhooks)
        table.write(*self._make_writes(own, target, counted, end, now, reached))
        milestones.enqueue(reached, webhooks)
        return counted.total(), end == upto

    def _read_passed(
        self, first: Milliseconds, upto: Milliseconds
    ) -> tuple[Milliseconds, list[Milliseconds]]:
        """Return where the watermark moves to, up to a time, and the times of the views it passes.

        They are about `MAX_VIEWS`, all of one day.
        """
        views = self._read(first, upto, MAX_VIEWS)
        if len(views) == MAX_VIEWS:
            upto = views[-1]
            views = [at for at in views if at < upto] + self._read(upto, upto)
        if not views:
            return upto, []
        following = datetime.fromisoformat(hour_of(views[0]).day) + timedelta(days=1)
        end = to_milliseconds(following.replace(tzinfo=UTC).timestamp()) - 1
        return min(upto, end), [at for at in views if at <= end]

    def _make_writes(  # noqa: PLR0913, PLR0917  the parts of a fold
        self,
        own: Summary,
        target: Summary,
        counted: Counter[Hour],
        upto: Milliseconds,
        now: Seconds,
        reached: Reached,
    ) -> list[Write]:
        """Return the writes that count views and move the watermark: two summaries for an alias."""
        moved: dict[str, Value] = {"watermark": upto}
        if not counted:
            return [own.update(now, moved)]
        name = [own.update(now, moved)] if own.alias else []
        values = {**reached.values, **({} if own.alias else moved)}
        return [*name, *self._add_views(target, counted, now, **values), *reached.writes]

    def _add_views(
        self, target: Summary, counted: Counter[Hour], now: Seconds, **values: Value
    ) -> Sequence[Write]:
        day = next(iter(counted)).day
        if day >= target.today.day:
            return [target.add_views(now, counted, **values)]
        finished = read_day(self.counting.table, target, day)
        return target.add_views_to(finished, now, counted, **values)

    def _read(
        self, first: Milliseconds, last: Milliseconds, limit: int = UNLIMITED
    ) -> list[Milliseconds]:
        items = self.counting.table.query(
            keys.partition(self.badge_id),
            first=keys.VIEW + earliest(first),
            last=keys.VIEW + latest(last),
            attributes=("SK",),
            limit=limit,
        )
        return [milliseconds(text(item, "SK").removeprefix(keys.VIEW)) for item in items]
