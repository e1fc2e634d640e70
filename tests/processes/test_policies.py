"""The IAM policy of each function: it allows exactly what the function does.

The handlers run over moto through all their paths. The tests compare their requests to AWS, with
the partition keys in them, with the policies in both directions: a missing right or kind of items
fails a path, and an unused one fails the comparison. So each path must be walked here, but its
results are tested elsewhere.
"""

from __future__ import annotations

import io
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from app import app
from chalicelib.aws import pause_api
from chalicelib.aws.chalice_routes import authorize
from chalicelib.counting.view import View
from chalicelib.events.event import Event, Status, Target, TargetKind, key
from chalicelib.http import tokens
from chalicelib.owners.proving import LOOK_SECONDS
from chalicelib.storage.writes import Put, Update
from chalicelib.ulids import new_ulid
from chalicelib.wallets.wallet import Entry, Posting
from deploy.stage import FUNCTIONS as OF_CHALICE
from deploy.stage import Folder
from deploy.template import ALL_FEATURES
from simulation import aws_events as events
from simulation.aws_events import entry_record
from tests.processes.moto_functions import (
    DAY,
    MARK,
    NOBODY_LISTENS,
    NOW,
    Aws,
    Path,
    Used,
    of_function,
    walk,
)
from tests.processes.policies import (
    FUNCTIONS,
    OF_RESTORED,
    PUBLIC,
    QUEUE,
    READ_ALONE,
    granted,
    lambdas_own,
    leading_keys,
    resource_of,
    statements,
)
from vumi.tokens import TokenStore


def views(count: int, badge_id: str = "a", age: float = 0, **flags: bool) -> list[View]:
    return [View(badge_id, new_ulid(int((NOW - age) * 1000)), **flags) for _ in range(count)]


def put_on_every_path(aws: Aws) -> None:
    """Put young, in-between, old and hot views, of new and known windows, once and again."""
    for _ in range(2):
        aws.put(*views(2))
        aws.put(*views(30, first=False), *views(30, "b"))
        aws.put(*views(1, age=600))
        aws.put(*views(2, "old", age=900), *views(2, "old", hot=True))
    aws.now += DAY
    aws.put(*views(1, "old"))


def fold_on_every_path(aws: Aws) -> None:
    """Fold first, again, on another day, too early, and because a GET requests it."""
    aws.put(*views(3, "folded"))
    aws.now += 900
    aws.fold("folded", "b", "old")
    aws.fold("folded")
    aws.fold("folded", mark=MARK + 900)
    aws.now = NOW + DAY
    aws.put(*views(2, "folded", age=-DAY))
    aws.now += 900
    aws.put(*views(1, "folded", age=-DAY - 900, first=False, fold=True))


def archive_on_every_path(aws: Aws) -> None:
    alice, bob = new_ulid(int(NOW * 1000)), new_ulid(int(NOW * 1000))
    entry = Entry(new_ulid(int(NOW * 1000)), Posting("n", 1, bob, alice), int(NOW * 1000))
    for wallet_id in (alice, bob, bob):
        record = entry_record(entry, wallet_id, 1, arn=aws.stream)
        aws.run("archive_entries", events.stream_event([record]))


def pause_on_every_path(aws: Aws) -> None:
    """Switch the functions off and on, each alone, because moto does not support threads."""
    with aws.noting("pause_api"):
        for is_paused in (True, False):
            pause_api.switch(aws.clients["lambda"], PUBLIC, is_paused=is_paused, in_parallel=map)


