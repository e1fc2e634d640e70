"""The examples, run as they stand: a workflow, a receiver of webhooks and a shop."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml
from shop import Shop
from wallets import Wallets

from chalicelib.events.sender import Signer, new_secret
from chalicelib.http.tokens import digest
from simulation.environment import ROOT
from simulation.loopback import Answer, SilentHandler, answering, serving
from simulation.server_process import ServerProcess, killed, request
from tests.processes.programs import (
    PATIENCE_SECONDS,
    TOKEN,
    WITH_TOKEN,
    Server,
    running,
    succeed,
    until,
)

# ---- the workflow, against a GitHub and vu-mi here

WORKFLOW = ROOT / "examples" / "github-traffic" / "traffic.yml"
SAMPLE = ROOT / "tests" / "unit" / "pages" / "github_traffic.json"
NAME = "octocat/hello"
SECRETS = {"TRAFFIC_TOKEN": "github_pat_of_these_tests", "VUMI_SECRET": "secret-of-these-tests-01"}
PROGRAMS = {
    "gh": '[ "$1" = api ] && exec curl -sf -H "Authorization: Bearer $GH_TOKEN" "$API/$2"',
    "sleep": 'echo "$1" >>"$RUNNER_TEMP/slept"',
}
"""Stand-ins for programs of a runner: GitHub's own, and the clock."""


@dataclass
class World:
    """A GitHub that answers from the sample, and a way to vu-mi; each may fail some times."""

    server: Server
    failures: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def respond(self, request: SilentHandler) -> Answer:
        method, target = request.command, request.path
        bearer, body = request.headers["Authorization"], request.read().decode()
        self.asked.append(f"{method} {target}")
        if self.failures.get(method, 0):
            self.failures[method] -= 1
            return 503, b"", {}
        if method == "PUT":
            status, _, reply = self.server.request(target, method, body, {"Authorization": bearer})
            return status, reply, {}
        if bearer != f"Bearer {SECRETS['TRAFFIC_TOKEN']}":
            return 401, b"", {}
        [kind] = re.findall(f"^/repos/{NAME}/traffic/(views|clones)$", target)
        return 200, json.dumps(json.loads(SAMPLE.read_text())[kind]).encode(), {}


def run_steps(folder: Path, url: str) -> str:
    """Run the steps of the workflow as a runner does; return what the last one prints."""
    for name, script in PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    [job] = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    known = {f"secrets.{name}": secret for name, secret in SECRETS.items()}
    known["github.repository"] = NAME
    runner = {"PATH": f"{folder}:{os.environ['PATH']}", "GITHUB_REPOSITORY": NAME, "API": url}
    for step in job["steps"]:
        given = {
            name: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], value)
            for name, value in {**job["env"], **step["env"], "VUMI": url}.items()
        }
        own = runner | given | {"RUNNER_TEMP": str(folder)}
        printed = succeed("/bin/bash", "-e", "-c", step["run"], env=own)
    return printed


@pytest.mark.parametrize("failures", [{}, {"GET": 2, "PUT": 1}], ids=["well", "with retries"])
def test_the_workflow_tells_what_github_told(tmp_path: Path, failures: dict[str, int]) -> None:
    with running(tmp_path / "data") as server:
        claim = json.dumps({"id": NAME, "digest": digest(SECRETS["VUMI_SECRET"])})
        assert server.request("/api/v1/badges", "POST", claim)[0] == 201
        world = World(server, {**failures})
        with answering(world.respond) as url:
            printed = run_steps(tmp_path, url)
        assert json.loads(printed.splitlines()[-1])["days"] == {"views": 15, "clones": 15}
        badge = server.request(f"/api/v1/views?id={NAME}&show=clones&peek=1")[2]
        assert json.loads(badge)["message"] == "173"
        assert world.asked[-1] == "PUT /api/v1/badges/traffic?id=octocat%2Fhello"
        assert len(world.asked) == 3 + sum(failures.values())


# ---- the receiver, with webhooks of a real server and with forged ones

PROGRAM = ROOT / "examples" / "webhook-receiver" / "receiver.py"
OLD, NEW = new_secret(), new_secret()
SETTINGS = WITH_TOKEN | {
    "WEBHOOK_ALLOW": "127.0.0.0/8",
    "WEBHOOK_SECRETS": NEW,
    "RETRY_SECONDS": "1",
}
BODY = b'{"n":1}'
STORED, REFUSED, TOO_LONG = 204, 401, 413


