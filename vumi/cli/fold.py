"""The command `fold`, the same on both engines.

It folds badges whose folds were lost because a consumer was stopped for longer than the stream
keeps records. It must run within RETENTION_SECONDS, before TTL removes their views.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

import click

from chalicelib.concurrency import MapParallel
from chalicelib.counting.folding import BadgeFold
from chalicelib.counting.windows import Counting
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.retry import Retry
from vumi.cli.options import examples, on_installation
from vumi.cli.output import as_json, print_result
from vumi.cli.progress import progress
from vumi.errors import ReportedError, plural
from vumi.operate.admin.importing import PATIENCE
from vumi.operate.admin.installation import Installation

BATCH_BADGES = 100


class NotFoldedError(ReportedError):
    """Some badges are not folded. The message says how to continue."""


@dataclass(frozen=True, slots=True)
class FoldedBadge:
    """A badge and the number of views its fold counted; `failure` is empty if it was folded."""

    badge_id: str
    views: int = 0
    failure: str = ""


def fold_badges(
    counting: Counting,
    map_parallel: MapParallel,
    badge_ids: Iterable[str],
    patience: Retry = PATIENCE,
) -> Iterator[FoldedBadge]:
    """Fold badges, whose ids may repeat. A badge that fails delays no other.

    Raises `UnavailableError` if storage fails for a minute. Running it again folds the
    other badges.
    """

    def fold_batch() -> list[FoldedBadge]:
        return list(map_parallel(partial(_fold, counting), batch))

    left = iter(badge_ids)
    while batch := list(islice(left, BATCH_BADGES)):
        yield from patience.call(fold_batch)


def _fold(counting: Counting, badge_id: str) -> FoldedBadge:
    try:
        return FoldedBadge(badge_id, BadgeFold(counting, badge_id).fold_all())
    except UnavailableError:
        raise
    except Exception as failure:  # noqa: BLE001  a failure of one badge must not delay others
        return FoldedBadge(badge_id, failure=repr(failure))


@click.command(
    epilog=examples(
        "vumi fold --all", "vumi fold octocat/hello-world", "vumi fold --all --stack vu-mi-prod"
    )
)
@click.argument("badge_ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "of_all", is_flag=True, help="Fold all badges that have views to fold.")
@as_json
@on_installation
def fold(installation: Installation, badge_ids: tuple[str, ...], *, of_all: bool) -> None:
    """Fold badges.

    On AWS this is needed after the consumer was stopped for more than 24 hours.
    """
    if of_all == bool(badge_ids):
        raise click.UsageError("give --all or the ids of badges")
    ids = badge_ids or installation.viewed_ids()
    report(fold_badges(installation.counting, installation.map_parallel, ids))


def report(fold: Iterator[FoldedBadge]) -> None:
    """Fold badges and print the result. Raises `NotFoldedError`."""
    views = failed = 0
    with progress("folding badges") as line:
        try:
            for folded in line.count(fold):
                views += folded.views
                if folded.failure:
                    failed += 1
                    line.hide()
                    text = f"{folded.badge_id} is not folded: {folded.failure}"
                    print_result(text, {"id": folded.badge_id, "error": folded.failure})
        except (UnavailableError, KeyboardInterrupt) as error:
            reason = str(error) or "it was interrupted"
            raise NotFoldedError(
                f"the fold stopped after {plural(line.done, 'badge')}: {reason}; run it again to"
                " fold the rest"
            ) from error
    text = f"folded {plural(views, 'view')} of {plural(line.done, 'badge')}"
    print_result(text, {"badges": line.done, "views": views, "not_folded": failed})
    if failed:
        raise NotFoldedError(
            f"{plural(failed, 'badge')} not folded; fix the cause and run it again"
        )
