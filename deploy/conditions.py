"""The parts that a template has if some of its conditions are decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Template: TypeAlias = dict[str, Any]
Truths: TypeAlias = Mapping[str, bool]
NO_VALUE = {"Ref": "AWS::NoValue"}
ALL_FEATURES: Truths = {"HasEvents": True, "HasWallets": True, "HasTokens": True}
"""The conditions of a stack with all features, such as that of `chalice deploy`."""


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
