"""The declaration of a field: of an option of a query, or of a field of a body.

There is one for each. From it come the names that a route accepts, the values and their errors, the
schemas and words in `/openapi.json`, and the tables of the documents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, overload

from chalicelib.http.errors import BadRequestError, TooLargeError
from chalicelib.http.messages import Query
from chalicelib.http.query import among, whole_number

MAX_BYTES = 262_144
"""Bytes of a body."""
MAX_DEPTH = 100
"""Levels of JSON. A deeper value might be stored, but not read again where the stack is deeper."""
REQUIRED: Any = object()
NEXT_PAGE = "The `cursor` of the page before; none for the first page."

Json: TypeAlias = dict[str, Any]
Value = TypeVar("Value")


class Component(Json):
    """A reference to a part of the description that is written once, under `components`."""

    def __init__(self, kind: str, name: str, content: Json, **more: Any) -> None:
        super().__init__({"$ref": f"#/components/{kind}/{name}"}, **more)
        self.kind, self.name, self.content = kind, name, content

    def __or__(self, more: Any) -> Component:  # type: ignore[override]
        """Return the reference with more keys beside it."""
        return Component(self.kind, self.name, self.content, **{**self, **more})


class Field(Generic[Value]):
    """An option or a field. Its name is that of its attribute, unless another one is given.

    `parse` raises `ValueError`, whose message says what to give. Without a `default`, the field is
    required, and `parse` gets None if it is missing. An empty option counts as missing unless it
    `may_be_empty`. A `schema` that would import a module for a badge is a function.
    """

    def __init__(  # noqa: PLR0913  everything about a field
        self,
        parse: Callable[[Any], Value],
        schema: Json | Callable[[], Json],
        words: str = "",
        *,
        name: str = "",
        default: Value = REQUIRED,
        example: object = None,
        may_be_empty: bool = False,
    ) -> None:
        self.parse, self.schema, self.words, self.example = parse, schema, words, example
        self.name, self.default, self.may_be_empty = name, default, may_be_empty
        self.attribute = self.owner = ""

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.attribute, self.name = attribute, self.name or attribute
        self.owner = owner.__name__

    @overload
    def __get__(self, instance: None, owner: type) -> Field[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object, owner: type) -> Field[Value] | Value:
        """Return the declaration. An instance has the value in its own `__dict__`."""
        return self

    @property
    def is_required(self) -> bool:
        """Return whether the field has no default."""
        return self.default is REQUIRED

    @property
    def ignores_empty(self) -> bool:
        """Return whether an empty option counts as missing."""
        return not (self.is_required or self.may_be_empty)

    @property
    def content(self) -> Json:
        """Return the schema."""
        return self.schema() if callable(self.schema) else self.schema

    def read(self, given: object) -> Value:
        """Return the value. Raises `BadRequestError`, which names the field."""
        try:
            return self.parse(given)
        except BadRequestError:
            raise
        except ValueError as wrong:
            raise BadRequestError(f"{self.name}: {wrong}") from None

    def read_option(self, values: Sequence[str]) -> Value:
        """Return the value of an option, which may be given once."""
        if len(values) > 1:
            raise BadRequestError(f"{self.name}: give one, not {len(values)}")
        given = values[0] if values else None
        if not self.is_required and (given is None or (given == "" and not self.may_be_empty)):
            return self.default
        return self.read(given)


class Repeated(Field[tuple[Value, ...]]):
    """An option that is given once or several times, at most `most` times.

    `parse` gets None if it is missing. `rules` are further parts of the schema.
    """

    def __init__(  # noqa: PLR0913  everything about a field
        self,
        parse: Callable[[str | None], Value],
        schema: Json,
        words: str,
        *,
        most: int,
        name: str,
        example: Sequence[str],
        **rules: Any,
    ) -> None:
        def parse_all(values: Sequence[str]) -> tuple[Value, ...]:
            return tuple(map(parse, values or (None,)))

        listed = array(schema, most, minItems=1, **rules)
        super().__init__(parse_all, listed, words, name=name, example=example)
        self.most = most

    def read_option(self, values: Sequence[str]) -> tuple[Value, ...]:
        """Return the values of an option, in the order in which they were given."""
        if len(values) > self.most:
            raise BadRequestError(f"{self.name}: give at most {self.most}, not {len(values)}")
        return self.read(values)


class _Fields:
    """Fields that are declared together: those of the class and of its bases, by their names."""

    fields: ClassVar[Mapping[str, Field[Any]]] = {}
    _defaults: ClassVar[Mapping[str, Any]] = {}
    _required: ClassVar[Sequence[str]] = ()

    def __init_subclass__(cls) -> None:
        parts = [part for base in reversed(cls.__mro__) for part in vars(base).values()]
        cls.fields = {part.name: part for part in parts if isinstance(part, Field)}
        cls._defaults = {field.attribute: field.default for field in cls.fields.values()}
        cls._required = tuple(name for name, field in cls.fields.items() if field.is_required)

    def _fill(self, given: Collection[str], read: Callable[[Field[Any]], Any]) -> None:
        """Set the value of each field that is given or required, and the default of the others.

        The fields that are not given are most of them, and are not looked at.
        """
        values = self.__dict__
        values.update(self._defaults)
        missing = [name for name in self._required if name not in given]
        for name in (*given, *missing):
            if field := self.fields.get(name):
                values[field.attribute] = read(field)


class Options(_Fields):
    """The options of a query. An attribute of the class is a declaration, of an instance a value.

    Raises `BadRequestError`.
    """

    def __init__(self, query: Query | None = None) -> None:
        given = query or {}
        self._fill(given, lambda field: field.read_option(given.get(field.name, ())))


class Body(_Fields):
    """A body: a JSON object with these fields and no other, `given` as it came.

    Raises `BadRequestError` and `TooLargeError`.
    """

    max_bytes: ClassVar[int] = MAX_BYTES
    rules: ClassVar[Json] = {}
    """The part of the schema that is about several fields."""

    def __init__(self, body: bytes) -> None:
        self.given = _read_object(body, self.fields, self.max_bytes)
        self._fill(self.given, lambda field: field.read(self.given.get(field.name)))


def number(known: range, words: str, default: int, **more: Any) -> Field[int]:
    """Declare a whole number."""
    schema = integer(known[0], known[-1], default=default)
    return Field(partial(whole_number, known), schema, words, default=default, **more)


def choice(values: Callable[[], Collection[str]], words: str, default: str) -> Field[str]:
    """Declare a text that is one of these values; an empty default means the first one."""
    return Field(
        lambda given: among(values(), given),
        lambda: enum(values(), **present(default=default)),
        words,
        default=default,
    )


def boolean(given: object) -> bool:
    """Return true or false. Raises `ValueError` for anything else."""
    if isinstance(given, bool):
        return given
    raise ValueError("give true or false")


def text_like(pattern: re.Pattern[str], wanted: str) -> Callable[[object], str]:
    """Return a parser of texts that match a pattern. Its error has the words `wanted`."""

    def parse(given: object) -> str:
        if isinstance(given, str) and pattern.fullmatch(given):
            return given
        raise ValueError(wanted)

    return parse


def check_empty(body: bytes) -> None:
    """Raise `BadRequestError` for a body where the query has everything."""
    if body:
        raise BadRequestError(f"the body has {len(body)} bytes: send none, all is in the query")


def _read_object(body: bytes, known: Collection[str], most: int) -> Mapping[str, Any]:
    if len(body) > most:
        raise TooLargeError(f"the body has {len(body)} bytes: give at most {most}")
    try:
        fields = json.loads(body, object_pairs_hook=_once)
    except BadRequestError:
        raise
    except (ValueError, RecursionError):
        raise BadRequestError("the body must be a JSON object") from None
    if not isinstance(fields, dict):
        raise BadRequestError("the body must be a JSON object")
    if unknown := sorted(fields.keys() - known):
        raise BadRequestError(f"no field {unknown[0][:30]!r}: there are {', '.join(sorted(known))}")
    _check_depth(fields, MAX_DEPTH)
    return fields


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse a repeated name, because JSON does not define its value."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise BadRequestError(f"{name[:30]!r} is given twice: give it once")
        fields[name] = value
    return fields


def _check_depth(value: object, left: int) -> None:
    if isinstance(value, dict | list):
        if not left:
            raise BadRequestError(f"the body is too deep: give at most {MAX_DEPTH} levels of JSON")
        for inner in value.values() if isinstance(value, dict) else value:
            _check_depth(inner, left - 1)


# ---- schemas


def without(*names: str) -> Json:
    """Return the schema of an object that has none of these fields."""
    return {"not": {"anyOf": [{"required": [name]} for name in names]}}


def present(**parts: Any) -> Json:
    """Return the parts that are not empty."""
    return {name: part for name, part in parts.items() if part}


def schema(name: str, content: Json, words: str = "") -> Component:
    """Return a named schema."""
    return Component("schemas", name, content | present(description=words))


def string(pattern: re.Pattern[str] | str = "", **more: Any) -> Json:
    """Return the schema of a text, all of which matches the pattern."""
    text = pattern if isinstance(pattern, str) else pattern.pattern
    return {"type": "string", **({"pattern": f"^{text}$"} if text else {}), **more}


def integer(least: int = 0, most: int | None = None, **more: Any) -> Json:
    """Return the schema of a whole number."""
    return {"type": "integer", "minimum": least, **present(maximum=most), **more}


def nullable(content: Json, words: str = "") -> Json:
    """Return the schema of a value or null."""
    return {"oneOf": [content, {"type": "null"}], **present(description=words)}


def enum(values: Iterable[str], **more: Any) -> Json:
    """Return the schema of a text that is one of these values."""
    return {"type": "string", "enum": [*values], **more}


def array(items: Any, most: int, **more: Any) -> Json:
    """Return the schema of a list."""
    return {"type": "array", "maxItems": most, "items": items, **more}


def closed(required: Json, optional: Json | None = None, **more: Any) -> Json:
    """Return the schema of an object with these fields and no other."""
    properties = required | (optional or {})
    fields = {"type": "object", "additionalProperties": False, "properties": properties}
    return fields | present(required=[*required]) | more


def record(name: str, required: Json, optional: Json | None = None, **more: Any) -> Component:
    """Return the named schema of an object with these fields and no other."""
    return schema(name, closed(required, optional, **more))
