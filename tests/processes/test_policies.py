"""The IAM policy of each function: it allows exactly what the function does.

The handlers run over moto through all their paths. The tests compare their requests to AWS, with
the partition keys in them, with the policies in both directions: a missing right or kind of items
fails a path, and an unused one fails the comparison. So each path must be walked here, but its
results are tested elsewhere.
"""

from __future__ import annotations

import io
import json
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlencode

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from moto import mock_aws

from app import app
from chalicelib.aws import consumers, get_views, pause_api, resources
from chalicelib.aws.authorizer import authorize
from chalicelib.aws.clients import aws_client
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.aws.s3 import S3Archive
from chalicelib.aws.sqs import SqsQueue
from chalicelib.counting import keys
from chalicelib.counting.bans import TimedBans
from chalicelib.counting.view import View, ViewMessages
from chalicelib.events.event import Event, Status, Target, TargetKind, key, message
from chalicelib.events.webhook_schedule import EventSchedule
from chalicelib.events.webhooks import signing
from chalicelib.events.webhooks.sender import sender_of
from chalicelib.http import tokens
from chalicelib.http.messages import Caller, Role
from chalicelib.owners.proving import LOOK_SECONDS
from chalicelib.settings import Settings
from chalicelib.storage.writes import Put, Update
from chalicelib.ulids import new_ulid
from chalicelib.wallets.wallet import Entry, Posting
from deploy.completion import FUNCTIONS as OF_CHALICE
from deploy.conditions import ALL_FEATURES, choose
from deploy.http_api import APART
from deploy.stage import Folder
from simulation import aws_events as events
from simulation.aws_events import entry_record
from simulation.aws_table import create_table
from simulation.hosts import Host
from simulation.resources import GivenResources
from vumi.tokens import TokenStore

FUNCTIONS = [*OF_CHALICE, *APART.values()]
NOW = 1_767_225_600.0
MARK = 1_767_225_900
"""The end of the window that begins now."""
DAY = 86_400
BUCKET = "vu-mi-archive"

Right: TypeAlias = tuple[str, str]
"""An action and its resource: a name of the template, or a text with such names in it."""
Keys: TypeAlias = tuple[str, str]
"""The table or its index, and the pattern of IAM for a kind of its partition keys."""

TABLE, STREAM, STREAMS = "Table.Arn", "Table.StreamArn", "${Table.Arn}/stream/*"
INDEX = "${Table.Arn}/index/due"
QUEUE, DELIVERY_QUEUE, DISTRIBUTION_QUEUE = (
    f"{name}.Arn" for name in ("ViewsQueue", "DeliveryQueue", "DistributionQueue")
)
EVENT_QUEUES = "EventQueueArns"
"""The queues that the operator has listed for events: a parameter of the stack."""
QUEUES = {QUEUE, DELIVERY_QUEUE, DISTRIBUTION_QUEUE, EVENT_QUEUES}
ARCHIVE = "${Archive.Arn}/journal/*"
"""The objects of the archive, and no others of its bucket."""
PUBLIC = {name: f"{name}.Arn" for name in ("GetViews", "APIHandler", "Authorize")}
"""The functions that the public reaches, by their names here."""
RESTORED = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${RestoredTable}"
OF_RESTORED = {
    TABLE: RESTORED,
    INDEX: f"{RESTORED}/index/due",
    **dict.fromkeys((STREAM, STREAMS), f"{RESTORED}/stream/*"),
}
"""The resources of a restored table, which is not the template's, by those of the template."""
READ_ALONE = [(["TOKEN#*"], ["dynamodb:GetItem"]), (["BANS"], ["dynamodb:Query"])]
"""The keys and the actions of statements about items that no transaction has."""
LOG = (
    "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}"
    ":log-group:/aws/lambda/${AWS::StackName}-"
)
CONSUMED = {
    "put_views": QUEUE,
    "distribute_events": DISTRIBUTION_QUEUE,
    "deliver_events": DELIVERY_QUEUE,
}

