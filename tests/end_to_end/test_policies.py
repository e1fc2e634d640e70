"""The IAM policy of each function: it allows exactly what the function does.

The handlers run over moto through all their paths. The tests compare their requests to AWS, with
the partition keys in them, with the policies in both directions: a missing right or kind of items
fails a path, and an unused one fails the comparison.
"""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import urlencode

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from moto import mock_aws
from ulid import ULID

from app import app
from chalicelib.aws import get_views, resources
from chalicelib.aws.authorizer import authorize
from chalicelib.aws.clients import aws_client
from chalicelib.aws.consumers import (
    archive_entries,
    distribute_timers,
    fire_timers,
    fold_views,
    put_views,
    sweep_timers,
)
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.aws.s3 import S3Archive
from chalicelib.aws.sqs import SqsQueue
from chalicelib.counting import badge_count, keys
from chalicelib.counting.summary import read
from chalicelib.counting.view import View, new_ulid
from chalicelib.counting.view_queue import ViewMessages
from chalicelib.events.claims import Leases
from chalicelib.events.event import Event, Status, Target, TargetKind, key, message
from chalicelib.events.webhook_schedule import EventSchedule
from chalicelib.events.webhooks import signing
from chalicelib.events.webhooks.sender import Sender, sender_of
from chalicelib.http import tokens
from chalicelib.http.messages import Caller, Role
from chalicelib.http.refusals import RefusalLog
from chalicelib.limits import NoLimits, Room
from chalicelib.owners.proving import LOOK_SECONDS
from chalicelib.settings import Settings
from chalicelib.storage.writes import Put, Update
from chalicelib.wallets.wallet import Entry, Posting
from deploy import template
from deploy.completion import FUNCTIONS as OF_CHALICE
from deploy.conditions import ALL_FEATURES, Truths, choose
from simulation import aws_events as events
from simulation.aws_events import entry_record
from simulation.aws_table import create_table
from simulation.hosts import Host
from vumi.tokens import TokenStore

FOLDER = template.ROOT / ".chalice"
FUNCTIONS = {**OF_CHALICE, "get_views": "GetViews"}
NOW = 1_767_225_600.0
MARK = 1_767_225_900
"""The end of the window that begins now."""
USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
ANOTHER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d12"
BUCKET = "vu-mi-archive"

Right: TypeAlias = tuple[str, str]
"""An action and its resource: a name of the template, or a text with such names in it."""

Keys: TypeAlias = tuple[str, str]
"""The table or its index, and the pattern of IAM for a kind of its partition keys."""

RESTORED = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${RestoredTable}"
TABLE = {False: "Table.Arn", True: RESTORED}
STREAM = {False: "Table.StreamArn", True: f"{RESTORED}/stream/*"}
STREAMS = {False: "${Table.Arn}/stream/*", True: f"{RESTORED}/stream/*"}
"""The key tells whether the table was restored; then it is not the template's table."""
INDEX = "due"
QUEUE, TIMERS_QUEUE, DISTRIBUTION_QUEUE = (
    f"{name}.Arn" for name in ("ViewsQueue", "TimersQueue", "DistributionQueue")
)
ARCHIVE = "${Archive.Arn}/journal/*"
"""The objects of the archive, and no others of its bucket."""
EVENT_QUEUES = "EventQueueArns"
"""The queues that the operator has listed for events: a parameter of the stack."""
QUEUES = {QUEUE, TIMERS_QUEUE, DISTRIBUTION_QUEUE, EVENT_QUEUES}
LOG = (
    "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}"
    ":log-group:/aws/lambda/${AWS::StackName}-"
)

