"""Requests to the tables of routes, as a server without its own router sends them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from chalicelib.api import ProcessResources, table_of
from chalicelib.counting.view import View, ViewMessages
from chalicelib.http import query
from chalicelib.http.dispatch import dispatch
from chalicelib.http.messages import Request, Response
from chalicelib.resources import Action
from chalicelib.storage.items import Item, Key
from simulation.clocks import Clock
from simulation.resources import GivenResources, Host
from simulation.storage import FakeQueue, FaultyTable, MemoryTable
from vumi.server.clients import ClientLimits, Rate


@dataclass(frozen=True)
class Answer:
    """A response as its caller reads it."""

    response: Response

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def headers(self) -> dict[str, str]:
        return dict(self.response.headers)

    @property
    def text(self) -> str:
        return self.response.body.decode()

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def refusal(self) -> tuple[int, str]:
        """Return the status and the code of an error in the usual form.

        Its message is not empty.
        """
        assert set(self.body) == {"error"}
        assert self.says
        assert self.headers["Content-Type"] == "application/json"
        assert self.headers["Cache-Control"] == "no-store"
        return self.status, str(self.body["error"]["code"])

    @property
    def says(self) -> str:
        return str(self.body["error"]["message"])

    @property
    def details(self) -> dict[str, str]:
        """Return the fields of an error other than its code and message."""
        error = self.body["error"]
        return {name: error[name] for name in error.keys() - {"code", "message"}}


def read_badge(
    ask: Callable[[str], Answer], path: str, query: str = ""
) -> tuple[str, str, str, bool]:
    """Return a badge's label, message, colour and error flag; check its status and headers."""
    said, drawn = (ask(f"{path}{form}{query}") for form in ("", ".svg"))
    for answer, kind in ((said, "application/json"), (drawn, "image/svg+xml;charset=utf-8")):
        assert answer.status == 200
        assert answer.headers["Content-Type"] == kind
        assert answer.headers["Cache-Control"].startswith("max-age=0, no-cache, no-store")
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
    badge = said.body
    assert drawn.text.startswith("<svg")
    assert badge["message"] in drawn.text
    return badge["label"], badge["message"], badge["color"], badge.get("isError", False)


def ask(  # noqa: PLR0913  what a request has
    resources: ProcessResources,
    method: str,
    target: str,
    body: object = b"",
    *,
    kind: str = "application/json",
    authorization: str = "",
    client: str = "",
    **more: str,
) -> Answer:
    """Send a request to its route; a body that is not bytes is sent as JSON.

    `more` are headers, with underscores for hyphens.
    """
    named = {name.replace("_", "-"): value for name, value in more.items()}
    headers = {"content-type": kind, "authorization": authorization, **named}
    request = Request(
        method,
        target.partition("?")[0],
        query=query.parse(target.partition("?")[2]),
        headers={name: value for name, value in headers.items() if value},
        body=body if isinstance(body, bytes) else json.dumps(body).encode(),
        client=client,
    )
    return Answer(dispatch(table_of(resources.settings.drop_in), request, resources))


@dataclass
class Api:
    """The routes over a table in memory whose steps a test may set, a queue of views, and a host.

    It is noon, unless a test sets the clock.
    """

    table: FaultyTable = field(default_factory=lambda: FaultyTable(MemoryTable()))
    queue: FakeQueue = field(default_factory=FakeQueue)
    host: Host = field(default_factory=Host)
    clock: Clock = field(default_factory=Clock)
    resources: GivenResources = field(init=False)

    def __post_init__(self) -> None:
        self.resources = GivenResources(
            self.table, ViewMessages(self.queue), clock=self.clock, fetcher=self.host
        )

    def ask(
        self, method: str, target: str, body: object = b"", token: str = "", **more: Any
    ) -> Answer:
        """Send a request, with a token or the secret of a badge."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return ask(self.resources, method, target, body, **{**headers, **more})

    def set(self, **settings: Any) -> None:
        """Replace settings."""
        self.resources.settings = replace(self.resources.settings, **settings)

    def limit(self, **rates: Rate) -> None:
        """Limit the actions of each client, which are named in capitals."""
        limited = {Action[name]: rate for name, rate in rates.items()}
        self.resources.limits = ClientLimits(limited, self.clock)

    @property
    def views(self) -> list[View]:
        """Return the views in the queue."""
        return [View.from_message(body) for body in self.queue.bodies]

    @property
    def viewed(self) -> list[str]:
        """Return the ids of the views in the queue."""
        return [view.badge_id for view in self.views]

    @property
    def items(self) -> dict[Key, Item]:
        """Return a copy of all that is stored."""
        assert isinstance(self.table.table, MemoryTable)
        return {**self.table.table.items}
