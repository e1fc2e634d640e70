"""The vocabulary of the OpenAPI description: each feature describes its operations with it.

A `description.py` says only what the code does not: the texts, responses and errors of operations.
The options and bodies are declared where they are read, the docstring of a handler is the summary
of its route, and the docstring of an exception describes its error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chalicelib.http.errors import ClientError, TooLargeError
from chalicelib.http.fields import (
    Body,
    Component,
    Field,
    Json,
    closed,
    integer,
    present,
    record,
    schema,
    string,
)

ISO_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"
MOMENT = schema(
    "Moment", string(re.compile(ISO_MOMENT), format="date-time"), "In UTC, to the millisecond."
)
ERROR = record(
    "Error",
    {
        "error": closed(
            {
                "code": string(description="The reason, for a program."),
                "message": string(description="The reason, for a person.", minLength=1),
            }
        )
    },
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error of an operation. `details` are fields beside code and message, which may miss."""

    name: str
    status: int
    codes: Sequence[str]
    words: str
    headers: Json = field(default_factory=dict)
    details: Json = field(default_factory=dict)

    @classmethod
    def of(cls, error: type[ClientError], **details: Any) -> Refusal:
        """Return an error that a feature raises. Its docstring is the description."""
        headers = {
            header: {"required": True, "schema": {"const": value}}
            for header, value in error.headers.items()
        }
        name = error.__name__.removesuffix("Error")
        words = " ".join((error.__doc__ or "").split())
        return cls(name, error.status, [error.code], words, headers, details)


@dataclass(frozen=True, slots=True)
class Operation:
    """Everything about a handler that its routes and its docstring don't say.

    `body` is the content of the request, `responses` are the successes by status, `refusals` the
    errors of only this operation. `has_secret` says that the
    handler checks the badge's secret.
    """

    words: str = ""
    responses: Mapping[int, Json] = field(default_factory=dict)
    refusals: Sequence[Refusal | type[ClientError]] = ()
    body: Json | None = None
    has_secret: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """The operations of a tag by their names, and the parameters of their paths."""

    tag: str
    words: str
    operations: Mapping[str, Operation]
    path_fields: Mapping[str, Field[str]] = field(default_factory=dict)


def json_content(content: Any, example: Any = None, **examples: Any) -> Json:
    """Return a content of JSON with an example or several named ones."""
    named = {name: {"value": value} for name, value in examples.items()}
    return {"application/json": {"schema": content, **present(example=example, examples=named)}}


def body_of(kind: type[Body], example: Any = None, **examples: Any) -> Json:
    """Return the content of a request with a body."""
    required = {name: schema_of(one) for name, one in kind.fields.items() if one.is_required}
    optional = {name: schema_of(one) for name, one in kind.fields.items() if not one.is_required}
    content = record(kind.__name__, required, optional, description=kind.__doc__, **kind.rules)
    return json_content(content, example, **examples)


def schema_of(declared: Field[Any]) -> Json:
    """Return the schema of a field of a body, with its words."""
    return declared.content | present(description=declared.words)


def success(content: Any = None, words: str = "Done", example: Any = None, **examples: Any) -> Json:
    """Return a response. Each of the `examples` answers the request's one of the same name."""
    body = content and json_content(content, example, **examples)
    return {"description": words, **present(content=body)}


HTML: Json = {"description": "A page", "content": {"text/html": {}}}


def error_response(refusals: Sequence[Refusal]) -> Component:
    """Return the response for several errors of a status, with a line of words for each code."""
    codes = [code for refusal in refusals for code in refusal.codes]
    code = {"const": codes[0]} if len(codes) == 1 else {"enum": codes}
    first, *_ = refusals
    message = string(description="The reason, for a person.", minLength=1)
    error = closed({"error": closed({"code": code, "message": message}, first.details)})
    response = {
        "description": "\n".join(refusal.words for refusal in refusals),
        **present(headers=first.headers),
        "content": json_content(error),
    }
    return Component("responses", "Or".join(refusal.name for refusal in refusals), response)


RETRY_AFTER = {
    "Retry-After": {"required": True, "description": "Seconds to wait.", "schema": integer(1)}
}
TOO_LARGE = Refusal.of(TooLargeError)
TOO_MANY_REQUESTS = Refusal(
    "TooManyRequests",
    429,
    ["too_many_requests"],
    "On AWS: there are more requests than the API serves. On one machine: there are more from the"
    " client's address than the operator allows. This one counted and changed nothing.",
    RETRY_AFTER,
)
INTERNAL = Refusal("Internal", 500, ["internal"], "A fault of the server. The log has it.")
UNAVAILABLE = Refusal(
    "Unavailable",
    503,
    ["unavailable"],
    "The table does not answer. Nothing is half-done.",
    RETRY_AFTER,
)
