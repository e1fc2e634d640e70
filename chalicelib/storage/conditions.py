"""The conditions of writes: a small syntax tree, which each engine reads in its own way.

    attr("status") == "active"
    attr("version").missing() | (attr("version") <= 3)

`chalicelib.aws.dynamodb` renders a condition for DynamoDB, `vumi.storage.table` evaluates it. A
missing attribute is equal to no value, and in no order with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias

from chalicelib.storage.items import Value


class _Combinable:
    """The operators `&` and `|` of every condition."""

    __slots__ = ()

    def __and__(self: Any, other: Condition) -> Combination:
        return Combination(self, "AND", other)

    def __or__(self: Any, other: Condition) -> Combination:
        return Combination(self, "OR", other)

    def __bool__(self) -> NoReturn:
        raise TypeError("a condition is neither true nor false: combine conditions by & and |")


@dataclass(frozen=True, slots=True)
class Comparison(_Combinable):
    """An attribute compared with a value, by an operator in DynamoDB's notation."""

    name: str
    operator: Literal["=", "<", "<=", ">", ">="]
    value: Value


@dataclass(frozen=True, slots=True)
class Presence(_Combinable):
    """An attribute exists, or it is missing."""

    name: str
    exists: bool


@dataclass(frozen=True, slots=True)
class Combination(_Combinable):
    """Two conditions of which both, or at least one, must hold."""

    left: Condition
    operator: Literal["AND", "OR"]
    right: Condition


Condition: TypeAlias = Comparison | Presence | Combination


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:  # noqa: PLW1641  its == makes a condition
    """An attribute of an item, from which conditions are made."""

    name: str

    def exists(self) -> Presence:
        return Presence(self.name, exists=True)

    def missing(self) -> Presence:
        return Presence(self.name, exists=False)

    def __eq__(self, value: Value) -> Comparison:  # type: ignore[override]
        return Comparison(self.name, "=", value)

    def __lt__(self, value: Value) -> Comparison:
        return Comparison(self.name, "<", value)

    def __le__(self, value: Value) -> Comparison:
        return Comparison(self.name, "<=", value)

    def __gt__(self, value: Value) -> Comparison:
        return Comparison(self.name, ">", value)

    def __ge__(self, value: Value) -> Comparison:
        return Comparison(self.name, ">=", value)


attr = Attribute


def unchanged(name: str, value: Value) -> Condition:
    """Return the condition that an attribute is as it was read; 0 and empty mean missing."""
    return attr(name) == value if value else attr(name).missing()