SINGLE = {
    "dynamodb": {
        "BatchGetItem",
        "BatchWriteItem",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "Query",
        "UpdateItem",
    },
    "s3": {"PutObject"},
    "sqs": {"SendMessage"},
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


def index(name: str, *, restored: bool) -> str:
    """Return the ARN of an index of the table, or of the restored table."""
    return f"{RESTORED if restored else '${Table.Arn}'}/index/{name}"


def lambdas_own(function: str, *, restored: bool) -> set[Right]:
    """Return the rights that Lambda itself needs: to read the function's events and write its log.

    Sources: the SQS developer guide, "Configuring an Amazon SQS queue to trigger an AWS Lambda
    function"; the DynamoDB developer guide, "IAM policy to allow an AWS Lambda function to access
    DynamoDB stream records"; the Lambda developer guide, "Sending Lambda function logs to
    CloudWatch Logs". The stack makes the log group, so the function does not have to.
    """
    log = {
        (f"logs:{action}", f"{LOG}{function}:*") for action in ("CreateLogStream", "PutLogEvents")
    }
    stream = {
        ("dynamodb:DescribeStream", STREAM[restored]),
        ("dynamodb:GetRecords", STREAM[restored]),
        ("dynamodb:GetShardIterator", STREAM[restored]),
        ("dynamodb:ListStreams", STREAMS[restored]),
    }
    reads: dict[str, set[Right]] = {
        **{function: _receiving(queue) for function, queue in CONSUMED.items()},
        "fold_views": stream,
        "archive_entries": stream,
    }
    return log | reads.get(function, set())


CONSUMED = {
    "put_views": QUEUE,
    "distribute_timers": DISTRIBUTION_QUEUE,
    "fire_timers": TIMERS_QUEUE,
}


def _receiving(queue: str) -> set[Right]:
    actions = ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
    return {(f"sqs:{action}", queue) for action in actions}


def policy(function: str, truths: Truths = ALL_FEATURES) -> dict[str, Any]:
    """Return a policy as a stack has it, by default with all features."""
    read = json.loads((FOLDER / "policies" / f"{function}.json").read_text())
    chosen: dict[str, Any] = choose(read, truths)
    return chosen


def rights(function: str, *, restored: bool, truths: Truths = ALL_FEATURES) -> set[Right]:
    """Return the rights that a policy grants: each action with each resource."""
    return {
        (action, _name(statement["Resource"], restored=restored))
        for statement in policy(function, truths)["Statement"]
        for action in statement["Action"]
    }


def leading_keys(statement: Mapping[str, Any]) -> list[str]:
    """Return the patterns of partition keys that a statement covers.

    A request may have several keys, and all of them must match. Source: the DynamoDB developer
    guide, "Using IAM policy conditions for fine-grained access control".
    """
    match statement.get("Condition"):
        case {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [*patterns]}}:
            return patterns
    raise AssertionError(f"a statement about items must name their keys: {statement['Sid']}")


def about_items(function: str, truths: Truths = ALL_FEATURES) -> list[dict[str, Any]]:
    """Return the statements about the items of the table or of its index."""
    items = {TABLE[False], index(INDEX, restored=False)}
    statements = policy(function, truths)["Statement"]
    return [one for one in statements if _name(one["Resource"], restored=False) in items]


def _name(resource: Any, *, restored: bool) -> str:
    match resource:
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"{name}.{attribute}"
        case {"Fn::Sub": str(text)}:
            return text
        case {"Ref": "EventQueueArns"}:
            return EVENT_QUEUES
        case {"Fn::If": ["IsRestored", then, otherwise]}:
            return _name(then if restored else otherwise, restored=restored)
        case {"Fn::If": ["HasEventQueues", then, _]}:
            return _name(then, restored=restored)
    raise AssertionError(f"a policy must name its resource, not {resource!r}")


# ---- the requests of the handlers


OPERATOR = Caller(Role.OPERATOR)
UNKNOWN_TOKEN = tokens.new_token()
SETTINGS = Settings(
    webhook_secrets=(signing.new_secret(),),
    webhook_allow="127.0.0.0/8",
    event_queues={"orders": "its URL, once it has one"},
    retry_seconds=(5,),
)
"""Two attempts for each event."""
NOBODY_LISTENS = "https://127.0.0.1:9/"
"""The port of the discard protocol, which no machine serves any more."""


@dataclass(frozen=True)
class Asked:
    """The rights and the keys that each function uses, and the API routes that were called."""

    rights: dict[str, set[Right]] = field(
        default_factory=lambda: {name: set() for name in FUNCTIONS}
    )
    keys: dict[str, set[Keys]] = field(default_factory=lambda: {name: set() for name in FUNCTIONS})
    routes: set[tuple[str, str]] = field(default_factory=set)

    def add(self, other: Asked) -> None:
        """Add what the functions use on other paths."""
        for name in FUNCTIONS:
            self.rights[name].update(other.rights[name])
            self.keys[name].update(other.keys[name])
        self.routes.update(other.routes)