ITEMS = "BatchGetItem BatchWriteItem DeleteItem GetItem PutItem Query UpdateItem"
SINGLE = {f"dynamodb:{name}" for name in ITEMS.split()} | {
    "lambda:DeleteFunctionConcurrency",
    "lambda:PutFunctionConcurrency",
    "s3:PutObject",
    "sqs:SendMessage",
}
"""Operations that require the action of the same name.

Source: the service authorization reference, "Actions, resources, and condition keys".
"""
BATCHES = {"SendMessageBatch": "sqs:SendMessage"}
"""Operations that require another action.

Source: the SQS developer guide, "Amazon SQS API permissions: Actions and resource reference".
"""
TRANSACTED = {
    "ConditionCheck": "dynamodb:ConditionCheckItem",
    "Delete": "dynamodb:DeleteItem",
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
}
"""The actions that a transaction requires for its writes.

Source: the DynamoDB developer guide, "Using IAM with DynamoDB transactions".
"""


def lambdas_own(function: str) -> set[Right]:
    """Return the rights that Lambda itself needs: to read the function's events and write its log.

    Sources: the SQS developer guide, "Configuring an Amazon SQS queue to trigger an AWS Lambda
    function"; the DynamoDB developer guide, "IAM policy to allow an AWS Lambda function to access
    DynamoDB stream records"; the Lambda developer guide, "Sending Lambda function logs to
    CloudWatch Logs". The stack makes the log group, so the function does not have to.
    """
    own = {(f"logs:{name}", f"{LOG}{function}:*") for name in ("CreateLogStream", "PutLogEvents")}
    if queue := CONSUMED.get(function):
        receiving = ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
        own |= {(f"sqs:{name}", queue) for name in receiving}
    if function in {"fold_views", "archive_entries"}:
        reading = ("DescribeStream", "GetRecords", "GetShardIterator")
        own |= {(f"dynamodb:{name}", STREAM) for name in reading}
        own.add(("dynamodb:ListStreams", STREAMS))
    return own


def statements(function: str, **truths: bool) -> list[dict[str, Any]]:
    """Return the statements of a policy, by default with all features and queues of events."""
    written = json.loads(Folder().policy(function).read_text())
    decided = {**ALL_FEATURES, "IsRestored": False, "HasEventQueues": True, **truths}
    chosen = choose(written, decided)
    assert {part["Effect"] for part in chosen["Statement"]} == {"Allow"}
    return list(chosen["Statement"])


def resource_of(statement: Mapping[str, Any]) -> str:
    match statement["Resource"]:
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"{name}.{attribute}"
        case {"Fn::Sub": str(text)} | {"Ref": str(text)}:
            return text
    raise AssertionError(f"a policy must name its resource, not {statement['Resource']!r}")


def leading_keys(statement: Mapping[str, Any]) -> list[str]:
    """Return the patterns of partition keys that a statement covers; none if it is about no items.

    A request may have several keys, and all of them must match. Source: the DynamoDB developer
    guide, "Using IAM policy conditions for fine-grained access control".
    """
    match statement.get("Condition"):
        case {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [*patterns]}}:
            return patterns
    assert resource_of(statement) not in {TABLE, INDEX, RESTORED}, "it must name the keys"
    return []


def rights(function: str, **truths: bool) -> set[Right]:
    """Return the rights that a policy grants: each action with each resource."""
    return {
        (action, resource_of(statement))
        for statement in statements(function, **truths)
        for action in statement["Action"]
    }


def kinds_of_items(function: str, **truths: bool) -> set[Keys]:
    return {
        (resource_of(statement), keys)
        for statement in statements(function, **truths)
        for keys in leading_keys(statement)
    }


# ---- the requests of the handlers

NOBODY_LISTENS = "https://127.0.0.1:9/"
"""The port of the discard protocol, which no machine serves any more."""
SETTINGS = Settings(
    webhook_secrets=(signing.new_secret(),),
    webhook_allow="127.0.0.0/8",
    event_queues={"orders": "its URL, once it has one"},
    retry_seconds=(5,),
)
"""Two attempts for each event."""


