"""The template `.chalice/resources.yaml` and its variants.

`chalice package` merges the file into its template. For `chalice deploy`, the table and the queues
become a stack of their own. Where some of its conditions are decided, parts of it are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import yaml

Template: TypeAlias = dict[str, Any]
Truths: TypeAlias = Mapping[str, bool]
NO_VALUE = {"Ref": "AWS::NoValue"}
ALL_FEATURES: Truths = {"HasEvents": True, "HasWallets": True, "HasTokens": True}
"""The conditions of a stack with all features, such as that of `chalice deploy`."""
ROOT = Path(__file__).parent.parent
RESOURCES = ROOT / ".chalice" / "resources.yaml"
PROTECTIONS = ("DeletionProtectionEnabled", "VersioningConfiguration")
"""The properties that keep data. A bucket with earlier versions of objects can't be deleted."""
SUB_REFERENCE = re.compile(r"\$\{([A-Za-z0-9:.]+)\}")
"""A reference in the text of an `Fn::Sub`."""


class UnknownNameError(Exception):
    """A template refers to a name that has no known value."""


def load(file: Path = RESOURCES) -> Template:
    """Read a template, by default `.chalice/resources.yaml`. The caller may change it."""
    return deepcopy(_parse(file.read_text()))


@cache
def _parse(text: str) -> Template:
    template: Template = yaml.load(text, Loader=yaml.CSafeLoader)
    return template


def dump(template: Template) -> str:
    """Return a template as YAML without aliases, which CloudFormation does not support."""
    copied = json.loads(json.dumps(template))  # no part is there twice
    text: str = yaml.dump(copied, Dumper=yaml.CSafeDumper)
    return text


def for_stage(template: Template, stage: str) -> Template:
    """Return the template for a stage.

    Only prod has deletion protection, versions and retention of its data.
    """
    if stage == "prod":
        return template
    disposable = deepcopy(template)
    for resource in disposable["Resources"].values():
        for policy in [key for key in resource if key.endswith("Policy")]:
            del resource[policy]
        for protection in PROTECTIONS:
            resource.get("Properties", {}).pop(protection, None)
    return disposable


def extract_standalone(template: Template) -> Template:
    """Return a template of the parts that need no resource of Chalice, with all features.

    A resource without a type extends one of Chalice's. It is left out, with all that refers to it,
    such as the alarms of a function.
    """
    template = decide(template, ALL_FEATURES)
    parts = {name: part for name, part in template["Resources"].items() if "Type" in part}
    known = {*parts, *template["Parameters"]}
    while missing := {n for n, part in parts.items() if set(names_in(part)) - known}:
        parts = {name: part for name, part in parts.items() if name not in missing}
        known -= missing
    outputs = {n: part for n, part in template["Outputs"].items() if set(names_in(part)) <= known}
    conditions = set(conditions_in([parts, outputs]))
    held = {n: part for n, part in template["Conditions"].items() if n in conditions}
    used = set(names_in([parts, outputs, held]))
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {n: part for n, part in template["Parameters"].items() if n in used},
        "Conditions": held,
        "Resources": parts,
        "Outputs": outputs,
    }


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


def names_in(value: Any) -> Iterator[str]:
    """Yield the logical names that a part of a template refers to, but none of AWS's own."""
    for part in _maps_in(value):
        match part:
            case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
                found = [name]
            case {"Fn::Sub": str(text)}:
                found = SUB_REFERENCE.findall(text)
            case {"Fn::Sub": [str(text), dict(given)]}:
                found = [name for name in SUB_REFERENCE.findall(text) if name not in given]
            case _:
                continue
        yield from (name.split(".", 1)[0] for name in found if not name.startswith("AWS::"))


def conditions_in(value: Any) -> Iterator[str]:
    """Yield the names of the conditions that a part of a template depends on."""
    for part in _maps_in(value):
        match part:
            case {"Fn::If": [str(name), *_]} | {"Condition": str(name)}:
                yield name


def _maps_in(value: Any) -> Iterator[Template]:
    """Yield each map in a part of a template, outer ones first."""
    match value:
        case dict():
            yield value
            yield from _maps_in([*value.values()])
        case list():
            for part in value:
                yield from _maps_in(part)


def resolve(value: Any, names: Mapping[str, str]) -> Any:
    """Return a part of a template with every reference replaced by its value.

    `names` has the values of names (`Table`), attributes (`Table.Arn`) and AWS's parameters
    (`AWS::Region`). Every condition is false. Raises `UnknownNameError`.
    """
    match value:
        case {"Fn::If": [_, _, otherwise]}:
            value = resolve(otherwise, names)
        case {"Ref": str(name)}:
            value = _look_up(name, names)
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            value = _look_up(f"{name}.{attribute}", names)
        case {"Fn::Sub": str(text)}:
            value = SUB_REFERENCE.sub(lambda found: _look_up(found[1], names), text)
        case dict():
            value = {key: resolve(part, names) for key, part in value.items()}
        case list():
            value = [resolve(part, names) for part in value]
    return value


def _look_up(name: str, names: Mapping[str, str]) -> str:
    if name not in names:
        raise UnknownNameError(
            f"the template refers to {name}; the known names are {', '.join(sorted(names))}"
        )
    return names[name]
