"""The `Queue` on SQLite, with the guarantees that SQS gives to a consumer.

A received message is invisible for the visibility timeout, and is delivered again unless it is
deleted. A message that was received `max_receives` times goes to the dead-letter queue, where it
stays until a redrive.
"""

from __future__ import annotations

import logging
import math
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from chalicelib import telemetry
from chalicelib.storage import ports
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.ports import NotSentError, check_delay
from chalicelib.units import Seconds
from vumi.storage.database import Database

DEAD_LETTERS = "-dead-letters"
"""The end of a dead-letter queue's name, after the name of its queue."""


@dataclass(frozen=True, slots=True)
class Message:
    """A received message."""

    id: int
    body: str


@dataclass(frozen=True, slots=True)
class QueueState:
    """The messages of a queue, with those that are being handled, and the first times of them."""

    messages: int
    oldest_sent_at: Seconds
    first_visible_at: Seconds


def states(database: Database) -> dict[str, QueueState]:
    """Return the state of each queue and dead-letter queue with messages, by the index alone."""
    rows = database.read(
        "SELECT found.queue, number, sent_at, visible FROM (SELECT queue, count(*) AS number,"
        " min(visible_at) AS visible, min(id) AS oldest FROM messages GROUP BY queue) AS found"
        " JOIN messages ON id = oldest"
    )
    return {name: QueueState(*state) for name, *state in rows}


class SqliteQueue:
    """A `ports.Queue` in the database file, with the methods of its consumer.

    `route` returns the name of the queue that gets a body which is sent to this one.
    """

    def __init__(
        self,
        database: Database,
        name: str,
        clock: Callable[[], Seconds],
        *,
        visibility_timeout: Seconds = 30.0,
        max_receives: int = 10,
    ) -> None:
        self.name = name
        self.on_send: Callable[[], None] = lambda: None
        self.route: Callable[[str], str] = lambda _: name
        self._database = database
        self._clock = clock
        self._visibility_timeout = visibility_timeout
        self._max_receives = max_receives
        self._latest = math.inf

    def sibling(self, name: str) -> SqliteQueue:
        """Return another queue of the same file, with the same clock."""
        return SqliteQueue(self._database, name, self._clock)

    def send(self, body: str, *, delay: Seconds = 0.0) -> None:
        self._send([ports.Message(body, delay)])

    def send_all(self, messages: Sequence[ports.Message]) -> None:
        try:
            self._send(messages)
        except UnavailableError as unavailable:
            raise NotSentError(messages, str(unavailable)) from unavailable

    def _send(self, messages: Sequence[ports.Message]) -> None:
        for message in messages:
            check_delay(message.delay)
        now = self._clock()
        self._insert([(self.route(m.body), m.body, now, now + m.delay, now, 0) for m in messages])

    def add_received(self, bodies: Iterable[str]) -> None:
        """Add messages as received once, because they failed before they were in the file."""
        now = self._clock()
        visible_at = now + self._visibility_timeout
        self._insert([(self.name, body, now, visible_at, now, 1) for body in bodies])

    def _insert(self, rows: Sequence[tuple[object, ...]]) -> None:
        self._database.write(
            lambda connection: connection.executemany(
                "INSERT INTO messages (queue, body, sent_at, visible_at, timed_at, receives)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                rows,
            )
        )
        self.on_send()

    def receive(self, limit: int) -> list[Message]:
        """Receive up to `limit` visible messages, those that are visible for longest first.

        Each is invisible for the visibility timeout from now on.
        """
        now = self._clock()

        def job(connection: sqlite3.Connection) -> tuple[int, list[Message]]:
            if now < self._latest:
                self._follow_clock(connection, now)
            return self._give_up(connection, now), self._take(connection, now, limit)

        given_up, messages = self._database.write(job)
        self._latest = now
        if given_up:
            telemetry.event(logging.ERROR, "dead_letters", queue=self.name, messages=given_up)
        return messages

    def delete(self, messages: Iterable[Message]) -> None:
        """Delete handled messages."""
        ids = [(message.id,) for message in messages]
        if not ids:
            return
        self._database.write(
            lambda connection: connection.executemany("DELETE FROM messages WHERE id = ?", ids)
        )

    def release(self) -> None:
        """Make received messages visible: at the start, only a killed process can have them."""
        self._show("queue = ? AND receives > 0", self.name)

    def redrive(self) -> int:
        """Send the dead letters again, as if never received; return their number."""
        return self._show("queue = ?", self.name + DEAD_LETTERS, ", receives = 0")

    def _show(self, where: str, queue: str, more: str = "") -> int:
        """Make messages of a queue visible in this one; return their number."""
        now = self._clock()
        update = f"UPDATE messages SET queue = ?, visible_at = ?, timed_at = ?{more} WHERE {where}"  # noqa: S608  fixed texts
        given = (self.name, now, now, queue)
        return self._database.write(lambda connection: connection.execute(update, given).rowcount)

    def bodies(self) -> list[str]:
        """Return the bodies of all messages and dead letters."""
        rows = self._database.read(
            "SELECT body FROM messages WHERE queue IN (?, ?)", (self.name, self.name + DEAD_LETTERS)
        )
        return [body for (body,) in rows]

    def seconds_until_visible(self, least: Seconds, most: Seconds) -> Seconds:
        """Return the time until the next message is visible, but `most` without a message."""
        next_visible = "SELECT min(visible_at) FROM messages WHERE queue = ?"
        [(at,)] = self._database.read(next_visible, (self.name,))
        return most if at is None else min(most, max(least, at - self._clock()))

    def size(self) -> int:
        """Count the messages that wait or are being handled."""
        counted = "SELECT count(*) FROM messages WHERE queue = ?"
        [(found,)] = self._database.read(counted, (self.name,))
        return int(found)

    def _give_up(self, connection: sqlite3.Connection, now: Seconds) -> int:
        return connection.execute(
            "UPDATE messages SET queue = ? WHERE queue = ? AND visible_at <= ? AND receives >= ?",
            (self.name + DEAD_LETTERS, self.name, now, self._max_receives),
        ).rowcount

    def _take(self, connection: sqlite3.Connection, now: Seconds, limit: int) -> list[Message]:
        rows = connection.execute(
            "SELECT id, body FROM messages WHERE queue = ? AND visible_at <= ?"
            " ORDER BY visible_at, id LIMIT ?",
            (self.name, now, limit),
        ).fetchall()
        messages = [Message(*row) for row in rows]
        connection.executemany(
            "UPDATE messages SET receives = receives + 1, visible_at = ?, timed_at = ?"
            " WHERE id = ?",
            [(now + self._visibility_timeout, now, message.id) for message in messages],
        )
        return messages

    def _follow_clock(self, connection: sqlite3.Connection, now: Seconds) -> None:
        """Restart the waits that were timed before the clock was set back, in full from now."""
        connection.execute(
            "UPDATE messages SET visible_at = ? + visible_at - timed_at, timed_at = ?"
            " WHERE queue = ? AND visible_at > ? AND timed_at > ?",
            (now, now, self.name, now, now),
        )