@dataclass(frozen=True)
class Used:
    """The rights and the keys that each function uses, and the routes that were called."""

    rights: dict[str, set[Right]] = field(default_factory=lambda: defaultdict(set))
    keys: dict[str, set[Keys]] = field(default_factory=lambda: defaultdict(set))
    routes: set[tuple[str, str]] = field(default_factory=set)

    def add(self, other: Used) -> None:
        """Add what the functions use on other paths."""
        for name in FUNCTIONS:
            self.rights[name].update(other.rights[name])
            self.keys[name].update(other.keys[name])
        self.routes.update(other.routes)


@dataclass
class Aws:
    """The functions over a deployed table, its queues and its archive, with their requests."""

    clients: Mapping[str, Any]
    urls: Mapping[str, str]
    has_get_views: bool
    """Whether `get_views` answers its routes, as in the one stack."""
    used: Used = field(default_factory=Used)
    running: str = ""
    now: float = NOW

    def __post_init__(self) -> None:
        self.stream = create_table(self.clients["dynamodb"], "vu-mi")
        self.table = DynamoTable(self.clients["dynamodb"], "vu-mi")
        queues = {name: SqsQueue(self.clients["sqs"], url) for name, url in self.urls.items()}
        self.host = Host()
        self.resources = GivenResources(
            self.table,
            ViewMessages(queues[QUEUE]),
            queues[DELIVERY_QUEUE],
            queues[DISTRIBUTION_QUEUE],
            S3Archive(self.clients["s3"], BUCKET),
            SETTINGS,
            lambda: self.now,
            bans=TimedBans(lambda: self.table, lambda: self.now),
            sender=sender_of(SETTINGS),
            fetcher=self.host,
            resolver=socket.getaddrinfo,
            webhooks=EventSchedule(lambda: queues[DELIVERY_QUEUE], lambda: self.now),
            event_queues={"orders": queues[EVENT_QUEUES]},
        )
        places = {"vu-mi": TABLE, BUCKET: ARCHIVE, **PUBLIC}
        self.called = {url: queue for queue, url in self.urls.items()} | places
        for client in self.clients.values():
            client.meta.events.register("provide-client-params", self._note)

    def _note(self, params: Mapping[str, Any], model: Any, **_: object) -> None:
        if not self.running:
            return
        service = model.service_model.service_name
        [where] = {self.called[name] for name in names_in(params)}
        assert service != "s3" or params["Key"].startswith("journal/")
        if "IndexName" in params:
            where = f"${{Table.Arn}}/index/{params['IndexName']}"
        found = {(action, where) for action in actions(service, model.name, params)}
        self.used.rights[self.running] |= found
        if service == "dynamodb":
            self.used.keys[self.running] |= {(where, pattern(key)) for key in partitions(params)}

    @contextmanager
    def noting(self, function: str) -> Iterator[None]:
        self.running = function
        yield
        self.running = ""

    def run(self, function: str, event: object) -> Any:
        """Run a consumer or the sweep."""
        with self.noting(function):
            return getattr(consumers, function)(event, None)

    def call(
        self,
        route: str,
        body: object = None,
        secret: str = "",
        user: str = "",
        query: Mapping[str, str | list[str]] | None = None,
        **ids: str,
    ) -> Any:
        """Send a request, which the authorizer has admitted; return the body of the response."""
        method, path = route.split()
        self.used.routes.add((method, path))
        if self.has_get_views and get_views.TABLE.find(path):
            raw = urlencode(query or {}, doseq=True)
            asked = events.http_api_event(path, method, rawQueryString=raw)
            with self.noting("get_views"):
                answer = get_views.handler(asked, None)
        else:
            given = parse_qs(urlencode(query or {}, doseq=True))
            event = events.http_event(given, method, path)
            caller = Caller(Role.USER, user) if user else Caller(Role.OPERATOR)
            event["requestContext"]["authorizer"] = caller.fields
            event["pathParameters"] = ids
            event["headers"] = {"Authorization": f"Bearer {secret}"} if secret else {}
            event["body"] = "" if body is None else json.dumps(body)
            with self.noting("api_handler"):
                answer = app(event, None)
        is_json = answer["body"].startswith("{")
        return json.loads(answer["body"]) if is_json else answer["body"]

    def view(self, badge_id: str, **query: str) -> None:
        self.call("GET /api/v1/views", query={"id": badge_id, **query})

    def own(self, method: str, badge_id: str, secret: str, **fields: Any) -> None:
        """Send a request of an owner, who gives the id in the query, and then in the path."""
        query = {"id": badge_id}
        self.call(f"{method} /api/v1/badges", fields, secret, query=query)
        path = f"{method} /api/v1/badges/{{badge_id}}"
        self.call(path, fields, secret, badge_id=fields.get("rename", badge_id))

    def claim(self, badge_id: str, **fields: Any) -> Any:
        return self.call("POST /api/v1/badges", {"id": badge_id, **fields})

    def accept(self, event_id: str, target: object, at: float = NOW) -> None:
        body = {"id": event_id, "at": at, "target": target, "payload": "hello"}
        self.call("POST /api/v1/events", body)

    def distribute(self) -> None:
        url = self.urls[DISTRIBUTION_QUEUE]
        received = self.clients["sqs"].receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        for one in received["Messages"]:
            self.run("distribute_events", events.sqs_event({"group": one["Body"]}))

    def deliver(self, *event_ids: str) -> None:
        """Deliver events, each alone, because moto does not support threads."""
        for event_id in event_ids:
            self.run("deliver_events", events.sqs_event({"event": message(event_id)}))

    def put(self, *views: View) -> None:
        """Deliver a batch of views and a malformed message."""
        bodies = [*(view.to_message() for view in views), "{"]
        self.run("put_views", events.sqs_event({f"m-{n}": body for n, body in enumerate(bodies)}))

    def fold(self, *badge_ids: str, mark: int = MARK) -> None:
        """Deliver the removals of the markers of these badges' windows."""
        markers = [keys.marker(badge_id, mark) for badge_id in badge_ids]
        records = [events.removal(n, *one, arn=self.stream) for n, one in enumerate(markers, 1)]
        self.run("fold_views", events.stream_event(records))


