"""The evaluation of conditions, with DynamoDB's results.

A missing attribute makes every comparison false except `<>`. Values of different types are never
equal and never in order. Texts compare by their UTF-8 bytes, which is the order of their code
points. Source: the DynamoDB developer guide, "Condition and filter expressions, operators, and
functions in DynamoDB".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any

from chalicelib.storage.conditions import Combination, Comparison, Condition, Presence
from chalicelib.storage.items import Item

ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def holds(condition: Condition | None, item: Item | None) -> bool:
    """Return whether a condition holds for an item; None stands for an item that does not exist."""
    return condition is None or _evaluate(condition, item or {})


def _evaluate(condition: Condition, item: Item) -> bool:
    match condition:
        case Comparison():
            return _compare(condition, item)
        case Presence(name, exists):
            return (name in item) is exists
        case Combination(left, "AND", right):
            return _evaluate(left, item) and _evaluate(right, item)
        case Combination(left, _, right):
            return _evaluate(left, item) or _evaluate(right, item)


def _compare(comparison: Comparison, item: Item) -> bool:
    found, value = item.get(comparison.name), comparison.value
    if comparison.operator == "=":
        return found == value
    in_order = type(found) is type(value) and isinstance(found, str | int)
    return in_order and ORDERS[comparison.operator](found, value)
