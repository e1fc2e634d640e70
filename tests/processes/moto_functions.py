"""The functions over moto, with the rights that their requests to AWS need.

A path is a function that calls them.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlencode

from moto import mock_aws

from app import app
from chalicelib.aws import consumers, get_views, resources
from chalicelib.aws.clients import S3Archive, aws_client
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.aws.sqs import SqsQueue
from chalicelib.counting import keys
from chalicelib.counting.bans import TimedBans
from chalicelib.counting.view import View, ViewMessages
from chalicelib.events import sender
from chalicelib.events.event import message
from chalicelib.events.sender import sender_of
from chalicelib.events.webhook_schedule import EventSchedule
from chalicelib.http.messages import Caller, Role
from chalicelib.settings import Settings
from simulation import aws_events as events
from simulation.aws_table import create_table
from simulation.resources import GivenResources, Host
from tests.processes.policies import (
    ARCHIVE,
    DELIVERY_QUEUE,
    DISTRIBUTION_QUEUE,
    EVENT_QUEUES,
    PUBLIC,
    QUEUE,
    QUEUES,
    TABLE,
    Keys,
    Right,
    actions,
    names_in,
    partitions,
    pattern,
)

NOW = 1_767_225_600.0
MARK = 1_767_225_900
"""The end of the window that begins now."""
DAY = 86_400
BUCKET = "vu-mi-archive"
NOBODY_LISTENS = "https://127.0.0.1:9/"
"""The port of the discard protocol, which no machine serves any more."""
SETTINGS = Settings(
    webhook_secrets=(sender.new_secret(),),
    webhook_allow="127.0.0.0/8",
    event_queues={"orders": "its URL, once it has one"},
    retry_seconds=(5,),
)
"""Two attempts for each event."""


Used: TypeAlias = set[tuple[str, str, Right | Keys]]
"""The functions with their `rights` and their `keys`, and the `routes` that were called."""


def of_function(used: Used, function: str, kind: str) -> set[Right | Keys]:
    return {one for name, of_kind, one in used if (name, of_kind) == (function, kind)}


@dataclass
class Aws:
    """The functions over a deployed table, its queues and its archive, with their requests."""

    clients: Mapping[str, Any]
    urls: Mapping[str, str]
    has_get_views: bool
    """Whether `get_views` answers its routes, as in the one stack."""
    used: Used = field(default_factory=set)
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
        for action in actions(service, model.name, params):
            self.used.add((self.running, "rights", (action, where)))
        for key in partitions(params) if service == "dynamodb" else ():
            self.used.add((self.running, "keys", (where, pattern(key))))

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
        self.used.add(("", "routes", (method, path)))
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


Path: TypeAlias = Callable[[Aws], None]


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
        by_path: dict[Path, Used] = {}
        for path in paths:
            aws.now = NOW
            aws.used = by_path[path] = set()
            path(aws)
    return by_path