class Receiver(ServerProcess):
    """A running receiver. Its lines say which webhooks it has handled."""

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().rstrip("\n")

    def post(self, headers: Mapping[str, str], body: bytes = BODY) -> int:
        return request((self.host, self.port), "/", "POST", body, headers)[0]

    def sign(self, webhook_id: str, secret: str = NEW, age: int = 0, body: bytes = BODY) -> int:
        """Post a webhook that was signed some seconds ago."""
        headers = Signer([secret]).headers(webhook_id, int(time.time()) - age, body)
        return self.post(headers, body)


@contextmanager
def receiving(inbox: Path) -> Iterator[Receiver]:
    """Run a receiver that knows both secrets, and kill it at the end."""
    own = {"WEBHOOK_SECRETS": f"{NEW},{OLD}", "PORT": "0", "INBOX": str(inbox)}
    process = subprocess.Popen(  # noqa: S603  a program of this project
        [sys.executable, str(PROGRAM)],
        env=os.environ | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with killed(process):
        yield Receiver(process)


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with receiving(tmp_path_factory.mktemp("inbox") / "inbox.db") as started:
        yield started


def test_an_event_is_accepted_at_its_first_attempt_and_handled(
    tmp_path: Path, receiver: Receiver
) -> None:
    target = {"url": receiver.url}
    wanted = {"delay": 0, "target": target, "payload": {"say": "Grüße"}, "id": "hello"}
    with running(tmp_path, **SETTINGS) as server:
        assert server.ask("POST", "/api/v1/events", wanted, TOKEN)[0] == 201
        assert receiver.line() == 'hello: {"say": "Gr\\u00fc\\u00dfe"}'

        def ended() -> Any:
            event = server.ask("GET", "/api/v1/events/hello", token=TOKEN)[1]
            return event["status"] != "ACTIVE" and event

        event = until(ended)
    [attempt] = event["attempts"]
    assert (event["status"], attempt["status"]) == ("SUCCESS", STORED)


def test_what_is_forged_old_or_malformed_is_refused_and_not_handled(receiver: Receiver) -> None:
    now = int(time.time())
    signed = Signer([NEW]).headers("forged", now, BODY)
    assert receiver.sign("another-secret", new_secret()) == REFUSED
    assert receiver.post(signed, b'{"n":2}') == REFUSED
    assert receiver.post(signed | {"webhook-id": "other"}) == REFUSED
    assert receiver.sign("old", age=301) == REFUSED
    assert receiver.sign("ahead", age=-330) == REFUSED
    assert receiver.post({}) == REFUSED
    for signature in ("v1", "v1,=", "v1,é", "v2,AAAA", "v1," + "A" * 44):
        encoded = {"webhook-signature": signature.encode().decode("latin-1")}
        assert receiver.post(signed | encoded) == REFUSED
    assert receiver.sign("binary", body=b"\xff") == REFUSED
    assert receiver.post({"Content-Length": "99999999999"}) == TOO_LONG
    assert receiver.sign("genuine") == STORED
    assert receiver.line() == 'genuine: {"n": 1}'


def test_after_a_kill_a_webhook_is_handled_if_it_was_not_before(tmp_path: Path) -> None:
    """The handler fails at the webhook, whose body is no JSON, until it is mended."""
    inbox = tmp_path / "inbox.db"
    with receiving(inbox) as receiver, closing(sqlite3.connect(inbox)) as database:
        assert [receiver.sign("broken", body=b"{"), receiver.sign("whole")] == [STORED, STORED]
        assert receiver.line() == 'whole: {"n": 1}'
        waiting = "SELECT id FROM inbox WHERE NOT handled"
        until(lambda: list(database.execute(waiting)) == [("broken",)])
        with database:
            database.execute("UPDATE inbox SET body = ? WHERE NOT handled", (BODY,))
        receiver.process.kill()
        receiver.process.wait(PATIENCE_SECONDS)
    with receiving(inbox) as receiver:
        assert receiver.line() == 'broken: {"n": 1}'
        assert [receiver.sign("whole"), receiver.sign("last")] == [STORED, STORED]
        assert receiver.line() == 'last: {"n": 1}'


# ---- the shop, whose books are exact, whatever is lost between it and the server

FAULTS = ("cut before", "cut after", "cut within", "503", "429", "502 after")
SEED = 1
KILL_AT = 60
"""The request with which the server is killed."""
CUSTOMERS, ORDERS, DEPOSIT = 4, 40, 10_000
HEADERS = ("Authorization", "Content-Type")


@dataclass
class Road:
    """The way to a server, on which a request or its answer is lost by a chance from a seed."""

    server: Server
    chance: random.Random
    restart: Callable[[], Server] | None = None
    asked: int = 0
    happened: Counter[str] = field(default_factory=Counter)

    def next_fault(self) -> str:
        """Return the fault of the next request, or an empty text for two of five."""
        self.asked += 1
        if self.restart and self.asked == KILL_AT:
            fault = "kill"
        elif self.chance.random() < 0.6:
            fault = self.chance.choice(FAULTS)
        else:
            fault = ""
        self.happened[fault] += 1
        return fault

    def kill_with(self, request: Callable[[http.client.HTTPConnection], None]) -> None:
        """Kill the server when it may have the request or not, and start it again."""
        connection = http.client.HTTPConnection(self.server.host, self.server.port)
        request(connection)
        self.server.process.kill()
        self.server.process.wait(PATIENCE_SECONDS)
        connection.close()
        assert self.restart
        self.server = self.restart()


class Proxy(SilentHandler):
    """A proxy on this road, for one request at a time. A cut closes the connection."""

    def __init__(self, road: Road, *arguments: object) -> None:
        self.road = road
        super().__init__(*arguments)  # type: ignore[arg-type]  # as the host passes them on

    def do_GET(self) -> None:
        road, fault = self.road, self.road.next_fault()
        body = self.read()
        headers = {name: self.headers[name] for name in HEADERS if name in self.headers}
        if fault == "kill":
            road.kill_with(lambda server: server.request(self.command, self.path, body, headers))
        elif fault in {"503", "429"}:
            self.reply(int(fault), Retry_After="2")
        elif fault != "cut before":
            status, _, answer = road.server.request(
                self.path, self.command, body.decode() or None, headers
            )
            if fault == "502 after":
                self.reply(502, b"<h1>Bad Gateway</h1>")
            elif fault != "cut after":
                missing = fault == "cut within"
                self.reply(status, answer, Content_Length=str(len(answer) + missing))

    do_POST = do_PUT = do_GET


def wallets(port: int, attempts: int) -> Wallets:
    """Return a client on the road, whose waits are not waited."""
    chance = random.Random(1).random  # noqa: S311  nothing to guess
    return Wallets(f"http://127.0.0.1:{port}", TOKEN, attempts, lambda _: None, chance)


def journal(server: Server, wallet: str) -> Iterator[int]:
    """Yield the amounts of the entries of a wallet."""
    page = {"cursor": ""}
    while "cursor" in page:
        path = f"/api/v1/wallets/{wallet}/transactions?cursor={page['cursor']}"
        page = server.ask("GET", path, token=TOKEN)[1]
        yield from (int(entry["amount"]) for entry in page["transactions"])


def test_after_lost_answers_and_a_kill_the_books_are_exact(tmp_path: Path) -> None:
    """The server is killed once, and the client gives up early, so that orders wait."""
    chance = random.Random(SEED)  # noqa: S311  nothing to guess
    with ExitStack() as stack:
        start = partial(running, tmp_path, **WITH_TOKEN)
        road = Road(stack.enter_context(start()), chance)
        road.restart = lambda: stack.enter_context(start())
        port = stack.enter_context(serving(partial(Proxy, road)))
        books = stack.enter_context(sqlite3.connect(":memory:"))
        patient, hasty = (wallets(port, attempts) for attempts in (50, 2))
        till, *customers = (patient.open(str(UUID(int=n))) for n in range(CUSTOMERS + 1))
        for wallet in customers * 2:  # the bank reports each payment twice
            patient.deposit(wallet, DEPOSIT, nonce=f"bank-{wallet}")
        shop = Shop(books, hasty, till)
        prices = {
            shop.order(chance.choice(customers), price := chance.randint(1, 3_000)): price
            for _ in range(ORDERS)
        }
        rounds = 0
        while any(shop.state(order_id) == "new" for order_id in prices):
            shop.settle()
            rounds += 1
        direct = Wallets(road.server.url.rstrip("/"), TOKEN, attempts=1)
        paid = [order_id for order_id in prices if shop.state(order_id) == "paid"]
        balances = [direct.balance(wallet) for wallet in (till, *customers)]
        assert sum(balances) == CUSTOMERS * DEPOSIT
        assert balances[0] == sum(prices[order_id] for order_id in paid)
        assert sorted(journal(road.server, till)) == sorted(prices[order_id] for order_id in paid)
    assert rounds > 1
    assert 0 < len(paid) < ORDERS
    assert set(road.happened) == {"", "kill", *FAULTS}