def actions(service: str, operation: str, params: Mapping[str, Any]) -> set[str]:
    """Return the actions that a request requires."""
    if operation == "TransactWriteItems":
        return {TRANSACTED[kind] for item in params["TransactItems"] for kind in item}
    if operation in BATCHES:
        return {BATCHES[operation]}
    assert f"{service}:{operation}" in SINGLE, f"no action is known for {operation}"
    return {f"{service}:{operation}"}


def partitions(params: Mapping[str, Any]) -> Iterator[str]:
    """Return the partition keys in a request to DynamoDB; a query of the index has the index's."""
    match params:
        case {"TransactItems": [*items]}:
            for item in items:
                yield from (key for write in item.values() for key in partitions(write))
        case {"RequestItems": {"vu-mi": {"Keys": [*found]}}}:
            yield from (key["PK"]["S"] for key in found)
        case {"RequestItems": {"vu-mi": [*requests]}}:
            yield from (request["PutRequest"]["Item"]["PK"]["S"] for request in requests)
        case {"Key": {"PK": {"S": str(key)}}} | {"Item": {"PK": {"S": str(key)}}}:
            yield key
        case {"IndexName": _, "ExpressionAttributeValues": {":batch": {"S": str(key)}}}:
            yield key
        case {"KeyConditionExpression": _, "ExpressionAttributeValues": {":pk": {"S": str(key)}}}:
            yield key
        case _:
            raise AssertionError(f"a request must name its partition key: {params}")


def pattern(key: str) -> str:
    """Return the pattern of a kind of items: their keys up to the first `#`, or the whole key."""
    kind, separator, _ = key.partition("#")
    return f"{kind}#*" if separator else kind


NAMED_BY = ("TableName", "QueueUrl", "Bucket", "FunctionName")


def names_in(params: Mapping[str, Any]) -> Iterator[str]:
    """Return the tables, queues, buckets and functions in a request."""
    yield from (params[name] for name in NAMED_BY if name in params)
    yield from params.get("RequestItems", ())
    for item in params.get("TransactItems", ()):
        yield from (write["TableName"] for write in item.values())


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


