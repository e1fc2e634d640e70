"""A client of vu-mi's wallets that repeats requests until it has an answer.

The nonce of a posting makes it safe: vu-mi applies a posting once, and every repetition of the
request gets the answer of the first.
"""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

TIMEOUT_SECONDS = 10
FIRST_WAIT_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 20.0
CLIENT_ERRORS, CONFLICT = 400, 409
REPEATED = {408, 429, 500, 502, 503, 504}
"""The statuses after which the same request may succeed later."""


class RefusedError(Exception):
    """The answer is 409: no money moved. The nonce keeps this answer for ever.

    `code` is `insufficient_funds`, `balance_limit` or `wallet_exists`.
    """

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error.get("message"))
        self.code, self.details = error.get("code"), error


class WrongRequestError(Exception):
    """The request is wrong, and so is its repetition. 422: another request had the nonce."""


class NoAnswerError(Exception):
    """It is unknown whether the money moved. Send the same request with the same nonce later."""


@dataclass(frozen=True)
class Wallets:
    """The wallets of the vu-mi at `url`, opened by an operator's `token`."""

    url: str
    token: str
    attempts: int = 8
    sleep: Callable[[float], object] = time.sleep
    random: Callable[[], float] = random.random

    def open(self, user_id: str) -> str:
        """Return the id of a user's wallet, which is opened if there is none."""
        try:
            opened = self._ask("POST", "", {"user_id": user_id})
        except RefusedError as refused:
            if refused.code != "wallet_exists":
                raise
            opened = refused.details  # also if the answer to the first attempt was lost
        return str(opened["id"])

    def deposit(self, wallet: str, amount: int, nonce: str) -> None:
        """Add millionths to a wallet, once for each nonce."""
        self._ask("PUT", f"/{wallet}/deposit", {"amount": str(amount), "nonce": nonce})

    def transfer(self, source: str, target: str, amount: int, nonce: str) -> None:
        """Move millionths between wallets, once for each nonce of the source."""
        body = {"amount": str(amount), "nonce": nonce}
        self._ask("PUT", f"/{source}/transfer/{target}", body)

    def balance(self, wallet: str) -> int:
        """Return the millionths in a wallet."""
        return int(self._ask("GET", f"/{wallet}/balance")["balance"])

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request until it is answered, and return the answer."""
        for attempt in range(self.attempts):
            try:
                status, least, text = self._send(method, path, body)
            except (OSError, http.client.HTTPException):  # lost, before or after it was applied
                least = ""
            else:
                if status not in REPEATED:
                    return _read(status, text)
            if attempt < self.attempts - 1:
                self.sleep(self._wait(attempt, least))
        raise NoAnswerError(f"{method} {path}: no answer after {self.attempts} attempts")

    def _send(self, method: str, path: str, body: object) -> tuple[int, str, bytes]:
        """Return the status, `Retry-After` and the body of the answer to one request."""
        request = urllib.request.Request(
            f"{self.url}/api/v1/wallets{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            answer = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return answer.status, answer.headers.get("Retry-After", ""), answer.read()

    def _wait(self, attempt: int, least: str) -> float:
        """Return up to twice as many seconds as before, at random, after those of `Retry-After`.

        Clients that failed together come back one by one.
        """
        longest: float = min(FIRST_WAIT_SECONDS * 2**attempt, LONGEST_WAIT_SECONDS)
        return (int(least) if least.isdecimal() else 0) + longest * self.random()


def _read(status: int, text: bytes) -> Any:
    """Return the answer of a success. Raises `RefusedError` and `WrongRequestError`."""
    if status == CONFLICT:
        raise RefusedError(json.loads(text)["error"])
    if status >= CLIENT_ERRORS:
        raise WrongRequestError(f"{status}: {text.decode(errors='replace')}")
    return json.loads(text or "null")
