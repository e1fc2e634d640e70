"""Owners of some badges: a thread that resets them, and deletes a few, while visitors come.

A client repeats each request until it succeeds. So the history has one operation from the first
attempt to the answer, and the badge may have begun more than one life in it.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Sequence
from urllib.parse import quote

from chalicelib.http.tokens import digest
from chaos.checker.history import Kind, Operation, Outcome, Recorder

SECRET = "a secret of the owner's own"  # noqa: S105  of a badge that is soon deleted
DIGEST = digest(SECRET)
DONE = (http.client.OK, http.client.CREATED, http.client.NO_CONTENT)
REST_SECONDS = (0.1, 1.5)
RETRY_SECONDS = 0.05
PATIENCE_SECONDS = 60.0
"""Longer than any request takes, so none is under way when its client repeats it."""
DELETIONS = 0.1
"""The share of the requests that delete a badge, which then has no owner."""


class Owners:
    """A thread that claims badges at its start, and changes them until `stop`.

    `wrong` has the answers that are neither a success nor a temporary failure of the storage.
    """

    def __init__(
        self, host: str, port: int, seed: str, badge_ids: Sequence[str], recorder: Recorder
    ) -> None:
        self.wrong: list[str] = []
        self._address = host, port
        self._random = random.Random(f"{seed}/owners")
        self._owned = list(badge_ids)
        self._recorder = recorder
        self._stopping = threading.Event()
        for badge_id in self._owned:
            self._ask("POST", "/api/v1/badges", {"id": badge_id, "digest": DIGEST})
        self._thread = threading.Thread(target=self._run, name="owners")
        self._thread.start()

    def stop(self) -> None:
        """Wait for the answer to the request under way, and begin no other."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._random.uniform(*REST_SECONDS)):
            self._end_a_life()

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
                status, said = self._once(method, path, json.dumps(body) if body else None)
            except (OSError, http.client.HTTPException):
                status, said = http.client.SERVICE_UNAVAILABLE, b""
            if status in DONE:
                return True
            if status != http.client.SERVICE_UNAVAILABLE:
                self.wrong.append(f"{method} {path}: {status} {said!r}")
                return False
            time.sleep(RETRY_SECONDS)
        return False

    def _once(self, method: str, path: str, body: str | None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*self._address, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {SECRET}"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()
