"""The conditions of a template, and the parts that it has with some of them decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from deploy.template import Template

Truths: TypeAlias = Mapping[str, bool]
NO_VALUE = {"Ref": "AWS::NoValue"}
ALL_FEATURES: Truths = {"HasEvents": True, "HasWallets": True, "HasTokens": True}
"""The conditions of a stack with all features, such as that of `chalice deploy`."""


def evaluate(template: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, bool]:
    """Return the truth of each condition, with these parameters and the defaults of all others."""
    values = {
        name: given.get(name, parameter.get("Default"))
        for name, parameter in template["Parameters"].items()
    }
    conditions = template["Conditions"]
    return {name: _is_true(condition, conditions, values) for name, condition in conditions.items()}


def _is_true(condition: Any, conditions: Template, values: Mapping[str, Any]) -> bool:
    match condition:
        case {"Condition": name}:
            return _is_true(conditions[name], conditions, values)
        case {"Fn::Not": [inner]}:
            return not _is_true(inner, conditions, values)
        case {"Fn::Or": parts}:
            return any(_is_true(part, conditions, values) for part in parts)
        case {"Fn::And": parts}:
            return all(_is_true(part, conditions, values) for part in parts)
        case {"Fn::Equals": [one, other]}:
            return bool(_value(one, values) == _value(other, values))
    raise ValueError(f"unknown condition: {condition}")


def _value(part: Any, values: Mapping[str, Any]) -> Any:
    match part:
        case {"Ref": name}:
            return values[name]
        case {"Fn::Join": [separator, parts]}:
            joined: list[str] | str = _value(parts, values)
            return joined if isinstance(joined, str) else separator.join(joined)
    return part


def decide(template: Mapping[str, Any], truths: Truths) -> Template:
    """Return a template in which these conditions are decided, and no longer named."""
    kept = {name: part for name, part in template["Conditions"].items() if name not in truths}
    return {
        **choose({name: part for name, part in template.items() if name != "Conditions"}, truths),
        "Conditions": kept,
    }


def choose(value: Any, truths: Truths) -> Any:
    """Return a part of a template without the parts whose condition is false."""
    match value:
        case {"Fn::If": [str(name), then, otherwise]} if name in truths:
            return choose(then if truths[name] else otherwise, truths)
        case {"Fn::If": [str(name), *branches]}:
            return {"Fn::If": [name, *(choose(branch, truths) for branch in branches)]}
        case dict():
            return {
                name: chosen
                for name, part in value.items()
                if not (name == "Condition" and isinstance(part, str) and part in truths)
                if _is_kept(part, truths) and (chosen := choose(part, truths)) != NO_VALUE
            }
        case list():
            chosen_parts = (choose(part, truths) for part in value if _is_kept(part, truths))
            return [part for part in chosen_parts if part != NO_VALUE]
    return value


def _is_kept(part: Any, truths: Truths) -> bool:
    """Return whether a part has no condition, or none that is false."""
    condition = part.get("Condition") if isinstance(part, dict) else None
    return not isinstance(condition, str) or truths.get(condition, True)
