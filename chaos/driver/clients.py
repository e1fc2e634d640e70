"""The clients beside the visitors: one that reads badges, owners, and an attacker."""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import cycle
from urllib.parse import quote

from chalicelib.http.tokens import digest
from chaos.checker.history import Kind, Operation, Outcome, Recorder
from chaos.driver.server import HOST, PATIENCE_SECONDS, Server
from chaos.driver.visitors import HOT_SHARE
from chaos.repeating import Repeating
from simulation.attacks import READS, Attack

READ_SECONDS = 0.02
COUNT = "/api/v1/views?peek=1&id="
HISTORY = "/api/v1/views/history?days=400&id="
SECRET = "a secret of the owner's own"  # noqa: S105  of a badge that is soon deleted
DONE = (http.client.OK, http.client.CREATED, http.client.NO_CONTENT)
REST_SECONDS = (0.1, 1.5)
RETRY_SECONDS = 0.05
DELETIONS = 0.1
"""The share of the requests that delete a badge, which then has no owner."""
ATTACK_SECONDS, CALM_SECONDS = 3.0, 2.0


class Reader(Repeating):
    """A reader of badges; the first is hot. Until `stop`, a thread reads them in any order."""

    def __init__(
        self, server: Server, seed: str, badge_ids: Sequence[str], recorder: Recorder
    ) -> None:
        self._server, self._badge_ids, self._recorder = server, badge_ids, recorder
        self._random = random.Random(f"{seed}/reader")
        super().__init__(self._read_any, lambda: READ_SECONDS)

    def read_all(self, kind: Kind, note: str) -> None:
        """Read each badge. Raises `OSError`, and `ValueError` for a count that is no number."""
        for badge_id in self._badge_ids:
            self._read(badge_id, kind, note)

    def _read_any(self) -> None:
        hot = self._random.random() < HOT_SHARE
        badge_id = self._badge_ids[0] if hot else self._random.choice(self._badge_ids)
        with suppress(OSError, ValueError):  # the server is down, or can't read its file
            self._read(badge_id, Kind.READ, "under load")

    def _read(self, badge_id: str, kind: Kind, note: str) -> None:
        """Read the history, and the count before and after it."""
        for route in (COUNT, HISTORY, COUNT):
            invoked = time.monotonic()
            status, answer = self._server.request(route + quote(badge_id, safe=""))
            if status != http.client.OK:
                raise ConnectionError(f"{status}: {answer!r}")
            body = json.loads(answer)
            ended, days = time.monotonic(), None
            if route is HISTORY:
                days = {one["day"]: one["views"] for one in body["views"] if one["views"]}
            shown = int(body["message"]) if days is None else sum(days.values())
            done = Outcome.ACKNOWLEDGED
            self._recorder.add(
                Operation(badge_id, kind, invoked, ended, done, shown, None, note, days)
            )


class Owners(Repeating):
    """A thread that claims badges at its start, and resets or deletes them until `stop`.

    A client repeats each request until it succeeds. So the history has one operation from the first
    attempt to the answer, and the badge may have begun more than one life in it. `wrong` has the
    answers that are neither a success nor a temporary failure of the storage.
    """

    def __init__(
        self, server: Server, seed: str, badge_ids: Sequence[str], recorder: Recorder
    ) -> None:
        self.wrong: list[str] = []
        self._server = server
        self._random = random.Random(f"{seed}/owners")
        self._owned = list(badge_ids)
        self._recorder = recorder
        for badge_id in self._owned:
            self._ask("POST", "/api/v1/badges", {"id": badge_id, "digest": digest(SECRET)})
        super().__init__(self._end_a_life, lambda: self._random.uniform(*REST_SECONDS))

    def _end_a_life(self) -> None:
        badge_id = self._random.choice(self._owned)
        path = f"/api/v1/badges/{quote(badge_id, safe='')}"
        invoked = time.monotonic()
        if len(self._owned) > 1 and self._random.random() < DELETIONS:
            self._owned.remove(badge_id)
            done, note = self._ask("DELETE", path), "deleted"
        else:
            done, note = self._ask("PATCH", path, {"reset": True}), ""
        outcome = Outcome.ACKNOWLEDGED if done else Outcome.UNKNOWN
        ended = time.monotonic()
        operation = Operation(badge_id, Kind.RESET, invoked, ended, outcome, note=note)
        self._recorder.add(operation)

    def _ask(self, method: str, path: str, body: object = None) -> bool:
        """Repeat a request until it succeeds; return whether that was in time."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                given = json.dumps(body) if body else None
                status, said = self._server.request(path, method, given, SECRET)
            except OSError:
                status, said = http.client.SERVICE_UNAVAILABLE, b""
            if status in DONE:
                return True
            if status != http.client.SERVICE_UNAVAILABLE:
                self.wrong.append(f"{method} {path}: {status} {said!r}")
                return False
            time.sleep(RETRY_SECONDS)
        return False


class Attacker(Repeating):
    """A thread that attacks with rests until `stop`; `number` counts its attacks.

    They count nothing, so the checker expects of the counts what it expects without them.
    """

    def __init__(self, port: int, seed: str) -> None:
        self.number = 0
        self._address = HOST, port
        self._names = cycle(random.Random(f"{seed}/attacks").sample(list(READS), len(READS)))
        super().__init__(self._attack, lambda: CALM_SECONDS)

    def _attack(self) -> None:
        self.number += 1
        with Attack(*self._address, next(self._names), ATTACK_SECONDS).start() as attack:
            attack.wait()
