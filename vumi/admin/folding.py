"""The fold of all badges, the same on both engines.

It folds badges whose folds were lost because a consumer was stopped for longer than the stream
keeps records. It must run within RETENTION_SECONDS, before TTL removes their views.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from chalicelib.concurrency import MapParallel
from chalicelib.storage.errors import Unavailable
from chalicelib.storage.retry import Retry
from chalicelib.views.folding import Folder
from vumi.admin.importing import PATIENCE
from vumi.errors import ReportedError

BATCH_BADGES = 100


class NotFoldedError(ReportedError):
    """Some badges are not folded. The message says how to continue."""


@dataclass(frozen=True, slots=True)
class FoldedBadge:
    """A badge and the number of views its fold counted; `failure` is empty if it was folded."""

    badge_id: str
    views: int = 0
    failure: str = ""


@dataclass(frozen=True, slots=True)
class FoldAll:
    """The job that folds badges; `map_parallel` folds those of one batch."""

    folder: Folder
    map_parallel: MapParallel
    patience: Retry = PATIENCE

    def run(self, badge_ids: Iterable[str]) -> Iterator[FoldedBadge]:
        """Fold badges, whose ids may repeat. A badge that fails delays no other.

        Raises `Unavailable` if the storage does not answer for a minute. Running it again folds the
        other badges.
        """
        left = iter(badge_ids)
        while batch := list(islice(left, BATCH_BADGES)):
            yield from self.patience.call(partial(self._fold_batch, batch))

    def _fold_batch(self, badge_ids: Sequence[str]) -> list[FoldedBadge]:
        return list(self.map_parallel(self._fold, badge_ids))

    def _fold(self, badge_id: str) -> FoldedBadge:
        try:
            return FoldedBadge(badge_id, self.folder.fold_all(badge_id))
        except Unavailable:
            raise
        except Exception as failure:  # noqa: BLE001  a failure of one badge must not delay others
            return FoldedBadge(badge_id, failure=repr(failure))
