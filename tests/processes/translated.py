"""The resources that SAM makes from the template of the package, and their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from deploy.http_api import APART
from deploy.stage import FUNCTIONS as OF_CHALICE
from deploy.template import ALL_FEATURES, decide

FUNCTIONS = {**OF_CHALICE, **{function: name for name, function in APART.items()}}
"""The resource of each function, by its name."""
Resources: TypeAlias = dict[str, dict[str, Any]]
OFF = {"Events": "off", "Wallets": "off"}
"""The parameters of a stack of badges alone."""


def resources_of(given: dict[str, Any]) -> Resources:
    resources: Resources = decide(given, ALL_FEATURES)["Resources"]
    return resources


def of_type(stack: Resources, kind: str) -> dict[str, dict[str, Any]]:
    """Return the properties of the resources of a type."""
    return {name: part["Properties"] for name, part in stack.items() if part["Type"] == kind}


def made_with(given: dict[str, Any], **parameters: str) -> dict[str, Any]:
    """Return a template as CloudFormation makes it with these parameters."""
    return decide(given, _evaluate(given, parameters))


def _evaluate(template: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, bool]:
    """Return the truth of each condition, with these parameters and the defaults of all others."""
    values = {
        name: given.get(name, parameter.get("Default"))
        for name, parameter in template["Parameters"].items()
    }
    conditions = template["Conditions"]
    return {name: _is_true(condition, conditions, values) for name, condition in conditions.items()}


def _is_true(condition: Any, conditions: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
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
