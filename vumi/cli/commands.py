"""The commands of `python -m vumi`, which work while the server runs or not."""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, TypeAlias

import click

from chalicelib.views.folding import Folder
from chalicelib.views.windows import Windows
from vumi import backup, secrets
from vumi.admin import command, counts_file, folding, redrive_command, redriving
from vumi.admin.importing import Import
from vumi.check import check, rights
from vumi.check.report import FindingKind
from vumi.cli.folding import badge_ids
from vumi.engine import TIMERS_QUEUE, VIEWS_QUEUE
from vumi.resources import EVENT_QUEUE
from vumi.settings import StandaloneSettings
from vumi.storage.database import FILE, WAY_BACK, Database
from vumi.storage.private_files import UnsafeFileError
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.storage.view_clock import ViewClock

if TYPE_CHECKING:
    Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  it has no other name

Run: TypeAlias = Callable[[StandaloneSettings, argparse.Namespace], None]

BATCH_MESSAGES = 10
POLL_SECONDS = 0.2
NICENESS = 19
"""The lowest priority (nice(2)), so that check and backup do not slow visitors down."""


class NoFileError(Exception):
    """The file does not exist. The message says where it was expected."""


class CheckFailedError(Exception):
    """A check has found something wrong. The message says how to restore the file."""


class NoQueueError(Exception):
    """The queue does not exist. The message lists those that do."""


REPORTED_ERRORS = (
    NoFileError,
    NoQueueError,
    CheckFailedError,
    UnsafeFileError,
    backup.BackupError,
    command.InterruptedImportError,
    counts_file.CountsFileError,
    folding.NotFoldedError,
)
"""Errors that are reported in one line."""


def add_to(parsers: Commands) -> None:
    """Add the commands to a parser; parsed arguments have the command as `run`."""
    _add_command(parsers, "redrive", _redrive)
    _add_command(parsers, "fold", _fold)
    redrive_command.add_options(_add_command(parsers, "redrive-events", _redrive_events))
    command.add_options(_add_command(parsers, "import", _import))
    receive = _add_command(parsers, "receive", _receive)
    receive.add_argument("queue", help="one of EVENT_QUEUES")
    receive.add_argument(
        "--follow", action="store_true", help="wait for more events until interrupted"
    )
    _add_command(parsers, "token", _renew_token)
    _add_command(parsers, "check", _check)
    making = _add_command(parsers, "backup", _backup)
    making.add_argument("folder", type=Path, help="the new folder, which gets a copy of DATA")
    making.add_argument(
        "--replace", action="store_true", help="replace an older backup of that name"
    )


def _add_command(parsers: Commands, name: str, run: Run) -> argparse.ArgumentParser:
    parser = parsers.add_parser(name, help=run.__doc__, description=run.__doc__)
    parser.set_defaults(run=run)
    return parser


def _redrive(settings: StandaloneSettings, _: argparse.Namespace) -> None:
    """Send the dead letters of views again."""
    with _open_file(settings) as database:
        redriven = SqliteQueue(database, VIEWS_QUEUE, time.time).redrive()
    click.echo(f"{redriven} dead letters were sent again.")


def _fold(settings: StandaloneSettings, _: argparse.Namespace) -> None:
    """Fold all badges that have views to fold."""
    with _open_file(settings) as database:
        table = SqliteTable(database)
        queue = SqliteQueue(database, VIEWS_QUEUE, time.time)
        now = ViewClock(database, queue, time.time).keep()
        folder = Folder(table, Windows.of(settings.product), lambda: now)
        folding.run(folding.FoldAll(folder, database.map_in_commits), badge_ids(database))


def _redrive_events(settings: StandaloneSettings, given: argparse.Namespace) -> None:
    """Deliver failed events again."""
    with _open_file(settings) as database:
        queue = SqliteQueue(database, TIMERS_QUEUE, time.time)
        job = redriving.Redrive(SqliteTable(database), queue, time.time)
        redrive_command.run(job, given.event)


def _import(settings: StandaloneSettings, given: argparse.Namespace) -> None:
    """Import counts from a CSV file. Each count becomes the base of its badge."""
    rows = counts_file.read(given.file)
    with _open_file(settings) as database:
        table = SqliteTable(database)
        job = Import(table, database.map_in_commits, time.time, given.replace, given.dry_run)
        command.run(rows, job)


def _receive(settings: StandaloneSettings, given: argparse.Namespace) -> None:
    """Remove the events from a queue and print each as one line of JSON."""
    queues = settings.product.event_queues
    if given.queue not in queues:
        raise NoQueueError(
            f"EVENT_QUEUES has no queue {given.queue}; it has {', '.join(sorted(queues)) or 'none'}"
        )
    stopped = Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: stopped.set())
    with _open_file(settings) as database:
        queue = SqliteQueue(database, EVENT_QUEUE + given.queue, time.time)
        while not stopped.is_set():
            if not _print_messages(queue) and (not given.follow or stopped.wait(POLL_SECONDS)):
                return


def _print_messages(queue: SqliteQueue) -> int:
    """Print some messages, then delete them; after an interruption they are printed again."""
    messages = queue.receive(BATCH_MESSAGES)
    for message in messages:
        click.echo(message.body)
    queue.delete(messages)
    return len(messages)


def _renew_token(settings: StandaloneSettings, _: argparse.Namespace) -> None:
    """Replace the API token; the new one is valid after the next start."""
    token = secrets.renew_token(settings.folder)
    click.echo(f"Token, shown only once, valid after the next start: {token}")


def _check(settings: StandaloneSettings, _: argparse.Namespace) -> None:
    """Check the file, while the server runs or not, and change nothing."""
    path = _find_file(settings)
    os.nice(NICENESS)
    findings = check.check(settings.folder)
    for finding in findings:
        click.echo(str(finding))
    if wrong := sum(finding.kind is FindingKind.WRONG for finding in findings):
        raise CheckFailedError(f"{path} has {wrong} errors; {WAY_BACK}")
    click.echo(f"{path} has no errors.")


def _backup(settings: StandaloneSettings, given: argparse.Namespace) -> None:
    """Copy DATA to a new folder and check the copy, while the server runs or not."""
    _find_file(settings)
    os.nice(NICENESS)
    made = backup.make(settings.folder, given.folder, replace=given.replace)
    click.echo(
        f"{made.target} has the file and {made.objects:,} objects of the archive, and is correct."
    )


def _find_file(settings: StandaloneSettings) -> Path:
    path = settings.folder / FILE
    if not path.exists():
        raise NoFileError(f"{path} does not exist; set DATA to the folder of the file")
    return path


@contextmanager
def _open_file(settings: StandaloneSettings) -> Iterator[Database]:
    """Open the file, which must exist: a new file would mean that DATA is wrong."""
    path = _find_file(settings)
    rights.refuse_foreign_entries(settings.folder)
    with closing(Database(path)) as database:
        yield database
