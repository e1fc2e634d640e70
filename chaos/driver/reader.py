"""A client that reads badges over HTTP: the count, and the days of the history."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import quote

from chaos.checker.history import Kind, Operation, Outcome, Recorder
from chaos.driver.server import Server
from chaos.driver.visitors import HOT_SHARE

REST_SECONDS = 0.02
COUNT = "/api/v1/views?peek=1&id="
HISTORY = "/api/v1/views/history?days=400&id="


class Reader:
    """A reader of badges; the first is hot. Until `stop`, a thread reads them in any order."""

    def __init__(
        self, server: Server, seed: str, badge_ids: Sequence[str], recorder: Recorder
    ) -> None:
        self._server, self._badge_ids, self._recorder = server, badge_ids, recorder
        self._random = random.Random(f"{seed}/reader")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader")
        self._thread.start()

    def stop(self) -> None:
        """Wait for the responses to the requests under way."""
        self._stopping.set()
        self._thread.join()

    def read_all(self, kind: Kind, note: str) -> None:
        """Read each badge. Raises `OSError`, and `ValueError` for a count that is no number."""
        for badge_id in self._badge_ids:
            self._read(badge_id, kind, note)

    def _run(self) -> None:
        while not self._stopping.wait(REST_SECONDS):
            hot = self._random.random() < HOT_SHARE
            badge_id = self._badge_ids[0] if hot else self._random.choice(self._badge_ids)
            with suppress(OSError, ValueError):  # the server is down, or can't read its file
                self._read(badge_id, Kind.READ, "under load")

    def _read(self, badge_id: str, kind: Kind, note: str) -> None:
        """Read the history, and the count before and after it."""
        for route in (COUNT, HISTORY, COUNT):
            invoked = time.monotonic()
            body = json.loads(self._server.get(route + quote(badge_id, safe="")))
            ended, days = time.monotonic(), None
            if route is HISTORY:
                days = {one["day"]: one["views"] for one in body["views"] if one["views"]}
            shown = int(body["message"]) if days is None else sum(days.values())
            done = Outcome.ACKNOWLEDGED
            self._recorder.add(
                Operation(badge_id, kind, invoked, ended, done, shown, None, note, days)
            )