def ask_on_every_path(aws: Aws) -> None:
    """Request a badge with few views, several pages, a hot badge, and a queue that refuses."""
    for method, body in {"PUT": {"reason": "spam"}, "GET": None, "DELETE": None}.items():
        aws.call(f"{method} /api/v1/bans", body, query={"pattern": "spammer/*"})
    aws.put(*views(30, "many"), *views(1, "hot", hot=True))
    for route in ("/api/v1/views", "/v1/api/views", "/api/v1/views.svg", "/s", "/s.png"):
        for method in ("GET", "HEAD"):
            aws.call(f"{method} {route}", query={"id": "a"})
    for route in (
        "/api/v1/views/counts",
        "/api/v1/views/history",
        "/api/v1/views/history.svg",
        "/api/v1/views/top",
        "/",
        "/own",
        "/count.js",
        "/logos.json",
        "/openapi.json",
    ):
        for method in ("GET", "HEAD"):
            aws.call(f"{method} {route}", query={"id": "a"} if "views" in route else None)
    for badge_id in ("b", "many", "hot"):
        aws.view(badge_id)
    aws.call("GET /healthz")
    aws.call("POST /api/v1/views", query={"id": ["me.example/", "me.example"]})
    aws.clients["sqs"].delete_queue(QueueUrl=aws.urls[QUEUE])
    for badge_id in ("a", "new", "hot", "hot"):
        aws.view(badge_id)
    aws.call("POST /api/v1/views", query={"id": "script"})


def own_on_every_path(aws: Aws) -> None:
    """Claim a badge, change it in every way, count by an alias, delete it with a day of history."""
    aws.put(*views(1, "mine"))
    aws.claim("mine")
    secret = aws.claim("my own", base=7)["secret"]
    aws.own("PATCH", "my own", "another", base=1)
    aws.own("PATCH", "my own", secret, base=1, frozen=True)
    aws.own("PATCH", "my own", secret, rename="renamed")
    aws.own("GET", "renamed", secret)
    for badge_id in ("renamed", "my own"):
        aws.view(badge_id)
    aws.now += DAY
    aws.put(*views(2, "renamed", age=-DAY), *views(2, "renamed", age=-DAY, hot=True))
    aws.now += DAY
    aws.fold("renamed", mark=MARK + DAY)
    aws.put(*views(1, "my own", age=-2 * DAY, hot=True))
    told = {
        "uniques": 1,
        "views": [{"timestamp": "2016-10-10T00:00:00Z", "count": 1, "uniques": 1}],
    }
    aws.call("PUT /api/v1/badges/traffic", {"views": told}, secret, query={"id": "renamed"})
    for show in ("visitors", "clones"):
        aws.view("renamed", show=show)
    aws.own("PATCH", "renamed", secret, reset=True)
    aws.own("DELETE", "renamed", secret)
    prove(aws, "mine/too")


def prove(aws: Aws, badge_id: str) -> None:
    """Prove a badge, look for its file again, and hand it over."""
    asked = aws.claim(badge_id, proof=True)
    for _ in range(2):
        aws.claim(badge_id, proof=asked["proof"])
    aws.now += LOOK_SECONDS
    aws.host.lines = [asked["challenge"]]
    secret = aws.claim(badge_id, proof=asked["proof"])["secret"]
    aws.own("PATCH", badge_id, secret, digest="0" * 64)


def schedule_on_every_path(aws: Aws) -> None:
    """Accept, repeat, read, list and cancel events of every target and route.

    One event is unknown and one is far ahead.
    """
    for token in (TokenStore(aws.table, lambda: NOW).create("admin"), tokens.new_token()):
        arn = "arn:aws:execute-api:us-east-1:123456789012:api/prod/POST/timers"
        event = {"type": "TOKEN", "methodArn": arn, "authorizationToken": f"Bearer {token}"}
        with aws.noting("authorize"):
            authorize(event, None)
    for event_id, target in (
        ("log", {"log": True}),
        ("url", {"url": NOBODY_LISTENS}),
        ("queue", {"queue": "orders"}),
    ):
        aws.accept(event_id, target)
        aws.accept(event_id, target)
    aws.accept("log", {"queue": "orders"})
    aws.accept("later", {"log": True}, at=NOW + 300)
    aws.accept("far", {"log": True}, at=NOW + DAY)
    parts = {"hours": 1, "minutes": 0, "seconds": 0, "url": NOBODY_LISTENS}
    timer = aws.call("POST /timers", parts)["id"]
    aws.call("GET /timers/{timer_id}", timer_id=timer)
    aws.call("POST /echoAtTime", "hello")
    for status in Status:
        aws.call("GET /api/v1/events", query={"status": status})
    one = "/api/v1/events/{event_id}"
    for route in ("GET", "DELETE", "DELETE"):
        aws.call(f"{route} {one}", event_id="far")
    for route in (f"{one}/badge", f"{one}/badge.svg"):
        for method in ("GET", "HEAD"):
            aws.call(f"{method} {route}", event_id="far")


