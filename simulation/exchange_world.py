"""Installations with badges, events and wallets, made through the routes, and their answers.

An installation is exported and imported into another one. Both must then give the same answer to
every request, also after the same requests to both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import boto3
from moto import mock_aws

from chalicelib.api import TABLE
from chalicelib.counting.folding import BadgeFold
from chalicelib.counting.storing import store
from chalicelib.counting.view import Counting, View, Windows
from chalicelib.events.delivery import DeliveryTask, delivery_over
from chalicelib.http import query, tokens
from chalicelib.http.dispatch import dispatch
from chalicelib.http.messages import Request, Response
from chalicelib.settings import Settings
from chalicelib.storage.items import Item
from chalicelib.storage.messages import MalformedError
from chalicelib.units import Seconds
from simulation.aws_table import create_table
from simulation.clocks import Clock
from simulation.installation import MemoryInstallation
from simulation.resources import GivenResources
from simulation.storage import FakeArchive, FakeQueue
from vumi.operate.admin.installation import Installation
from vumi.operate.exchange import files
from vumi.operate.exchange.restoring import Restore, Restored, RestoreOutcome
from vumi.operate.installations.file import FileInstallation
from vumi.operate.installations.stack import StackInstallation
from vumi.settings import StandaloneSettings
from vumi.storage.database import FILE, Database
from vumi.storage.queue import SqliteQueue

TOKEN = "operators-token-of-these-tests"  # noqa: S105  no server knows it
USERS = [f"6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d1{n}" for n in range(3)]
IDS = ["a", "octocat/hello-world", 'ü, "1"', "d"]
NEW_NAMES = ["renamed", "renamed again"]
EVENTS = [f"event-{n}" for n in range(4)]
QUEUE = "mails"
SETTINGS = Settings(api_token_digests=frozenset({tokens.digest(TOKEN)}), event_queues={QUEUE: ""})


@dataclass
class Surroundings:
    """The facts that the clients of several installations share: secrets and wallets."""

    secrets: dict[str, str] = field(default_factory=dict)
    wallets: dict[str, str] = field(default_factory=dict)


@dataclass
class StoringQueue:
    """A `ViewQueue` that stores each view immediately, or sends it if it is held or fails."""

    installation: Installation
    is_holding: bool = False

    def send(self, *views: View) -> None:
        for view in views if self.is_holding else self.store(views):
            self.installation.views_queue.send(view.to_message())

    def store(self, views: Sequence[View]) -> set[View]:
        """Store views; return those that fail."""
        one = self.installation
        windows = Windows.of(one.settings)
        return set(store(Counting(one.table, windows, one.view_clock), views))


@dataclass
class ExchangeWorld:
    """An installation and its clients."""

    installation: Installation
    clock: Clock
    known: Surroundings = field(default_factory=Surroundings)
    mails: Any = field(default_factory=FakeQueue)
    has_held: bool = False

    def __post_init__(self) -> None:
        self.views = StoringQueue(self.installation)
        self.resources = GivenResources(
            table=self.installation.table,
            views_queue=self.views,
            delivery_queue=self.installation.delivery_queue,
            settings=self.installation.settings,
            clock=self.installation.view_clock,
            event_queues={QUEUE: self.mails},
        )

    def ask(self, method: str, target: str, body: object = None, token: str = TOKEN) -> Response:
        """Send a request to its route."""
        path, _, raw_query = target.partition("?")
        return dispatch(
            TABLE,
            Request(
                method,
                path,
                query=query.parse(raw_query),
                headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
                body=b"" if body is None else json.dumps(body).encode(),
            ),
            self.resources,
        )

    def visit(self, badge_id: str) -> None:
        """Take a view."""
        self.ask("GET", f"/api/v1/views?{urlencode({'id': badge_id})}")

    def shown(self, badge_id: str) -> int:
        """Return the count that a badge shows."""
        peeked = self.ask("GET", f"/api/v1/views?{urlencode({'id': badge_id})}&peek=1")
        return int(json.loads(peeked.body)["message"])

    def hold(self, badge_id: str) -> None:
        """Take a view whose message stays in the queue."""
        self.views.is_holding = self.has_held = True
        self.visit(badge_id)
        self.views.is_holding = False

    def wait(self, seconds: Seconds) -> None:
        """Move the clock."""
        self.clock.now += seconds

    def fold(self) -> None:
        windows = Windows.of(self.installation.settings)
        counting = Counting(self.installation.table, windows, self.installation.view_clock)
        for badge_id in sorted(set(self.installation.viewed_ids())):
            BadgeFold(counting, badge_id).fold_all()

    def deliver(self) -> None:
        """Deliver the messages of views in the file; those of views in between come again."""
        queue = self.installation.views_queue
        if not isinstance(queue, SqliteQueue):
            return
        messages = queue.receive(1_000)
        failed = self.views.store([View.from_message(one.body) for one in messages])
        queue.delete([one for one in messages if View.from_message(one.body) not in failed])

    def claim(self, badge_id: str) -> None:
        """Claim a badge with a secret of the owner's choice."""
        secret = f"secret-of-the-badge-{len(self.known.secrets)}-of-these-tests"
        body = {"id": badge_id, "digest": tokens.digest(secret)}
        if self.ask("POST", "/api/v1/badges", body).status < 300:
            self.known.secrets.setdefault(badge_id, secret)

    def change(self, badge_id: str, **wanted: object) -> None:
        secret = self.known.secrets.get(badge_id, "no-secret-of-any-badge-at-all")
        self.ask("PATCH", _badge(badge_id), wanted, secret)
        if "rename" in wanted:
            self.known.secrets.setdefault(str(wanted["rename"]), secret)

    def tell(self, badge_id: str, **told: object) -> Response:
        """Tell GitHub's numbers of a badge as its owner."""
        target = f"/api/v1/badges/traffic?{urlencode({'id': badge_id})}"
        return self.ask("PUT", target, told, self.known.secrets.get(badge_id, "x" * 30))

    def delete(self, badge_id: str) -> None:
        self.ask("DELETE", _badge(badge_id), None, self.known.secrets.get(badge_id, "x" * 30))

    def open_wallet(self, user: str) -> None:
        opened = self.ask("POST", "/api/v1/wallets", {"user_id": user})
        if opened.status == 200:
            self.known.wallets[user] = json.loads(opened.body)["id"]

    def deposit(self, user: str, amount: int, nonce: str) -> Response:
        """Deposit into a wallet."""
        to = self.known.wallets.get(user, "7" * 26)
        body = {"amount": str(amount), "nonce": nonce}
        return self.ask("PUT", f"/api/v1/wallets/{to}/deposit", body)

    def transfer(self, source: str, target: str, amount: int, nonce: str) -> Response:
        """Transfer from a wallet to another."""
        there = self.known.wallets
        path = f"{there.get(source, '7' * 26)}/transfer/{there.get(target, '7' * 26)}"
        return self.ask("PUT", f"/api/v1/wallets/{path}", {"amount": str(amount), "nonce": nonce})

    def publish(self, user: str) -> None:
        """Switch the badge of a wallet on."""
        self.ask("PATCH", f"/api/v1/wallets/{self.known.wallets.get(user, '')}", {"badge": True})

    def schedule(self, event_id: str, target: str, seconds: int) -> None:
        to: dict[str, object] = {"log": True} if target == "log" else {"queue": target}
        body = {"id": event_id, "payload": {"n": 1}, "delay": seconds, "target": to}
        self.ask("POST", "/api/v1/events", body)

    def cancel(self, event_id: str) -> None:
        self.ask("DELETE", f"/api/v1/events/{event_id}")

    def deliver_event(self, event_id: str) -> None:
        """Attempt an event, as a worker does, if it is due."""
        try:
            task = DeliveryTask(delivery_over(self.resources), event_id)
        except MalformedError:
            return
        task.claim()
        if task.is_claimed:
            task.attempt()
            task.settle()

    def answers(self) -> dict[str, tuple[int, bytes]]:
        """Return the answer to every request that only reads."""
        return {
            f"{target} {token[:6]}": (answer.status, answer.body)
            for target, token in self._list_reads()
            for answer in [self.ask("GET", target, token=token)]
        }

    def _list_reads(self) -> Iterator[tuple[str, str]]:
        for badge_id in [*IDS, *NEW_NAMES]:
            given = urlencode({"id": badge_id})
            yield f"/api/v1/views?{given}&peek=1", ""
            yield f"/api/v1/views.svg?{given}&peek=1", ""
            yield f"/v1/api/views?{given}&peek=1", ""
            for by in ("hour", "day", "week", "month"):
                yield f"/api/v1/views/history?{given}&by={by}", ""
            yield f"/api/v1/views/history.svg?{given}&with=visitors", ""
            yield f"/api/v1/views/counts?{given}&show=visitors", ""
            yield f"/api/v1/views/counts?{given}&show=clones", ""
            for secret in sorted({*self.known.secrets.values(), "x" * 30}):
                yield _badge(badge_id), secret
        yield "/api/v1/bans", TOKEN
        for status in ("ACTIVE", "SUCCESS", "ERROR", "CANCELLED"):
            yield f"/api/v1/events?status={status}", TOKEN
        for event_id in EVENTS:
            yield f"/api/v1/events/{event_id}", TOKEN
            yield f"/api/v1/events/{event_id}/badge", ""
            yield f"/timers/{event_id}", TOKEN
        for wallet_id in [*self.known.wallets.values(), "7" * 26]:
            for part in ("balance", "transactions", "badge"):
                yield f"/api/v1/wallets/{wallet_id}/{part}", TOKEN

    def items(self) -> list[Item]:
        return list(self.installation.items())


