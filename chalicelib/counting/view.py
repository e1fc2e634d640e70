"""A view: the GET makes it, and a message of the views queue carries it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from chalicelib.counting import ids
from chalicelib.storage.messages import MalformedError
from chalicelib.storage.ports import Message
from chalicelib.ulids import milliseconds
from chalicelib.units import Milliseconds

if TYPE_CHECKING:
    from chalicelib.storage.ports import Queue

MESSAGE_SCHEMA = '{"id": text, "view": ULID, "first": boolean, "hot": boolean, "fold": boolean}'


class View(NamedTuple):
    """One view of a badge.

    `ulid` identifies the view and has its time. `first` asks for the marker of the view's window,
    `hot` asks to count the view at once, and `fold` asks to fold the badge. `unmarked` asks
    to count it at once without a marker, because it is in the commit of its request: it can't come
    again.
    """

    badge_id: str
    ulid: str
    first: bool = True
    hot: bool = False
    fold: bool = False
    unmarked: bool = False

    @property
    def milliseconds(self) -> Milliseconds:
        return milliseconds(self.ulid)

    def to_message(self) -> str:
        body = {"id": self.badge_id, "view": self.ulid, "first": self.first, "hot": self.hot}
        return json.dumps(body | ({"fold": True} if self.fold else {}))

    @classmethod
    def from_message(cls, body: object) -> View:
        """Return the view that a message carries. Raises `MalformedError`."""
        try:
            fields = json.loads(body)  # type: ignore[arg-type]
            flags = fields["first"], fields["hot"], fields.get("fold", False)
            view = cls(fields["id"], fields["view"], *flags)
            view._check(flags)
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise MalformedError(f"expected {MESSAGE_SCHEMA}: {error!r}") from error
        return view

    def _check(self, flags: tuple[object, ...]) -> None:
        if ids.normalise(self.badge_id) != self.badge_id:
            raise ValueError(f"id {self.badge_id!r} is not normalised")
        if not all(isinstance(flag, bool) for flag in flags):
            raise ValueError(f"first, hot and fold are true or false, not {flags}")
        milliseconds(self.ulid)


class ViewQueue(Protocol):
    """A queue that carries views from the request to `store_views`, each at least once."""

    def send(self, *views: View) -> None:
        """Enqueue the views of a request.

        Raises `StorageError`; each of the views may be in the queue nevertheless.
        """


@dataclass(frozen=True, slots=True)
class ViewMessages:
    """A `ViewQueue` that sends each view as a message of a queue, up to ten in one call."""

    queue: Queue

    def send(self, *views: View) -> None:
        if len(views) == 1:
            self.queue.send(views[0].to_message())
        else:
            self.queue.send_all([Message(view.to_message()) for view in views])


def ulid_in(body: object) -> str:
    """Return the ULID of the view that a message carries, empty for a malformed message."""
    try:
        return View.from_message(body).ulid
    except MalformedError:
        return ""
