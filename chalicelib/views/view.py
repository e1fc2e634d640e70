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
    visitor saw, so that with this view there are at least `shown + 1`, and `reset` the beginning of
    that count: how often a badge is begun anew, what was seen before says nothing of it. `hot` is
    until when its badge is hot, in seconds since 1970: it is counted at once; 0 where it is not.
    """

    badge_id: str
    ulid: str
    shown: int
    reset: int = 0
    hot: int = 0

    @classmethod
    def taken(cls, badge_id: str, shown: int, now: float, reset: int = 0, *, hot: int = 0) -> View:
        """A new view at a time in seconds since 1970, not before the badge's reset (milliseconds).

        A clock that was set back since the reset would else take views that don't count.
        """
        ulid = str(ULID.from_timestamp(max(int(now * 1000), reset)))
        return cls(badge_id, ulid, shown, reset, hot)

    def to_message(self) -> str:
        """The body of its message: JSON."""
        body = {"id": self.badge_id, "view": self.ulid, "shown": self.shown}
        more = {"reset": self.reset, "hot": self.hot}
        return json.dumps(body | {name: value for name, value in more.items() if value})

    @classmethod
    def from_message(cls, body: object) -> View:
        """The view that a message carries. Raises `MalformedError`."""
        try:
            fields = json.loads(body)  # type: ignore[arg-type]
            more = fields.get("reset", 0), fields.get("hot", 0)
            view = cls(fields["id"], fields["view"], fields["shown"], *more)
            view._check()
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise MalformedError(f"{EXPECTED}: {error!r}") from error
        return view

    def _check(self) -> None:
        if ids.normalise(self.badge_id) != self.badge_id:
            raise ValueError(f"id {self.badge_id!r} is not normalised")
        taken_at(self.ulid)
        numbers = {"shown": self.shown, "reset": self.reset, "hot": self.hot}
        for name, value in numbers.items():
            if type(value) is not int or value < 0:
                raise ValueError(f"{name} {value!r} is no whole number from 0")


def taken_at(ulid: str) -> datetime:
    """When a view was taken, from its ULID. Raises `ValueError` for any other text."""
    parsed = ULID.from_str(ulid)
    if str(parsed) != ulid:
        raise ValueError(f"{ulid!r} is no ULID in its canonical form")
    return datetime.fromtimestamp(parsed.milliseconds / 1000, UTC)


def is_ulid(text: str) -> bool:
    """Whether it is one in its canonical form."""
    try:
        taken_at(text)
    except ValueError:
        return False
    return True


def earliest(milliseconds: int) -> str:
    """The least ULID of a time in milliseconds since 1970: none made before sorts behind it."""
    return str(ULID.from_bytes(milliseconds.to_bytes(6, "big") + bytes(10)))
