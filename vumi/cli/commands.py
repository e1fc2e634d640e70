"""The commands of `python -m vumi` beside serving: each works on the same file, served or not."""

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
from vumi import secrets
from vumi.admin import command, counts_file, folding, redrive_command, redriving
from vumi.admin.importing import Import
from vumi.check import check
from vumi.check.report import Kind
from vumi.cli.folding import badge_ids
from vumi.engine import TIMERS_QUEUE, VIEWS_QUEUE
from vumi.resources import EVENT_QUEUE
from vumi.settings import LocalSettings
from vumi.storage import backup
from vumi.storage.database import FILE, WAY_BACK, Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.storage.view_clock import ViewClock

if TYPE_CHECKING:
    Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  it has no other name

Run: TypeAlias = Callable[[LocalSettings, argparse.Namespace], None]

RECEIVED_AT_ONCE = 10
POLL_SECONDS = 0.2
NICENESS = 19
"""Where check and backup want the processor, visitors go first (nice(2))."""


class NoFileError(Exception):
    """There is no file to work on; the message says where one was looked for."""


class WrongError(Exception):
    """A check has found something wrong; the message says where the way back is told."""


class NoQueueError(Exception):
    """There is no such queue; the message says which there are."""


WRONG = (
    NoFileError,
    NoQueueError,
    WrongError,
    backup.BackupError,
    command.CutShortError,
    counts_file.WrongFileError,
    folding.NotFoldedError,
)
"""What is told in one line, in its own words."""


def add_to(parsers: Commands) -> None:
    """Add the commands to a parser; what it parses then has the command as `run`."""
    _add(parsers, "redrive", _redrive)
    _add(parsers, "fold", _fold)
    redrive_command.add_options(_add(parsers, "redrive-events", _redrive_events))
    command.add_options(_add(parsers, "import", _import))
    receive = _add(parsers, "receive", _receive)
    receive.add_argument("queue", help="one of EVENT_QUEUES")
    receive.add_argument("--follow", action="store_true", help="wait for more, until interrupted")
    _add(parsers, "token", _token)
    _add(parsers, "check", _check)
    making = _add(parsers, "backup", _backup)
    making.add_argument("folder", type=Path, help="a new folder; in it is all of DATA then")
    making.add_argument(
        "--replace", action="store_true", help="in the place of an older backup of that name"
    )


def _add(parsers: Commands, name: str, run: Run) -> argparse.ArgumentParser:
    adding = parsers.add_parser(name, help=run.__doc__, description=run.__doc__)
    adding.set_defaults(run=run)
    return adding


def _redrive(settings: LocalSettings, _: argparse.Namespace) -> None:
    """Send the dead letters of views again."""
    with _file(settings) as database:
        redriven = SqliteQueue(database, VIEWS_QUEUE, time.time).redrive()
    click.echo(f"{redriven} dead letters are on their way again.")


def _fold(settings: LocalSettings, _: argparse.Namespace) -> None:
    """Fold all badges that have views to fold."""
    with _file(settings) as database:
        table = SqliteTable(database)
        queue = SqliteQueue(database, VIEWS_QUEUE, time.time)
        now = ViewClock(database, queue, time.time).keep()
        folder = Folder(table, Windows.of(settings.product), lambda: now)
        folding.run(folding.FoldAll(folder, database.map_in_commits), badge_ids(database))


def _redrive_events(settings: LocalSettings, given: argparse.Namespace) -> None:
    """Let events that were given up be tried anew."""
    with _file(settings) as database:
        queue = SqliteQueue(database, TIMERS_QUEUE, time.time)
        job = redriving.Redrive(SqliteTable(database), queue, time.time)
        redrive_command.run(job, given.event)


def _import(settings: LocalSettings, given: argparse.Namespace) -> None:
    """Import counts from a CSV file: each becomes the base of its badge."""
    rows = counts_file.read(given.file)
    with _file(settings) as database:
        table = SqliteTable(database)
        job = Import(table, database.map_in_commits, time.time, given.replace, given.dry_run)
        command.run(rows, job)


def _receive(settings: LocalSettings, given: argparse.Namespace) -> None:
    """Take the events off a queue and print them, each as a line of JSON."""
    queues = settings.product.event_queues
    if given.queue not in queues:
        raise NoQueueError(
            f"EVENT_QUEUES has no {given.queue}; it has {', '.join(sorted(queues)) or 'none'}"
        )
    stopped = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with _file(settings) as database:
        queue = SqliteQueue(database, EVENT_QUEUE + given.queue, time.time)
        while not stopped.is_set():
            if not _print(queue) and (not given.follow or stopped.wait(POLL_SECONDS)):
                return


def _print(queue: SqliteQueue) -> int:
    """Print some messages, then delete them: where that is cut short, they come again."""
    messages = queue.receive(RECEIVED_AT_ONCE)
    for message in messages:
        click.echo(message.body)
    queue.delete(messages)
    return len(messages)


def _token(settings: LocalSettings, _: argparse.Namespace) -> None:
    """Make a new token, which from the next start on opens the token routes in place of the old."""
    token = secrets.renew_token(settings.folder)
    click.echo(f"Token, shown this once, good from the next start on: {token}")


def _check(settings: LocalSettings, _: argparse.Namespace) -> None:
    """Check the file, whether or not it serves, and change nothing."""
    path = _path(settings)
    os.nice(NICENESS)
    findings = check.check(settings.folder)
    for finding in findings:
        click.echo(str(finding))
    if wrong := sum(finding.kind is Kind.WRONG for finding in findings):
        raise WrongError(f"{path}: things wrong: {wrong}; {WAY_BACK}")
    click.echo(f"{path} is all right.")


def _backup(settings: LocalSettings, given: argparse.Namespace) -> None:
    """Copy all of DATA, whether or not it serves, to a folder that can be DATA; checked."""
    _path(settings)
    os.nice(NICENESS)
    made = backup.make(settings.folder, given.folder, replace=given.replace)
    click.echo(f"{made.target} has the file and {made.objects:,} objects of the archive; checked.")


def _path(settings: LocalSettings) -> Path:
    path = settings.folder / FILE
    if not path.exists():
        raise NoFileError(f"there is no {path}; set DATA to the folder of the file")
    return path


@contextmanager
def _file(settings: LocalSettings) -> Iterator[Database]:
    """The file, which must be there: a command on a new one would be a mistake in DATA."""
    with closing(Database(_path(settings))) as database:
        yield database