@dataclass
class Aws:
    """A deployed table and its queues: all `resources`, which record the requests of their clients.

    The keys of `urls` are the names by which the policies call the queues.
    """

    dynamodb: Any
    sqs: Any
    s3: Any
    stream: str
    urls: Mapping[str, str]
    settings: Settings = SETTINGS
    asked: Asked = field(default_factory=Asked)
    running: str = ""
    now: float = NOW
    has_get_views: bool = False
    """Whether `get_views` answers its routes, as in the one stack."""

    claims = Leases()
    map_parallel = staticmethod(map)
    resolver = staticmethod(socket.getaddrinfo)
    limits = NoLimits()
    room = staticmethod(lambda: Room.ALL)
    fetcher = Host()

    def __post_init__(self) -> None:
        self.table = DynamoTable(self.dynamodb, "vu-mi")
        self.refusals = RefusalLog(self.clock)
        self.views_queue = ViewMessages(SqsQueue(self.sqs, self.urls[QUEUE]))
        self.delivery_queue = SqsQueue(self.sqs, self.urls[TIMERS_QUEUE])
        self.distribution_queue = SqsQueue(self.sqs, self.urls[DISTRIBUTION_QUEUE])
        self.archive = S3Archive(self.s3, BUCKET)
        self.webhooks = EventSchedule(lambda: self.delivery_queue, self.clock)
        places = {"vu-mi": TABLE[False], BUCKET: ARCHIVE}
        self.called = {url: queue for queue, url in self.urls.items()} | places
        for client in (self.dynamodb, self.sqs, self.s3):
            client.meta.events.register("provide-client-params", self._note)

    def clock(self) -> float:
        return self.now

    view_clock = clock

    @property
    def sender(self) -> Sender | None:
        return sender_of(self.settings)

    def event_queue(self, name: str) -> SqsQueue | None:
        return SqsQueue(self.sqs, self.urls[EVENT_QUEUES]) if name == "orders" else None

    def _note(self, params: Mapping[str, Any], model: Any, **_: object) -> None:
        if not self.running:
            return
        service = model.service_model.service_name
        [where] = {self.called[name] for name in _names_in(params)}
        assert service != "s3" or params["Key"].startswith("journal/")
        if "IndexName" in params:
            where = index(params["IndexName"], restored=False)
        rights = {(action, where) for action in actions(service, model.name, params)}
        self.asked.rights[self.running] |= rights
        if service == "dynamodb":
            self.asked.keys[self.running] |= {(where, pattern(key)) for key in partitions(params)}

    @contextmanager
    def _noting(self, function: str) -> Iterator[None]:
        self.running = function
        yield
        self.running = ""

    def ask(self, path: str = "/api/v1/views", method: str = "GET", **query: str) -> Any:
        """Return the message of a badge, or the body of any other response."""
        body = self._answer(
            events.http_event({name: [value] for name, value in query.items()}, method, path)
        )
        return body.get("message", body) if isinstance(body, dict) else body

    def own(self, method: str, badge_id: str, secret: str = "", **fields: Any) -> Any:
        """Return the response to an owner, who gives the id in the path, and then in the query."""
        path, more = "/api/v1/badges", {"headers": {"Authorization": f"Bearer {secret}"}}
        if method == "POST":
            body = json.dumps({"id": badge_id, **fields})
            return self._answer(events.http_event(None, method, path) | more | {"body": body})
        by_path = events.http_event(None, method, f"{path}/{{badge_id}}")
        self._answer(
            by_path | more | {"pathParameters": {"badge_id": badge_id}, "body": json.dumps(fields)}
        )
        by_query = events.http_event({"id": [badge_id]}, method, path)
        return self._answer(by_query | more | {"body": json.dumps(fields)})

    def _answer(self, event: dict[str, Any]) -> Any:
        method, path = event["httpMethod"], event["resource"]
        self.asked.routes.add((method, path))
        if self.has_get_views and get_views.TABLE.find(path):
            query = urlencode(event["multiValueQueryStringParameters"] or {}, doseq=True)
            with self._noting("get_views"):
                made = events.http_api_event(path, method, rawQueryString=query)
                answer = get_views.handler(made, None)
        else:
            with self._noting("api_handler"):
                answer = app(event, None)
        is_json = answer["body"].startswith("{")
        return json.loads(answer["body"]) if is_json else answer["body"]

    def schedule(self, path: str, method: str, body: str = "", **parameters: str) -> Any:
        """Return the response of a route of events; the authorizer has admitted the request."""
        kind = {"Content-Type": "text/plain"} if "echo" in path else {}
        event = events.http_event(None, method, path)
        event["requestContext"]["authorizer"] = OPERATOR.fields
        return self._answer(
            {
                **event,
                "pathParameters": parameters,
                "headers": kind,
                "body": body,
            }
        )

    def list_events(self, status: Status) -> set[str]:
        event = events.http_event({"status": [status]}, "GET", "/api/v1/events")
        event["requestContext"]["authorizer"] = OPERATOR.fields
        return {listed["id"] for listed in self._answer(event)["events"]}

    def wallet(self, path: str, method: str, body: str = "", user: str = "", **ids: str) -> Any:
        """Return the response of a route of wallets; the authorizer has admitted the request."""
        event = events.http_event(None, method, "/api/v1/wallets" + path)
        caller = Caller(Role.USER, user) if user else OPERATOR
        event["requestContext"]["authorizer"] = caller.fields
        return self._answer({**event, "pathParameters": ids, "body": body})

    def accept(self, event_id: str, target: object, at: float = NOW) -> Any:
        body = {"id": event_id, "at": at, "target": target, "payload": "hello"}
        return self.schedule("/api/v1/events", "POST", json.dumps(body))

    def authorize(self, token: str) -> bool:
        """Return whether a token opens any route."""
        arn = "arn:aws:execute-api:us-east-1:123456789012:api/prod/POST/timers"
        event = {"type": "TOKEN", "methodArn": arn, "authorizationToken": f"Bearer {token}"}
        with self._noting("authorize"):
            answer = authorize(event, None)
        return bool(answer["policyDocument"]["Statement"][0]["Resource"])

    def sweep(self) -> dict[str, int]:
        with self._noting("sweep_timers"):
            found: dict[str, int] = sweep_timers(events.tick(), None)
        return found

    def distribute(self, *bodies: str) -> None:
        for body in bodies:
            with self._noting("distribute_timers"):
                answer = distribute_timers(events.sqs_event({"group": body}), None)
            assert answer == {"batchItemFailures": []}

    def fire(self, event_id: str) -> str:
        """Fire one event alone, because moto does not support threads; return its status."""
        with self._noting("fire_timers"):
            answer = fire_timers(events.sqs_event({"event": message(event_id)}), None)
        assert answer == {"batchItemFailures": []}
        return str((self.table.get(key(event_id)) or {}).get("status", ""))

    def put(self, *views: View, malformed: int = 0, waiting: bool = False) -> None:
        """Deliver a batch of views; with `waiting`, all must be returned for another delivery."""
        bodies: dict[str, object] = {f"m-{n}": view.to_message() for n, view in enumerate(views)}
        bad = {f"bad-{n}": "{" for n in range(malformed)}
        with self._noting("put_views"):
            answer = put_views(events.sqs_event(bodies | bad), None)
        failed = [*bad, *(bodies if waiting else ())]
        assert answer == {"batchItemFailures": [{"itemIdentifier": name} for name in failed]}

    def fold(self, *badge_ids: str, mark: int = MARK) -> None:
        """Deliver the removals of the markers of these badges' windows."""
        records = [
            events.removal(n, *keys.marker(badge_id, mark), arn=self.stream)
            for n, badge_id in enumerate(badge_ids, start=1)
        ]
        with self._noting("fold_views"):
            answer = fold_views(events.stream_event(records), None)
        assert answer == {"batchItemFailures": []}

    def archive_entry(self, entry: Entry, wallet_id: str) -> None:
        record = entry_record(entry, wallet_id, 1, arn=self.stream)
        with self._noting("archive_entries"):
            answer = archive_entries(events.stream_event([record]), None)
        assert answer == {"batchItemFailures": []}

    def live(self, badge_id: str) -> int:
        return badge_count.read(self.table, badge_id).live

    def folded(self, badge_id: str) -> int:
        return read(self.table, badge_id).count


