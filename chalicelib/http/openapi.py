"""The vocabulary of the OpenAPI description: each feature describes its routes with it.

A `description.py` says only what the code does not: texts and examples. Limits, enums, patterns and
defaults are the constants of the code, the docstring of a handler is the summary of its route, and
the docstring of an exception describes its error. `chalicelib/description.py` makes the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from chalicelib.http.errors import ClientError

Json: TypeAlias = dict[str, Any]
"""A part of the document. A `Component` in it stands for the reference to the component."""


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the document with a name. The document has it once, under `components`."""

    kind: str
    name: str
    content: Json

    def reference(self, **more: Any) -> Json:
        """Return a reference to the component with more keys beside it."""
        return {"$ref": self, **more}


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error of an operation. `required` and `optional` are fields beside code and message."""

    name: str
    status: int
    codes: Sequence[str]
    description: str
    headers: Json = field(default_factory=dict)
    required: Json = field(default_factory=dict)
    optional: Json = field(default_factory=dict)

    @classmethod
    def of(cls, error: type[ClientError], name: str = "", **more: Any) -> Refusal:
        """Return an error that a feature raises. Its docstring is the description."""
        headers = {
            header: {"required": True, "schema": {"const": value}}
            for header, value in error.headers.items()
        }
        known = {"codes": [error.code], "description": error.__doc__, "headers": headers}
        return cls(name or error.__name__.removesuffix("Error"), error.status, **known | more)


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path: everything that its route and the docstring of its handler don't say.

    `parameters` are those of the query, `body` is the content of the request, `responses` are the
    successes by status, `refusals` the errors of only this operation. `security` is the scheme of
    an operation that checks a secret itself. An operation that can't fail returns a badge or a file
    whatever happens.
    """

    name: str
    description: str = ""
    parameters: Sequence[Component] = ()
    body: Json | None = None
    responses: Mapping[int, Component | Json] = field(default_factory=dict)
    refusals: Sequence[Refusal | type[ClientError]] = ()
    security: Component | None = None
    can_fail: bool = True
    is_deprecated: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """The operations of a tag, each under its method and path, and the parameters of the paths."""

    tag: str
    description: str
    operations: Mapping[str, Operation]
    path_parameters: Sequence[Component] = ()


def present(**parts: Any) -> Json:
    """Return the parts that are not empty."""
    return {name: part for name, part in parts.items() if part}


# ---- schemas


def schema(name: str, content: Json, description: str = "") -> Component:
    """Return a named schema."""
    return Component("schemas", name, content | present(description=description))


def string(pattern: re.Pattern[str] | None = None, **more: Any) -> Json:
    """Return the schema of a text, all of which matches the pattern."""
    return {"type": "string", **({"pattern": f"^{pattern.pattern}$"} if pattern else {}), **more}


def integer(least: int = 0, most: int | None = None, **more: Any) -> Json:
    """Return the schema of a whole number."""
    return {"type": "integer", "minimum": least, **present(maximum=most), **more}


def enum(values: Iterable[str], **more: Any) -> Json:
    """Return the schema of a text that is one of these values."""
    return {"type": "string", "enum": [*values], **more}


def array(items: Any, most: int, **more: Any) -> Json:
    """Return the schema of a list."""
    return {"type": "array", "maxItems": most, "items": items, **more}


def fields(required: Json, optional: Json | None = None, **more: Any) -> Json:
    """Return the schema of an object with these fields and no other."""
    properties = required | (optional or {})
    closed = {"type": "object", "additionalProperties": False, "properties": properties}
    return closed | present(required=[*required]) | more


def record(name: str, required: Json, optional: Json | None = None, **more: Any) -> Component:
    """Return the named schema of an object with these fields and no other."""
    return schema(name, fields(required, optional, **more))


# ---- requests


def query_parameter(
    name: str, content: Any, description: str, *, component: str = "", **more: Any
) -> Component:
    """Return a parameter of the query. An empty one counts as not given."""
    parameter = {"name": name, "in": "query", "description": description, "schema": content}
    parameter |= {"allowEmptyValue": True, **more}
    return Component("parameters", component or _upper_camel(name), parameter)


def path_parameter(name: str, content: Component, description: str, example: str) -> Component:
    """Return a parameter of the path."""
    parameter = {"name": name, "in": "path", "required": True, "description": description}
    parameter |= {"schema": content, "example": example}
    return Component("parameters", _upper_camel(name), parameter)


def json_content(content: Any, example: Any = None, **examples: Any) -> Json:
    """Return a content of JSON with an example or several named ones."""
    named = {name: {"value": value} for name, value in examples.items()}
    return {"application/json": {"schema": content, **present(example=example, examples=named)}}


# ---- responses


def header(name: str, description: str, content: Json) -> Component:
    """Return a header that a response always has."""
    required = {"required": True, "description": description, "schema": content}
    return Component("headers", name, required)


NOT_STORED = header("NotStored", "No cache may store it.", {"const": "no-store"})


def success(
    content: Any = None,
    description: str = "",
    *,
    example: Any = None,
    examples: Mapping[str, Any] | None = None,
    links: Mapping[str, Json] | None = None,
) -> Json:
    """Return a response that no cache may store.

    Each of the `examples` answers the request's example of the same name.
    """
    body = content and json_content(content, example, **(examples or {}))
    cached = {"headers": {"Cache-Control": NOT_STORED}}
    return cached | present(description=description, content=body, links=links)


def link(operation: str, id_parameter: str = "", description: str = "", **more: str) -> Json:
    """Return a link to an operation, one parameter of which is the `id` of the response."""
    parameters = more | ({id_parameter: "$response.body#/id"} if id_parameter else {})
    return {"operationId": operation, "parameters": parameters, **present(description=description)}


CODE = string(description="The reason, for a program.")
MESSAGE = string(description="The reason, for a person.", minLength=1)
ERROR = record("Error", {"error": fields({"code": CODE, "message": MESSAGE})})


def error_response(refusals: Sequence[Refusal]) -> Component:
    """Return the response for several errors of the same status."""
    codes = [code for refusal in refusals for code in refusal.codes]
    code = {"const": codes[0]} if len(codes) == 1 else {"enum": codes}
    error: Json = ERROR.reference(properties={"error": {"properties": {"code": code}}})
    first, *_ = refusals
    if first.required or first.optional:
        required = {"code": code, "message": MESSAGE} | first.required
        error = fields({"error": fields(required, first.optional)})
    response = {
        "description": " ".join(refusal.description for refusal in refusals),
        **present(headers=first.headers),
        "content": json_content(error),
    }
    return Component("responses", "Or".join(refusal.name for refusal in refusals), response)


def _upper_camel(name: str) -> str:
    return "".join(word[0].upper() + word[1:] for word in name.split("_"))