def move_money_on_every_path(aws: Aws) -> None:
    """Open wallets, deposit, transfer, be refused, repeat, list and show; one is unknown."""
    path = "/api/v1/wallets"
    mine, other = (
        aws.call(f"POST {path}", {"user_id": f"6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d1{n}"})["id"]
        for n in range(2)
    )
    aws.call(f"POST {path}", {"user_id": "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d10"})
    one = f"{path}/{{wallet_id}}"
    transfer = f"PUT {one}/transfer/{{target_id}}"
    for _ in range(2):
        body = {"amount": "100", "nonce": "deposit-1"}
        aws.call(f"PUT {one}/deposit", body, wallet_id=mine)
        for nonce, amount in (("transfer-1", "30"), ("transfer-2", "99")):
            body = {"amount": amount, "nonce": nonce}
            aws.call(transfer, body, wallet_id=mine, target_id=other)
    body = {"amount": "1", "nonce": "transfer-3"}
    aws.call(transfer, body, wallet_id=mine, target_id=new_ulid(int(NOW * 1000)))
    aws.call(f"GET {path}/me", user="6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d10")
    aws.call(f"PATCH {one}", {"badge": True}, wallet_id=mine)
    for route in ("GET {}/balance", "GET {}/transactions", "GET {}/badge", "HEAD {}/badge"):
        aws.call(route.format(one), wallet_id=mine)
    for method in ("GET", "HEAD"):
        aws.call(f"{method} {one}/badge.svg", wallet_id=mine)


def reach_on_every_path(aws: Aws) -> None:
    """Reach milestones by a fold, by a view that is counted at once, and by a new base."""
    secret = aws.claim("goal")["secret"]
    aim = [{"count": count, "url": NOBODY_LISTENS} for count in (2, 3, 99)]
    aws.own("PATCH", "goal", secret, milestones=aim)
    aws.put(*views(2, "goal"))
    aws.now += 900
    aws.fold("goal")
    aws.put(*views(1, "goal", hot=True))
    aws.now = NOW
    aws.own("PATCH", "goal", secret, base=96)
    aws.own("PATCH", "goal", secret, digest="0" * 64)


def sweep_on_every_path(aws: Aws) -> None:
    """Sweep events that are due now, due soon and overdue, and again without new events."""
    aws.run("sweep_events", events.tick())
    missed = Event("missed", int(NOW * 1000) - 90_000, 0, Target(TargetKind.LOG), '""', "missed")
    aws.table.write(Put(missed.new_item()))
    for _ in range(2):
        aws.run("sweep_events", events.tick())
    aws.distribute()


def deliver_on_every_path(aws: Aws) -> None:
    """Fire to the log, a queue and a URL that fails until its last attempt; too early; unknown."""
    aws.deliver("missed", "log", "log", "queue", "url")
    aws.table.write(Update(key("url"), values={"next_at": 0}))
    aws.accept("died", {"log": True})
    aws.table.write(Update(key("died"), values={"tries": 2, "claim": "dead", "lease": 1}))
    aws.deliver("url", "died", "later", "none")


def refuse_batches(aws: Aws) -> None:
    """Let DynamoDB refuse a batch because of one item: then each item is put alone."""

    class Raw(io.BytesIO):
        def stream(self, **_: object) -> Iterator[bytes]:
            yield self.read()

    refusal = {"__type": "com.amazon.coral.validate#ValidationException", "message": "an item"}

    def refuse(request: Any, **_: object) -> AWSResponse:
        return AWSResponse(request.url, 400, HTTPHeaders(), Raw(json.dumps(refusal).encode()))

    register = aws.clients["dynamodb"].meta.events.register_first
    register("before-send.dynamodb.BatchWriteItem", refuse)
    aws.put(*views(1, "refused"))
    aws.view("refused")


