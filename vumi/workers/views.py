"""The consumers of views on one machine, which run in the commits that deliver the views."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from chalicelib import telemetry
from chalicelib.counting.consumers import MarkerRemoval, fold_badges, store_views
from chalicelib.counting.view import View, ViewMessages
from chalicelib.resources import Room
from chalicelib.storage.errors import StorageError, UnavailableError
from chalicelib.storage.items import key_of
from chalicelib.storage.messages import handle_messages, log_malformed_record, parse_records
from vumi.resources import StandaloneResources
from vumi.storage.queue import SqliteQueue
from vumi.workers.deliveries import Change

Result = TypeVar("Result")


class CommitBuffer:
    """The `ViewQueue` of one machine, which keeps the views of a common commit for the commit.

    Other views are sent as messages of `queue`. `on_hot` gets the id of each hot view before.
    """

    def __init__(self, queue: SqliteQueue) -> None:
        self.queue = queue
        self.on_hot: Callable[[str], object] = lambda _: None
        self._messages = ViewMessages(queue)
        self._local = threading.local()

    def send(self, *views: View) -> None:
        for view in views:
            if view.hot:
                self.on_hot(view.badge_id)
        kept: list[View] | None = getattr(self._local, "views", None)
        if kept is None:
            self._messages.send(*views)
            telemetry.count(views_taken=len(views))
        else:
            kept.extend(views)

    @contextmanager
    def keeping(self) -> Iterator[list[View]]:
        """Keep the views that this thread sends in a list, not in the file."""
        self._local.views = views = list[View]()
        try:
            yield views
        finally:
            del self._local.views


class ViewWorker:
    """The worker that stores and folds views; each of its commits keeps its time in the file."""

    def __init__(self, queue: CommitBuffer, resources: StandaloneResources) -> None:
        self._queue = queue
        self._resources = resources

    def commit(self, function: Callable[[], Result]) -> Result:
        """Call a function within a commit, and store the views that it sends in the same commit.

        A view that is not stored becomes a message. Raises `StorageError` if the commit must fail.
        """
        with self._queue.keeping() as views:
            result = function()
        telemetry.count(views_taken=len(views))
        no_room = self._resources.room() is Room.COUNTS
        views = [one._replace(unmarked=True) if one.hot or no_room else one for one in views]
        if views and (failed := self._try_to_store(views)):
            self._queue.queue.add_received(view.to_message() for view in views if view in failed)
        return result

    def _try_to_store(self, views: Sequence[View]) -> set[View]:
        try:
            return self._store(views)
        except StorageError:
            raise
        except Exception as error:  # the requests are answered alone, and their views are messages
            telemetry.event(logging.ERROR, "views_not_stored", views=len(views))
            raise UnavailableError("the views of a commit were not stored") from error

    def _store(self, views: Sequence[View]) -> set[View]:
        failed = store_views(views, self._resources)
        self._resources.view_clock.keep()
        return failed

    def store_messages(self, bodies: Mapping[int, str]) -> list[int]:
        """Store the views of messages; return the ids of the messages to deliver again."""
        return handle_messages(bodies, View.from_message, self._store)

    def fold(self, changes: Sequence[Change]) -> list[Change]:
        """Fold badges whose markers were removed; return the changes to deliver again."""
        removals, _ = parse_records(
            changes,
            lambda one: MarkerRemoval.of(key_of(one.item), one.removed_at),
            log_malformed_record,
        )
        failed = set(fold_badges([removal for _, removal in removals], self._resources))
        self._resources.view_clock.keep()
        return [change for change, removal in removals if removal in failed]
