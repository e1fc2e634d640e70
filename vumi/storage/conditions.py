"""Evaluating boto3's condition expressions as DynamoDB does.

A missing attribute makes every comparison false but `<>`; values of different types are never
equal and never in order; texts compare by their UTF-8 bytes, which is the order of their code
points. Source: the DynamoDB developer guide, "Condition and filter expressions, operators, and
functions in DynamoDB".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from chalicelib.storage.ports import Item, Value

if TYPE_CHECKING:
    from boto3.dynamodb.conditions import ConditionBase

Operand: TypeAlias = "Value | None"

TYPES: Mapping[str, type] = {"S": str, "N": int, "L": list, "M": dict}


def holds(condition: ConditionBase | None, item: Item | None) -> bool:
    """Whether a condition holds for an item; None for one that does not exist.

    Raises `TypeError` for an operator that DynamoDB has and the tables here never need.
    """
    return condition is None or _evaluate(condition, item or {})


def _evaluate(condition: ConditionBase, item: Item) -> bool:
    expression = condition.get_expression()
    operator, values = expression["operator"], expression["values"]
    if logical := LOGICAL.get(operator):
        return logical([_evaluate(value, item) for value in values])
    if operator not in COMPARISONS:
        raise TypeError(f"conditions here have no {operator}")
    return COMPARISONS[operator](*[_operand(value, item) for value in values])


def _operand(value: Any, item: Item) -> Any:
    """What stands in a comparison: an attribute's value, or the value given."""
    if isinstance(value, str | int):
        return value
    if hasattr(value, "get_expression"):
        raise TypeError(f"conditions here have no {value.get_expression()['operator']}")
    return _attribute(value.name, item) if hasattr(value, "name") else value


def _attribute(path: str, item: Item) -> Operand:
    if path.isidentifier():
        return item.get(path)
    found: Operand = item
    for step in re.findall(r"[^.\[\]]+|\[\d+\]", path):
        found = _step(found, step)
    return found


def _step(value: Operand, step: str) -> Operand:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and step.startswith("["):
        place = int(step[1:-1])
        return value[place] if place < len(value) else None
    return None


def _in_order(a: Any, b: Any) -> bool:
    """Whether two values have an order: only two texts or two numbers have."""
    return type(a) is type(b) and isinstance(a, str | int)


def _between(value: Any, low: Any, high: Any) -> bool:
    return _in_order(low, value) and _in_order(value, high) and bool(low <= value <= high)


def _begins_with(value: Any, prefix: str) -> bool:
    return isinstance(value, str) and value.startswith(prefix)


def _contains(value: Any, part: Any) -> bool:
    if isinstance(value, str):
        return isinstance(part, str) and part in value
    return isinstance(value, list) and part in value


LOGICAL: Mapping[str, Callable[[Sequence[bool]], bool]] = {
    "AND": all,
    "OR": any,
    "NOT": lambda given: not any(given),
}
COMPARISONS: Mapping[str, Callable[..., bool]] = {
    "=": lambda a, b: a is not None and a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: _in_order(a, b) and a < b,
    "<=": lambda a, b: _in_order(a, b) and a <= b,
    ">": lambda a, b: _in_order(a, b) and a > b,
    ">=": lambda a, b: _in_order(a, b) and a >= b,
    "BETWEEN": _between,
    "IN": lambda a, options: a in options,
    "begins_with": _begins_with,
    "contains": _contains,
    "attribute_exists": lambda a: a is not None,
    "attribute_not_exists": lambda a: a is None,
    "attribute_type": lambda a, name: isinstance(a, TYPES.get(name, ())),
}
