"""The command `receive`, which prints the events that were sent to a queue of one machine."""

from __future__ import annotations

import signal
from threading import Event

import click

from vumi.cli.options import Invocation, examples
from vumi.errors import ReportedError
from vumi.operate.installations.file import open_installation
from vumi.storage.queue import SqliteQueue

BATCH_MESSAGES = 10
POLL_SECONDS = 0.2


class NoQueueError(ReportedError):
    """The queue does not exist. The message lists those that do."""


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
        raise NoQueueError(
            f"EVENT_QUEUES has no queue {queue}; it has {', '.join(sorted(queues)) or 'none'}"
        )
    stopped = Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: stopped.set())
    with open_installation(invocation.settings, invocation.clock) as installation:
        events = installation.event_queue(queue)
        while not stopped.is_set():
            if not _print_messages(events) and (not follow or stopped.wait(POLL_SECONDS)):
                return


def _print_messages(queue: SqliteQueue) -> int:
    """Print some messages, then delete them; after an interruption they are printed again."""
    messages = queue.receive(BATCH_MESSAGES)
    for message in messages:
        click.echo(message.body)
    queue.delete(messages)
    return len(messages)