def actions(service: str, operation: str, params: Mapping[str, Any]) -> set[str]:
    """Return the actions that a request requires."""
    if operation == "TransactWriteItems":
        return {TRANSACTED[kind] for item in params["TransactItems"] for kind in item}
    if operation in BATCHES:
        return {BATCHES[operation]}
    assert operation in SINGLE[service], f"no action is known for {operation}"
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


def _names_in(params: Mapping[str, Any]) -> Iterator[str]:
    """Return the tables, queues and buckets in a request."""
    yield from (params[name] for name in ("TableName", "QueueUrl", "Bucket") if name in params)
    yield from params.get("RequestItems", ())
    for item in params.get("TransactItems", ()):
        yield from (write["TableName"] for write in item.values())


def views(count: int, badge_id: str = "a", age: float = 0, **flags: bool) -> list[View]:
    return [View(badge_id, new_ulid(int((NOW - age) * 1000)), **flags) for _ in range(count)]


def put_on_every_path(aws: Aws) -> None:
    """Put young, in-between, old and hot views, of new and known windows; malformed ones."""
    aws.put(*views(1))
    aws.put(*views(30, first=False), *views(150, "b"), malformed=1)
    again = views(2)
    aws.put(*again)
    aws.put(*again)
    aws.put(*views(1, age=600), waiting=True)
    aws.put()
    assert (aws.live("a"), aws.live("b")) == (1 + 30 + 2, 150)
    late = [*views(2, "old", age=900), *views(2, "old", hot=True)]
    aws.put(*late)
    aws.put(*late)
    aws.now += 86_400
    aws.put(*views(1, "old"))
    aws.now = NOW
    assert (aws.live("old"), aws.folded("old")) == (0, 2 + 2 + 1)


def fold_on_every_path(aws: Aws) -> None:
    """Fold first, again, on another day, too early, and because a GET requests it."""
    aws.put(*views(3, "folded"))
    aws.now += 900
    aws.fold("folded", "b", "old")
    aws.fold("folded")
    aws.fold("folded", mark=MARK + 900)
    aws.fold()
    assert aws.table.get(keys.marker("folded", MARK + 900)) is not None
    assert (aws.folded("folded"), aws.folded("b"), aws.live("b")) == (3, 150, 0)
    aws.now = NOW + 86_400
    aws.put(*views(2, "folded", age=-86_400))
    aws.now += 900
    aws.put(*views(1, "folded", age=-87_300, first=False, fold=True))
    assert (aws.folded("folded"), aws.live("folded")) == (3 + 2, 1)
    aws.now = NOW


