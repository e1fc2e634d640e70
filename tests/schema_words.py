"""The words for a schema of the OpenAPI description, for the tables of the HTTP reference."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
LONGEST_PATTERN = 40
"""Longer patterns, and those of code points, are only in the OpenAPI description."""
ANY = "any JSON"
FORMATS = {
    "date": "day (`2026-11-21`)",
    "date-time": "time (`2026-11-21T10:00:00.000Z`)",
    "uri": "URL",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a JSON object, by its path: `views[].day`."""

    name: str
    is_required: bool
    values: str
    meaning: str


class Words:
    """The words for schemas, with the components of a document in place of references."""

    def __init__(self, document: Json) -> None:
        self._components = document["components"]

    def resolve(self, part: Json) -> Json:
        """Return a part whose own reference is replaced by its component."""
        if "$ref" not in part:
            return part
        _, _, kind, name = part["$ref"].split("/")
        more = {key: value for key, value in part.items() if key != "$ref"}
        return self.resolve(self._components[kind][name]) | more

    def fields(self, schema: Json, prefix: str = "") -> dict[str, Field]:
        """Return the fields of an object, and of the objects inside, by their paths."""
        schema = self.resolve(schema)
        found: dict[str, Field] = {}
        for name, part in schema.get("properties", {}).items():
            inner = self.resolve(part)
            required = name in schema.get("required", ())
            path = f"{prefix}{name}"
            found[path] = Field(path, required, self.values(part), inner.get("description", ""))
            found |= self.fields(part, f"{path}.") | self._items(inner, f"{path}[].")
        for choice in schema.get("oneOf", ()):
            found = self.fields(choice, prefix) | found
        return found

    def _items(self, schema: Json, prefix: str) -> dict[str, Field]:
        return self.fields(schema["items"], prefix) if "items" in schema else {}

    def values(self, schema: Json) -> str:
        """Return the values that a schema allows."""
        schema = self.resolve(schema)
        default = schema.get("default", "")
        shown = f"; `{_literal(default)}` if none is given" if default != "" else ""
        return self._values(schema) + shown

    def _values(self, schema: Json) -> str:
        if "const" in schema:
            return f"`{_literal(schema['const'])}`"
        if "enum" in schema:
            return ", ".join(f"`{_literal(value)}`" for value in schema["enum"])
        choices = schema.get("oneOf") or schema.get("anyOf")
        if choices and "properties" not in schema:
            return " or ".join(dict.fromkeys(self.values(choice) for choice in choices))
        kinds = schema.get("type", ANY)
        kinds = kinds if isinstance(kinds, list) else [kinds]
        return " or ".join(KINDS[kind](schema) for kind in kinds)


def _literal(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _number(schema: Json, name: str) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if most is not None:
        return f"{name}, {least:,} to {most:,}"
    return f"{name}, {least:,} or more" if least is not None else name


def _text(schema: Json) -> str:
    return ", ".join(_text_parts(schema))


def _text_parts(schema: Json) -> Iterator[str]:
    yield FORMATS.get(schema.get("format", ""), "text")
    least, most = schema.get("minLength"), schema.get("maxLength")
    if most and least == most:
        yield f"{most} characters"
    elif most:
        yield f"{least} to {most:,} characters" if least else f"at most {most:,} characters"
    pattern = schema.get("pattern", "")
    is_short = len(pattern) <= LONGEST_PATTERN and "\\u" not in pattern
    if pattern and is_short and "format" not in schema:
        yield f"`{pattern}`"


KINDS: Mapping[str, Callable[[Json], str]] = {
    ANY: lambda _: ANY,
    "null": lambda _: "`null`",
    "boolean": lambda _: "`true`, `false`",
    "integer": lambda schema: _number(schema, "whole number"),
    "number": lambda schema: _number(schema, "number"),
    "string": _text,
    "object": lambda _: "object",
    "array": lambda schema: f"list of at most {schema['maxItems']}",
}
