"""Requests to the table of routes, as a server without its own router sends them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from chalicelib.api import TABLE, ProcessResources
from chalicelib.http import query
from chalicelib.http.dispatch import dispatch
from chalicelib.http.messages import Request, Response


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
    path, _, raw_query = target.partition("?")
    named = {name.replace("_", "-"): value for name, value in more.items()}
    headers = {"content-type": kind, "authorization": authorization, **named}
    request = Request(
        method,
        path,
        query=query.parse(raw_query),
        headers={name: value for name, value in headers.items() if value},
        body=body if isinstance(body, bytes) else json.dumps(body).encode(),
        client=client,
    )
    return Answer(dispatch(TABLE, request, resources))