def archive_on_every_path(aws: Aws) -> None:
    """Archive the entries of both wallets of a transfer twice: two objects."""
    alice, bob = str(ULID()), str(ULID())
    entry = Entry(str(ULID()), Posting("n", 1, bob, alice), int(NOW * 1000))
    for wallet_id in (alice, bob, bob):
        aws.archive_entry(entry, wallet_id)
    assert aws.s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 2


def ask_on_every_path(aws: Aws) -> None:
    """Request a badge with few views, several pages, a hot badge, and a queue that refuses."""
    aws.put(*views(150, "many"), *views(1, "hot", hot=True))
    assert (aws.ask(id="a"), aws.ask(id="b"), aws.ask(id="many")) == ("33", "150", "150")
    assert aws.ask("/v1/api/views", id="a") == aws.ask("/v1/api/views", "HEAD", id="a") == "33"
    assert aws.ask(id="a", peek="1") == aws.ask(method="HEAD", id="a") == "33"
    assert aws.ask() == "give an id: ?id=owner/name"
    assert aws.ask("/healthz") == {"status": "ok"}
    for method in ("GET", "HEAD"):
        assert aws.ask("/", method).startswith("<!doctype html>")
        assert aws.ask("/openapi.json", method)["openapi"].startswith("3.1")
        assert aws.ask("/api/v1/views.svg", method, id="a").startswith("<svg")
        assert aws.ask("/api/v1/views/history.svg", method, id="a").startswith("<svg")
        assert aws.ask("/api/v1/views/history", method, id="a")["total"] > 0
        assert aws.ask("/s", method, id="a").startswith("<!doctype html>")
        assert aws.ask("/s.png", method, id="a")
    aws.sqs.delete_queue(QueueUrl=aws.urls[QUEUE])
    assert (aws.ask(id="a"), aws.ask(id="a"), aws.ask(id="new")) == ("33", "34", "0")
    assert (aws.ask(id="hot"), aws.ask(id="hot")) == ("1", "2")
    assert aws.ask(method="POST", id="script") == "0"


def own_on_every_path(aws: Aws) -> None:
    """Claim a badge, change it in every way, count by an alias, delete it with a day of history."""
    aws.put(*views(1, "mine"))
    assert aws.own("POST", "mine")["error"]["code"] == "taken"
    secret = aws.own("POST", "my own", base=7)["secret"]
    assert aws.own("PATCH", "my own", "another", base=1)["error"]["code"] == "wrong_secret"
    assert aws.own("PATCH", "my own", secret, base=1, frozen=True) == {"id": "my own"}
    assert aws.own("PATCH", "my own", secret, rename="renamed") == {"id": "renamed"}
    assert aws.own("GET", "renamed", secret)["names"] == ["my own", "renamed"]
    assert aws.ask(id="renamed") == aws.ask("/api/v1/views", id="my own", peek="1") == "1"
    aws.now += 86_400
    aws.put(*views(2, "renamed", age=-86_400), *views(2, "renamed", age=-86_400, hot=True))
    aws.now += 86_400
    aws.fold("renamed", mark=MARK + 86_400)
    aws.put(*views(1, "my own", age=-172_800, hot=True))
    assert aws.ask(id="renamed", peek="1") == "6"
    assert aws.own("PATCH", "renamed", secret, reset=True) == {"id": "renamed"}
    assert aws.own("DELETE", "renamed", secret) == ""
    prove(aws, "mine/too")
    aws.now = NOW


def prove(aws: Aws, badge_id: str) -> None:
    """Prove a badge, look for its file again, and hand it over."""
    asked = aws.own("POST", badge_id, proof=True)
    key = asked["proof"]
    assert aws.own("POST", badge_id, proof=key)["error"]["code"] == "not_proven"
    assert aws.own("POST", badge_id, proof=key)["error"]["code"] == "too_many_requests"
    aws.now += LOOK_SECONDS
    aws.fetcher.lines = [asked["challenge"]]
    secret = aws.own("POST", badge_id, proof=key)["secret"]
    assert aws.own("PATCH", badge_id, secret, digest="0" * 64) == {"id": badge_id}


