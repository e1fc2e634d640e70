"""A receiver of vu-mi's webhooks: verifies each one, stores it once, answers, and then handles it.

WEBHOOK_SECRETS=whsec_… python receiver.py
"""

from __future__ import annotations

import json
import os
import sqlite3
import traceback
from collections.abc import Sequence
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

MAX_BYTES = 256 * 1024
"""A payload of vu-mi has at most 64 KiB."""
RETRY_SECONDS = 60
"""The wait before a webhook whose handling failed is handled again."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS inbox (
    id TEXT PRIMARY KEY,
    body BLOB NOT NULL,
    received INTEGER NOT NULL DEFAULT (strftime('%s', 'now')),
    handled INTEGER NOT NULL DEFAULT 0
)
"""
WAITING = "SELECT id, body FROM inbox WHERE NOT handled ORDER BY rowid"
FORGET = "DELETE FROM inbox WHERE handled AND received < strftime('%s', 'now') - 40 * 86400"
"""vu-mi delivers no event again that ended more than 30 days ago."""


def handle(database: sqlite3.Connection, webhook_id: str, payload: Any) -> None:
    """Act on a webhook: replace this by your own code.

    Writes to `database` happen exactly once. Any other effect, such as a mail, may happen again if
    the process is killed before the end.
    """
    del database
    match payload:
        case {"type": "badge.milestone", "data": {"id": badge, "milestone": number}}:
            print(f"{webhook_id}: {badge} has {number} views", flush=True)
        case _:
            print(f"{webhook_id}: {json.dumps(payload)}", flush=True)


def is_genuine(body: bytes, headers: dict[str, str], webhooks: Sequence[Webhook]) -> bool:
    """Return whether one of the secrets signed these bytes within the last five minutes."""
    for webhook in webhooks:
        try:
            webhook.verify(body, headers, json_parse=False)
        except (WebhookVerificationError, ValueError):  # ValueError: the header is no signature
            continue
        return True
    return False


class Inbox:
    """The received webhooks in an SQLite file, each of them once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.arrived = Event()
        with closing(self.connect()) as database, database:
            database.execute(SCHEMA)

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path)

    def put(self, webhook_id: str, body: bytes) -> None:
        """Store a webhook on the disk, unless it was stored before."""
        with closing(self.connect()) as database, database:
            database.execute(
                "INSERT OR IGNORE INTO inbox (id, body) VALUES (?, ?)", (webhook_id, body)
            )
        self.arrived.set()

    def work(self) -> None:
        """Handle the stored webhooks, and those that arrive, for ever."""
        with closing(self.connect()) as database:
            while True:
                self.arrived.clear()
                try:
                    for webhook_id, body in database.execute(WAITING).fetchall():
                        self.handle_once(database, webhook_id, body)
                    with database:
                        database.execute(FORGET)
                except sqlite3.Error:  # such as a full disk
                    traceback.print_exc()
                self.arrived.wait(RETRY_SECONDS)

    def handle_once(self, database: sqlite3.Connection, webhook_id: str, body: bytes) -> None:
        """Handle a webhook and mark it, in one transaction; after an error, keep it for later."""
        try:
            with database:
                handle(database, webhook_id, json.loads(body))
                database.execute("UPDATE inbox SET handled = 1 WHERE id = ?", (webhook_id,))
        except Exception:  # noqa: BLE001  one bad webhook must not stop the others
            traceback.print_exc()


class Receiver(BaseHTTPRequestHandler):
    """Answers each POST: 204 if it is stored, 401 if it is not from vu-mi."""

    timeout = 10  # seconds without a byte of the sender
    inbox: Inbox
    webhooks: Sequence[Webhook]

    def do_POST(self) -> None:
        self.send_response(self.receive())
        self.send_header("Content-Length", "0")
        self.end_headers()

    def receive(self) -> int:
        """Return the status. vu-mi sends a webhook again after every status but 2xx and 410."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal() and int(length) <= MAX_BYTES):
            return 413  # too long, or of unknown length
        body = self.rfile.read(int(length))  # the signature is of these bytes: parse them later
        if not is_genuine(body, dict(self.headers), self.webhooks):
            return 401
        self.inbox.put(self.headers["webhook-id"], body)
        return 204


def main() -> None:
    """Serve on a port of this machine."""
    Receiver.webhooks = [Webhook(secret) for secret in os.environ["WEBHOOK_SECRETS"].split(",")]
    Receiver.inbox = Inbox(Path(os.environ.get("INBOX", "inbox.db")))
    with ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver) as host:
        print(f"listening on http://127.0.0.1:{host.server_port}/", flush=True)
        Thread(target=Receiver.inbox.work, daemon=True).start()
        host.serve_forever()


if __name__ == "__main__":
    main()