def _badge(badge_id: str) -> str:
    return f"/api/v1/badges/{quote(badge_id, safe='')}"


def export(installation: Installation) -> bytes:
    """Export everything."""
    file = BytesIO()
    with installation.open_source() as source:
        writer = files.LineWriter(file)
        list(files.export(source, installation.settings, installation.clock(), writer))
    return file.getvalue()


def restore(
    installation: Installation,
    exported: bytes,
    *,
    dry_run: bool = False,
    tokens: bool = True,
) -> list[Restored]:
    """Import an export."""
    file = files.read("FILE", BytesIO(exported))
    return list(Restore(installation, dry_run, tokens).run(file))


def outcomes(restored: Sequence[Restored]) -> set[RestoreOutcome]:
    """Return the outcomes of an import."""
    return {one.outcome for one in restored}


@contextmanager
def memory(clock: Clock, _: Path) -> Iterator[MemoryInstallation]:
    """Make an empty installation in memory, with the source of a stack."""
    queues = {QUEUE: FakeQueue()}
    yield MemoryInstallation(
        settings=SETTINGS, clock=clock, archive=FakeArchive(), event_queues={**queues}
    )


@contextmanager
def one_machine(clock: Clock, folder: Path) -> Iterator[FileInstallation]:
    """Make an empty file."""
    given = {"DATA": str(folder), "EVENT_QUEUES": QUEUE}
    settings = StandaloneSettings.from_environment(given)
    with closing(Database(folder / FILE)) as database:
        installation = FileInstallation(database, settings, clock)
        installation.settings = replace(
            installation.settings, api_token_digests=SETTINGS.api_token_digests
        )
        yield installation