def schedule_on_every_path(aws: Aws) -> None:
    """Accept, repeat, read, list and cancel events of every target and route.

    One event is unknown and one is far ahead.
    """
    token = TokenStore(aws.table, aws.clock).create("admin")
    assert (aws.authorize(token), aws.authorize(UNKNOWN_TOKEN)) == (True, False)
    for event_id, target in (
        ("log", {"log": True}),
        ("url", {"url": NOBODY_LISTENS}),
        ("queue", {"queue": "orders"}),
    ):
        made = aws.accept(event_id, target)
        assert (made["id"], made["status"]) == (event_id, "ACTIVE")
        assert aws.accept(event_id, target) == made
    assert aws.accept("log", {"queue": "orders"})["error"]["code"] == "id_taken"
    aws.accept("later", {"log": True}, at=NOW + 300)
    aws.accept("far", {"log": True}, at=NOW + 86_400)
    parts = {"hours": 1, "minutes": 0, "seconds": 0, "url": NOBODY_LISTENS}
    timer = aws.schedule("/timers", "POST", json.dumps(parts))["id"]
    assert aws.schedule("/timers/{timer_id}", "GET", timer_id=timer)["id"] == timer
    assert aws.schedule("/echoAtTime", "POST", "hello")["id"]
    listed = {status: aws.list_events(status) for status in Status}
    assert {"log", "url", "queue", "later", "far", timer} < listed.pop(Status.ACTIVE)
    assert not set().union(*listed.values())
    one = "/api/v1/events/{event_id}"
    assert aws.schedule(one, "GET", event_id="far")["status"] == "ACTIVE"
    for _ in range(2):
        assert aws.schedule(one, "DELETE", event_id="far")["status"] == "CANCELLED"
    assert aws.schedule(one, "GET", event_id="none")["error"]["code"] == "not_found"
    for method in ("GET", "HEAD"):
        assert aws.schedule(f"{one}/badge", method, event_id="far")["message"] == "cancelled"
        assert aws.schedule(f"{one}/badge.svg", method, event_id="far").startswith("<svg")


def move_money_on_every_path(aws: Aws) -> None:
    """Open wallets, deposit, transfer, be refused, repeat, list and show; one is unknown."""

    def put(path: str, amount: int, nonce: str, **ids: str) -> Any:
        body = json.dumps({"amount": str(amount), "nonce": nonce})
        return aws.wallet("/{wallet_id}" + path, "PUT", body, wallet_id=mine, **ids)

    mine, other = (
        aws.wallet("", "POST", json.dumps({"user_id": user}))["id"] for user in (USER, ANOTHER)
    )
    again = aws.wallet("", "POST", json.dumps({"user_id": USER}))
    assert again["error"]["code"] == "wallet_exists"
    for _ in range(2):
        assert put("/deposit", 100, "deposit-1") == ""
        assert put("/transfer/{target_id}", 30, "transfer-1", target_id=other) == ""
        refused = put("/transfer/{target_id}", 99, "transfer-2", target_id=other)
        assert refused["error"]["code"] == "insufficient_funds"
    nobody = str(ULID())
    missing = put("/transfer/{target_id}", 1, "transfer-3", target_id=nobody)
    assert missing["error"]["code"] == "not_found"
    assert aws.wallet("/{wallet_id}/balance", "GET", wallet_id=mine)["balance"] == "70"
    assert aws.wallet("/me", "GET", user=USER)["id"] == mine
    moved = aws.wallet("/{wallet_id}/transactions", "GET", wallet_id=mine)["transactions"]
    assert {one["nonce"] for one in moved} == {"deposit-1", "transfer-1"}
    shown = aws.wallet("/{wallet_id}", "PATCH", json.dumps({"badge": True}), wallet_id=mine)
    assert shown["badge"]
    for method in ("GET", "HEAD"):
        badge = aws.wallet("/{wallet_id}/badge", method, wallet_id=mine)
        assert badge["label"] == "balance"
        assert aws.wallet("/{wallet_id}/badge.svg", method, wallet_id=mine).startswith("<svg")


def reach_on_every_path(aws: Aws) -> None:
    """Reach milestones by a fold, by a view that is counted at once, and by a new base."""
    secret = aws.own("POST", "goal")["secret"]
    aim = [{"count": count, "url": NOBODY_LISTENS} for count in (2, 3, 99)]
    assert aws.own("PATCH", "goal", secret, milestones=aim) == {"id": "goal"}
    aws.put(*views(2, "goal"))
    aws.now += 900
    aws.fold("goal")
    aws.put(*views(1, "goal", hot=True))
    aws.now = NOW
    assert aws.own("PATCH", "goal", secret, base=96) == {"id": "goal"}
    assert aws.own("GET", "goal", secret)["milestones"][-1]["reached"]
    events = [one for one in aws.list_events(Status.ACTIVE) if one.startswith("milestone-")]
    assert len(events) == len(aim)
    assert aws.own("PATCH", "goal", secret, digest="0" * 64) == {"id": "goal"}


def sweep_on_every_path(aws: Aws) -> None:
    """Sweep events that are due now, due soon and overdue, and again without new events."""
    first = aws.sweep()
    assert first["overdue"] == 0
    assert first["sent"] > 4
    missed = Event("missed", int(NOW * 1000) - 90_000, 0, Target(TargetKind.LOG), '""', "missed")
    aws.table.write(Put(missed.new_item()))
    assert aws.sweep() == {"sent": 1, "overdue": 1}
    assert aws.sweep() == {"sent": 0, "overdue": 0}
    aws.distribute(*_bodies(aws, DISTRIBUTION_QUEUE))


