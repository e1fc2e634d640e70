"""One view on its way: made by the GET, carried by a message of the views queue."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from ulid import ULID

from chalicelib.views import ids

EXPECTED = 'expected {"id": text, "view": ULID, "shown": whole number from 0}'


class MalformedError(ValueError):
    """A message or a stream record that nothing here wrote; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class View:
    """One view of a badge.

    `ulid` tells it from every other and says when it was taken. `shown` is the count that its
    visitor saw, so that with this view there are at least `shown + 1`.
    """

    badge_id: str
    ulid: str
    shown: int

    @classmethod
    def taken(cls, badge_id: str, shown: int, now: float) -> View:
        """A new view at a time in seconds since 1970."""
        return cls(badge_id, str(ULID.from_timestamp(float(now))), shown)

    def to_message(self) -> str:
        """The body of its message: JSON."""
        return json.dumps({"id": self.badge_id, "view": self.ulid, "shown": self.shown})

    @classmethod
    def from_message(cls, body: object) -> View:
        """The view that a message carries. Raises `MalformedError`."""
        try:
            fields = json.loads(body)  # type: ignore[arg-type]
            view = cls(fields["id"], fields["view"], fields["shown"])
            view._check()
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise MalformedError(f"{EXPECTED}: {error!r}") from error
        return view

    def _check(self) -> None:
        if ids.normalise(self.badge_id) != self.badge_id:
            raise ValueError(f"id {self.badge_id!r} is not normalised")
        taken_at(self.ulid)
        if type(self.shown) is not int or self.shown < 0:
            raise ValueError(f"shown {self.shown!r} is no whole number from 0")


def taken_at(ulid: str) -> datetime:
    """When a view was taken, from its ULID. Raises `ValueError` for any other text."""
    parsed = ULID.from_str(ulid)
    if str(parsed) != ulid:
        raise ValueError(f"{ulid!r} is no ULID in its canonical form")
    return datetime.fromtimestamp(parsed.milliseconds / 1000, UTC)