class OneThread(StackInstallation):
    """A stack that is worked on by one thread, because moto is not safe for several."""

    map_parallel = staticmethod(map)  # type: ignore[assignment]
    sleep = staticmethod(lambda _: None)


@contextmanager
def stack(clock: Clock, _: Path) -> Iterator[StackInstallation]:
    """Make an empty stack on moto."""
    with ExitStack() as exits:
        exits.enter_context(mock_aws())
        create_table(boto3.client("dynamodb"), "vu-mi")
        boto3.client("s3").create_bucket(Bucket="vu-mi-archive")
        queue = boto3.client("sqs").create_queue
        yield OneThread(
            "vu-mi-prod",
            {
                "TableName": "vu-mi",
                "ArchiveBucket": "vu-mi-archive",
                "ViewsQueueUrl": queue(QueueName="views")["QueueUrl"],
                "DeliveryQueueUrl": queue(QueueName="deliveries")["QueueUrl"],
            },
            Settings(
                api_token_digests=SETTINGS.api_token_digests,
                event_queues={QUEUE: queue(QueueName=QUEUE)["QueueUrl"]},
            ),
            clock,
        )


ENGINES: dict[str, Callable[[Clock, Path], Any]] = {
    "memory": memory,
    "file": one_machine,
    "stack": stack,
}
