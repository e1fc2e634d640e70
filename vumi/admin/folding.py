"""Folding all badges, the same on both engines.

It is for badges whose folds were lost: a consumer was stopped for longer than the stream keeps
records. It must run before their views leave the table, within RETENTION_SECONDS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import click

from chalicelib.aws.retry import Retry
from chalicelib.concurrency import MapParallel
from chalicelib.storage.errors import Unavailable
from chalicelib.views.folding import Folder
from vumi.admin.importing import PATIENCE

BADGES_AT_ONCE = 100
REPORT_EVERY = 1_000
"""A line of progress comes after this many badges."""


class NotFoldedError(Exception):
    """Some badges are not folded; the message says how to go on."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A badge and how many of its views were counted; `failure` says why it could not be folded."""

    badge_id: str
    views: int = 0
    failure: str = ""


@dataclass(frozen=True, slots=True)
class FoldAll:
    """Folds badges; `map_parallel` folds those of one batch."""

    folder: Folder
    map_parallel: MapParallel
    patience: Retry = PATIENCE

    def run(self, badge_ids: Iterable[str]) -> Iterator[Folded]:
        """Fold badges, whose ids may come twice. A badge that fails delays no other.

        Raises `Unavailable` if the storage does not answer for a minute. What is folded by then
        is folded, and running it again folds the rest.
        """
        left = iter(badge_ids)
        while some := list(islice(left, BADGES_AT_ONCE)):
            yield from self.patience.call(partial(self._fold_some, some))

    def _fold_some(self, badge_ids: Sequence[str]) -> list[Folded]:
        return list(self.map_parallel(self._fold, badge_ids))

    def _fold(self, badge_id: str) -> Folded:
        try:
            return Folded(badge_id, self.folder.fold_all(badge_id))
        except Unavailable:
            raise
        except Exception as failure:  # noqa: BLE001  whatever fails one badge must not delay others
            return Folded(badge_id, failure=repr(failure))


def run(job: FoldAll, badge_ids: Iterable[str]) -> None:
    """Fold badges and print the progress and the result. Raises `NotFoldedError`."""
    badges = views = failed = 0
    try:
        for badges, folded in enumerate(job.run(badge_ids), 1):
            views += folded.views
            if folded.failure:
                failed += 1
                click.echo(f"{folded.badge_id} is not folded: {folded.failure}")
            if badges % REPORT_EVERY == 0:
                click.echo(f"{badges:,} badges so far", err=True)
    except (Unavailable, KeyboardInterrupt) as error:
        why = "it was interrupted" if isinstance(error, KeyboardInterrupt) else f"then {error}"
        raise NotFoldedError(
            f"{badges:,} badges are done, {why}; run it again: it folds the rest"
        ) from error
    click.echo(f"{badges:,} badges have views; {views:,} views were folded.")
    if failed:
        raise NotFoldedError(f"{failed:,} badges are not folded: mend the cause and run it again")