OF_VIEWS = (
    pause_on_every_path,
    own_on_every_path,
    put_on_every_path,
    fold_on_every_path,
    ask_on_every_path,
)
OF_EVENTS = (
    schedule_on_every_path,
    sweep_on_every_path,
    deliver_on_every_path,
    reach_on_every_path,
)
OF_WALLETS = (move_money_on_every_path, archive_on_every_path)


@pytest.fixture(scope="module")
def by_path() -> dict[Path, Used]:
    """Return the requests of Chalice's functions on each path."""
    return walk(*OF_WALLETS, *OF_EVENTS, *OF_VIEWS, refuse_batches)


@pytest.fixture(scope="module")
def used(by_path: dict[Path, Used]) -> Used:
    """Return the requests of Chalice's functions, and of `get_views` from the one stack."""
    apart = walk(*OF_VIEWS, refuse_batches, has_get_views=True).values()
    of_get_views = {one for one in set[Any]().union(*apart) if one[0] == "get_views"}
    return of_get_views.union(*by_path.values())


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_may_do_what_it_does_to_its_kinds_of_items_and_nothing_else(
    used: Used, function: str, *, restored: bool
) -> None:
    """It may do the same to a restored table, and then no more to the old one."""
    moved = OF_RESTORED if restored else {}
    asked, items = (of_function(used, function, kind) for kind in ("rights", "keys"))
    assert asked
    assert granted(function, IsRestored=restored) == {
        "rights": {(one, moved.get(to, to)) for one, to in asked | lambdas_own(function)},
        "keys": {(moved.get(where, where), keys) for where, keys in items},
    }


@pytest.mark.parametrize(
    ("on", "paths"), [("", ()), ("HasEvents", OF_EVENTS), ("HasWallets", OF_WALLETS)]
)
def test_the_api_has_no_right_of_a_feature_that_is_switched_off(
    by_path: dict[Path, Used], on: str, paths: tuple[Path, ...]
) -> None:
    name, truths = "api_handler", {feature: feature == on for feature in ALL_FEATURES}
    used = set[Any]().union(*(by_path[path] for path in (*OF_VIEWS, *paths, refuse_batches)))
    assert granted(name, **truths) == {
        "rights": of_function(used, name, "rights") | lambdas_own(name),
        "keys": of_function(used, name, "keys"),
    }


@pytest.mark.parametrize("function", FUNCTIONS)
def test_all_statements_of_several_actions_on_the_table_name_the_same_keys(function: str) -> None:
    """AWS does not document which keys of a transaction belong to which of its actions."""
    patterns = defaultdict[str, set[tuple[str, ...]]](set)
    for statement in statements(function):
        keys = leading_keys(statement)
        if keys and (keys, statement["Action"]) not in READ_ALONE:
            patterns[resource_of(statement)].add(tuple(keys))
    assert all(len(found) <= 1 for found in patterns.values())


def test_every_route_of_the_api_is_called(used: Used) -> None:
    """Call a new route in the functions above, because it may need other rights."""
    routes = {(method, path) for path, methods in app.routes.items() for method in methods}
    assert of_function(used, "", "routes") == routes


def test_without_event_queues_the_statement_repeats_another_right() -> None:
    """IAM rejects a statement without a resource."""
    few, all_of_them = (granted("deliver_events", HasEventQueues=has) for has in (False, True))
    assert few["rights"] < all_of_them["rights"]


def test_chalice_uses_these_policies_unchanged() -> None:
    config = json.loads(Folder().config.read_text())
    assert config["autogen_policy"] is False
    used = {name: part["iam_policy_file"] for name, part in config["lambda_functions"].items()}
    assert used == {name: f"policies/{name}.json" for name in OF_CHALICE}
