"""The commands for what waits or has failed: fold, redrive, redrive-events and receive."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable
from enum import Enum
from functools import partial
from threading import Event
from typing import Any

import click

from chalicelib.concurrency import MapParallel
from chalicelib.counting.folding import BadgeFold
from chalicelib.counting.view import Counting
from chalicelib.events import delivery, schedule
from chalicelib.events.event import PARTITION, Status, batches
from chalicelib.events.sweep import between
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.ports import Queue, Table
from chalicelib.storage.retry import Retry
from chalicelib.units import Milliseconds, to_milliseconds
from vumi.cli.options import Invocation, examples, on_installation
from vumi.cli.output import as_json, print_json, print_result, until_stopped, wants_json
from vumi.errors import ReportedError, plural
from vumi.operate.admin.installation import PATIENCE, Installation, LetterOutcome, map_patiently
from vumi.operate.installations.file import open_installation

BATCH_MESSAGES = 10
POLL_SECONDS = 0.2


def fold_badges(
    counting: Counting,
    map_parallel: MapParallel,
    badge_ids: Iterable[str],
    patience: Retry = PATIENCE,
) -> None:
    """Fold badges, whose ids may repeat, and print the result. A badge that fails delays no other.

    Raises `ReportedError` if one is not folded, or if storage fails for a minute. Running it again
    folds the rest.
    """
    views = failed = 0
    with until_stopped("folding badges") as line:
        folded = map_patiently(partial(_fold, counting), badge_ids, map_parallel, patience)
        for badge_id, count, failure in line.count(folded):
            views += count
            if failure:
                failed += 1
                line.hide()
                text = f"{badge_id} is not folded: {failure}"
                print_result(text, {"id": badge_id, "error": failure})
    text = f"folded {plural(views, 'view')} of {plural(line.done, 'badge')}"
    print_result(text, {"badges": line.done, "views": views, "not_folded": failed})
    if failed:
        raise ReportedError(f"{plural(failed, 'badge')} not folded; fix the cause and run it again")


def _fold(counting: Counting, badge_id: str) -> tuple[str, int, str]:
    """Return the id, the number of views that the fold counted, and why it failed, if it did."""
    try:
        return badge_id, BadgeFold(counting, badge_id).fold_all(), ""
    except UnavailableError:
        raise
    except Exception as failure:  # noqa: BLE001  a failure of one badge must not delay others
        return badge_id, 0, repr(failure)


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
    fold_badges(installation.counting, installation.map_parallel, ids)


class RedriveOutcome(Enum):
    """The outcome of one event; its value is printed for the operator."""

    REDRIVEN = "queued again"
    NOT_FAILED = "skipped, because it has not failed"
    UNKNOWN = "unknown"


def _redrive(
    table: Table, queue: Queue, event_id: str, now: Milliseconds
) -> tuple[RedriveOutcome, str]:
    """Redrive an event if it has failed; return also the error of its last attempt then."""
    try:
        event = schedule.read(table, event_id)
    except schedule.UnknownEventError:
        return RedriveOutcome.UNKNOWN, ""
    if event.status is Status.ERROR and delivery.redrive(table, queue, event, now):
        return RedriveOutcome.REDRIVEN, event.last_error
    return RedriveOutcome.NOT_FAILED, ""


@click.command(epilog=examples("vumi redrive", "vumi redrive --stack vu-mi-prod"))
@as_json
@on_installation
def redrive(installation: Installation) -> None:
    """Send the dead letters of views again."""
    outcomes = installation.redrive_views()
    if wants_json():
        print_json({one.name.lower(): outcomes[one] for one in LetterOutcome})
    else:
        _print_outcomes(outcomes, LetterOutcome, "dead letter")


@click.command(epilog=examples("vumi redrive-events", "vumi redrive-events EVENT-ID EVENT-ID"))
@click.argument("event_ids", metavar="[EVENT]...", nargs=-1)
@as_json
@on_installation
def redrive_events(installation: Installation, event_ids: tuple[str, ...]) -> None:
    """Deliver failed events again: these, or all."""
    outcomes: Counter[RedriveOutcome] = Counter()
    table, queue = installation.table, installation.delivery_queue
    # All failed events are listed first, so that one that fails again is not redriven twice.
    failed = (due.key.pk for one in batches(Status.ERROR) for due in between(table, one))
    for event_id in event_ids or [pk.removeprefix(PARTITION) for pk in failed]:
        outcome, error = _redrive(table, queue, event_id, to_milliseconds(installation.clock()))
        outcomes[outcome] += 1
        reason = f"; its last error: {error}" if error else ""
        fields = {"id": event_id, "outcome": outcome.name.lower(), "error": error}
        print_result(f"{event_id} {outcome.value}{reason}", fields)
    if not wants_json():
        _print_outcomes(outcomes, RedriveOutcome, "event")


def _print_outcomes(outcomes: Counter[Any], kind: Iterable[Enum], noun: str) -> None:
    """Print the number of each outcome that there was, and of the first one in any case."""
    for place, outcome in enumerate(kind):
        if outcomes[outcome] or place == 0:
            click.echo(f"{plural(outcomes[outcome], noun)} {outcome.value}")


@click.command(epilog=examples("EVENT_QUEUES=orders vumi receive orders --follow"))
@click.argument("queue")
@click.option("--follow", is_flag=True, help="Wait for more events until interrupted.")
@click.pass_obj
def receive(invocation: Invocation, queue: str, *, follow: bool) -> None:
    """Remove the events from QUEUE, and print them.

    QUEUE is one of EVENT_QUEUES. Each event is one line of JSON.
    """
    queues = invocation.settings.product.event_queues
    if queue not in queues:
        raise ReportedError(
            f"EVENT_QUEUES has no queue {queue}; it has {', '.join(sorted(queues)) or 'none'}"
        )
    stopped = Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: stopped.set())
    with open_installation(invocation.settings, invocation.clock) as installation:
        events = installation.event_queue(queue)
        while not stopped.is_set():
            messages = events.receive(BATCH_MESSAGES)
            for message in messages:
                click.echo(message.body)
            events.delete(messages)  # after an interruption before it, they are printed again
            if not messages and (not follow or stopped.wait(POLL_SECONDS)):
                return