Path: TypeAlias = Callable[[Aws], None]

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


def create_functions(clients: Mapping[str, Any]) -> None:
    """Create the functions that the public reaches, with nothing in them."""
    role = clients["iam"].create_role(RoleName="public", AssumeRolePolicyDocument="{}")["Role"]
    for name in PUBLIC:
        clients["lambda"].create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=role["Arn"],
            Handler="none",
            Code={"ZipFile": b""},
        )


def walk(*paths: Path, has_get_views: bool = False) -> dict[Path, Used]:
    """Walk paths of a new deployment; return the requests of its functions on each path."""
    with ExitStack() as stack:
        stack.enter_context(mock_aws())
        clients = {
            name: stack.enter_context(closing(aws_client(name)))
            for name in ("dynamodb", "sqs", "s3", "lambda", "iam")
        }
        clients["s3"].create_bucket(Bucket=BUCKET)
        create_functions(clients)
        names = {queue: queue.replace(".", "-") for queue in QUEUES}
        create = clients["sqs"].create_queue
        urls = {queue: create(QueueName=name)["QueueUrl"] for queue, name in names.items()}
        aws = Aws(clients, urls, has_get_views)
        stack.callback(resources.use, None)
        resources.use(aws.resources)
        by_path = {}
        for path in (*paths, refuse_batches):
            aws.now = NOW
            aws.used = by_path[path] = Used()
            path(aws)
    return by_path


def together(by_path: Mapping[Path, Used], *paths: Path) -> Used:
    """Return the requests on some of the walked paths."""
    used = Used()
    for path in paths:
        used.add(by_path[path])
    return used


@pytest.fixture(scope="module")
def by_path() -> dict[Path, Used]:
    """Return the requests of Chalice's functions on each path."""
    return walk(*OF_WALLETS, *OF_EVENTS, *OF_VIEWS)


@pytest.fixture(scope="module")
def used(by_path: dict[Path, Used]) -> Used:
    """Return the requests of Chalice's functions, and of `get_views` from the one stack."""
    apart = walk(*OF_VIEWS, has_get_views=True)
    all_used, name = together(by_path, *by_path), "get_views"
    of_get_views = together(apart, *apart)
    all_used.rights[name] = of_get_views.rights[name]
    all_used.keys[name] = of_get_views.keys[name]
    return all_used


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_may_do_what_it_does_to_its_kinds_of_items_and_nothing_else(
    used: Used, function: str, *, restored: bool
) -> None:
    """It may do the same to a restored table, and then no more to the old one."""
    moved = OF_RESTORED if restored else {}
    asked = used.rights[function]
    expected = {(one, moved.get(where, where)) for one, where in asked | lambdas_own(function)}
    assert asked
    assert rights(function, IsRestored=restored) == expected
    items = {(moved.get(where, where), keys) for where, keys in used.keys[function]}
    assert kinds_of_items(function, IsRestored=restored) == items


@pytest.mark.parametrize(
    ("on", "paths"), [("", ()), ("HasEvents", OF_EVENTS), ("HasWallets", OF_WALLETS)]
)
def test_the_api_has_no_right_of_a_feature_that_is_switched_off(
    by_path: dict[Path, Used], on: str, paths: tuple[Path, ...]
) -> None:
    truths = {name: name == on for name in ALL_FEATURES}
    used = together(by_path, *OF_VIEWS, *paths, refuse_batches)
    own = lambdas_own("api_handler")
    assert rights("api_handler", **truths) == used.rights["api_handler"] | own
    assert kinds_of_items("api_handler", **truths) == used.keys["api_handler"]


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
    assert used.routes == routes


def test_without_event_queues_the_statement_repeats_another_right() -> None:
    """IAM rejects a statement without a resource."""
    assert rights("deliver_events", HasEventQueues=False) < rights("deliver_events")


def test_chalice_uses_these_policies_unchanged() -> None:
    config = json.loads(Folder().config.read_text())
    assert config["autogen_policy"] is False
    used = {name: part["iam_policy_file"] for name, part in config["lambda_functions"].items()}
    assert used == {name: f"policies/{name}.json" for name in OF_CHALICE}