def fire_on_every_path(aws: Aws) -> None:
    """Fire to the log, a queue and a URL that fails until its last attempt; too early; unknown."""
    assert aws.fire("missed") == aws.fire("log") == aws.fire("log") == Status.SUCCESS
    assert aws.fire("queue") == Status.SUCCESS
    assert '"hello"' in _bodies(aws, EVENT_QUEUES)
    assert aws.fire("url") == Status.ACTIVE
    aws.table.write(Update(key("url"), values={"next_at": 0}))
    assert aws.fire("url") == Status.ERROR
    aws.accept("died", {"log": True})
    aws.table.write(Update(key("died"), values={"tries": 2, "claim": "dead", "lease": 1}))
    assert aws.fire("died") == Status.ERROR
    assert aws.fire("later") == Status.ACTIVE
    assert aws.fire("none") == ""


def _bodies(aws: Aws, queue: str) -> list[str]:
    received = aws.sqs.receive_message(QueueUrl=aws.urls[queue], MaxNumberOfMessages=10)
    return [message["Body"] for message in received["Messages"]]


def refuse_batches(aws: Aws) -> None:
    """Let DynamoDB refuse a batch because of one item: then each item is put alone."""

    class Raw(io.BytesIO):
        def stream(self, **_: object) -> Iterator[bytes]:
            yield self.read()

    refusal = {"__type": "com.amazon.coral.validate#ValidationException", "message": "an item"}

    def refuse(request: Any, **_: object) -> AWSResponse:
        return AWSResponse(request.url, 400, HTTPHeaders(), Raw(json.dumps(refusal).encode()))

    event = "before-send.dynamodb.BatchWriteItem"
    aws.dynamodb.meta.events.register_first(event, refuse)
    aws.put(*views(1, "refused"))
    aws.ask(id="refused")
    aws.dynamodb.meta.events.unregister(event, refuse)
    assert aws.live("refused") == 1 + 1


def ask_without_a_table(aws: Aws) -> None:
    """Request routes without a table and without a queue."""
    aws.dynamodb.delete_table(TableName="vu-mi")
    assert aws.ask(id="a") == "internal error, view not counted"
    assert aws.ask(id="a", peek="1") == "count unavailable: try again"
    assert aws.ask("/healthz")["error"]["code"] == "unavailable"


Walked: TypeAlias = Callable[[Aws], None]

OF_VIEWS = (own_on_every_path, put_on_every_path, fold_on_every_path, ask_on_every_path)
OF_EVENTS = (
    schedule_on_every_path,
    sweep_on_every_path,
    fire_on_every_path,
    reach_on_every_path,
)
OF_WALLETS = (move_money_on_every_path, archive_on_every_path)
AT_THE_END = (refuse_batches, ask_without_a_table)


@pytest.fixture(scope="module")
def by_path() -> dict[Walked, Asked]:
    """Return the requests of Chalice's functions on each path."""
    return walk(*OF_WALLETS, *OF_EVENTS, *OF_VIEWS)


@pytest.fixture(scope="module")
def all_asked(by_path: dict[Walked, Asked]) -> Asked:
    """Return the rights of Chalice's functions, and of `get_views` from the one stack."""
    asked = on_paths(by_path, *by_path)
    apart = walk(*OF_VIEWS, has_get_views=True)
    of_get_views = on_paths(apart, *apart)
    name = "get_views"
    return Asked(
        asked.rights | {name: of_get_views.rights[name]},
        asked.keys | {name: of_get_views.keys[name]},
        asked.routes,
    )


def on_paths(by_path: Mapping[Walked, Asked], *paths: Walked) -> Asked:
    """Return the requests on some of the walked paths."""
    together = Asked()
    for path in paths:
        together.add(by_path[path])
    return together


def walk(*paths: Walked, has_get_views: bool = False) -> dict[Walked, Asked]:
    """Walk paths of a new deployment; return the requests of its functions on each path."""
    with ExitStack() as stack:
        stack.enter_context(mock_aws())
        dynamodb, sqs, s3 = (
            stack.enter_context(closing(aws_client(name))) for name in ("dynamodb", "sqs", "s3")
        )
        s3.create_bucket(Bucket=BUCKET)
        stream = create_table(dynamodb, "vu-mi")
        names = {queue: queue.replace(".", "-") for queue in QUEUES}
        urls = {q: sqs.create_queue(QueueName=name)["QueueUrl"] for q, name in names.items()}
        aws = Aws(dynamodb, sqs, s3, stream, urls, has_get_views=has_get_views)
        stack.callback(resources.use, None)
        resources.use(aws)
        by_path = {}
        for path in (*paths, *AT_THE_END):
            aws.asked = by_path[path] = Asked()
            path(aws)
    return by_path


@pytest.fixture
def asked(all_asked: Asked) -> dict[str, set[Right]]:
    """Return the rights that each function uses on all its paths."""
    return all_asked.rights


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_may_do_what_it_does_and_nothing_else(
    asked: dict[str, set[Right]], function: str
) -> None:
    assert asked[function]
    allowed = rights(function, restored=False)
    own = lambdas_own(function, restored=False)
    assert own <= allowed
    assert allowed - own == asked[function]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_may_do_the_same_to_a_restored_table_and_no_more_to_the_old_one(
    asked: dict[str, set[Right]], function: str
) -> None:
    allowed = rights(function, restored=True)
    moved = {index(INDEX, restored=False): index(INDEX, restored=True)}
    moved[TABLE[False]] = TABLE[True]
    expected = {(action, moved.get(where, where)) for action, where in asked[function]}
    assert allowed == expected | lambdas_own(function, restored=True)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_reads_and_writes_its_kinds_of_items_and_no_others(
    all_asked: Asked, function: str
) -> None:
    assert kinds_of_items(function) == all_asked.keys[function]


def kinds_of_items(function: str, truths: Truths = ALL_FEATURES) -> set[Keys]:
    return {
        (_name(statement["Resource"], restored=False), keys)
        for statement in about_items(function, truths)
        for keys in leading_keys(statement)
    }


@pytest.mark.parametrize(
    ("on", "paths"), [("", ()), ("HasEvents", OF_EVENTS), ("HasWallets", OF_WALLETS)]
)
def test_the_api_has_no_right_of_a_feature_that_is_switched_off(
    by_path: dict[Walked, Asked], on: str, paths: tuple[Walked, ...]
) -> None:
    truths = dict.fromkeys(ALL_FEATURES, False) | ({on: True} if on else {})
    asked = on_paths(by_path, *OF_VIEWS, *paths, *AT_THE_END)
    own = lambdas_own("api_handler", restored=False)
    allowed = rights("api_handler", restored=False, truths=truths)
    assert allowed - own == asked.rights["api_handler"]
    assert kinds_of_items("api_handler", truths) == asked.keys["api_handler"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_all_statements_of_several_actions_on_the_table_name_the_same_keys(function: str) -> None:
    """AWS does not document which keys of a transaction belong to which of its actions."""
    by_resource: dict[str, set[tuple[str, ...]]] = {}
    for statement in about_items(function):
        if leading_keys(statement) == ["TOKEN#*"]:
            assert statement["Action"] == ["dynamodb:GetItem"]
            continue
        where = _name(statement["Resource"], restored=False)
        by_resource.setdefault(where, set()).add(tuple(leading_keys(statement)))
    assert all(len(patterns) == 1 for patterns in by_resource.values())


def test_every_route_of_the_api_is_called(all_asked: Asked) -> None:
    """Call a new route in the functions above, because it may need other rights."""
    routes = {(method, path) for path, methods in app.routes.items() for method in methods}
    assert all_asked.routes == routes


def test_without_event_queues_the_statement_repeats_another_right() -> None:
    """IAM rejects a statement without a resource."""
    statements = {part["Sid"]: part for part in policy("fire_timers")["Statement"]}
    choice = statements["DeliverEventsToQueues"]["Resource"]["Fn::If"]
    otherwise = statements["EnqueueEventsAgain"]
    assert choice == ["HasEventQueues", {"Ref": "EventQueueArns"}, otherwise["Resource"]]
    assert otherwise["Action"] == statements["DeliverEventsToQueues"]["Action"]


# ---- the contents of the policies


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_policy_only_allows_and_each_statement_has_a_name(function: str) -> None:
    read = policy(function)
    assert set(read) == {"Version", "Statement"}
    assert read["Version"] == "2012-10-17"
    statements = read["Statement"]
    for statement in statements:
        assert set(statement) - {"Condition"} == {"Sid", "Effect", "Action", "Resource"}
        assert ("Condition" in statement) == (statement in about_items(function))
        assert statement["Effect"] == "Allow"
    assert len({statement["Sid"] for statement in statements}) == len(statements)
    given = [
        (action, json.dumps([statement["Resource"], statement.get("Condition")]))
        for statement in statements
        for action in statement["Action"]
    ]
    assert len(set(given)) == len(given)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_statement_covers_all_resources(function: str) -> None:
    """A `*` follows only the function's own log, its streams, and the archive."""
    for statement in policy(function)["Statement"]:
        assert isinstance(statement["Action"], list)
        assert not [action for action in statement["Action"] if "*" in action]
    for restored in (False, True):
        named = {where for _, where in rights(function, restored=restored)}
        with_stars = {where for where in named if "*" in where}
        assert with_stars <= {f"{LOG}{function}:*", STREAMS[restored], ARCHIVE}
        queried = index(INDEX, restored=restored)
        assert named <= {TABLE[restored], queried, STREAM[restored], *QUEUES} | with_stars


def test_chalice_uses_these_policies_unchanged() -> None:
    config = json.loads((FOLDER / "config.json").read_text())
    assert config["autogen_policy"] is False
    assert {
        function: settings["iam_policy_file"]
        for function, settings in config["lambda_functions"].items()
    } == {function: f"policies/{function}.json" for function in OF_CHALICE}
