"""`.chalice/resources.yaml`: its parts for another stage, for a stack of their own, and as names.

The file is merged into the template of `chalice package`. What stands alone in it, the table and
the queues, is also a stack of its own for `chalice deploy`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import yaml

ROOT = Path(__file__).parent.parent
RESOURCES = ROOT / ".chalice" / "resources.yaml"
PROTECTED_STAGE = "prod"
"""The stage whose table outlives its stack."""
SUBSTITUTED = re.compile(r"\$\{([A-Za-z0-9:.]+)\}")
"""A name in the text of an `Fn::Sub`."""

Template: TypeAlias = dict[str, Any]


class Plain(yaml.SafeDumper):
    """YAML without aliases, which CloudFormation does not read."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  whatever the value is
        return True


class UnknownNameError(Exception):
    """A template refers to a name that nothing here has a value for."""


def load() -> Template:
    """`.chalice/resources.yaml`."""
    template: Template = yaml.safe_load(RESOURCES.read_text())
    return template


def dump(template: Template) -> str:
    """A template as CloudFormation reads it."""
    text: str = yaml.dump(template, Dumper=Plain)
    return text


def for_stage(template: Template, stage: str) -> Template:
    """The template as it is for prod, without the protection of its data for any other stage."""
    return template if stage == PROTECTED_STAGE else disposable(template)


def disposable(template: Template) -> Template:
    """The same template, whose stack takes everything with it when it is deleted."""
    resources = {name: _disposable(resource) for name, resource in template["Resources"].items()}
    return {**template, "Resources": resources}


def _disposable(resource: Template) -> Template:
    properties = dict(resource.get("Properties", {}))
    properties.pop("DeletionProtectionEnabled", None)
    kept = {key: value for key, value in resource.items() if not key.endswith("Policy")}
    return {**kept, "Properties": properties} if properties else kept


def stand_alone(template: Template) -> Template:
    """What needs nothing that Chalice makes, as a template of its own.

    A resource without a type only adds to one of Chalice's; what refers to such a one, as an alarm
    does to a function, goes with it.
    """
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


def names_in(value: Any) -> Iterator[str]:
    """The logical names that a part of a template refers to; none of AWS's own (`AWS::Region`)."""
    match value:
        case {"Ref": str(name)}:
            yield from _own(name)
        case {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case {"Fn::Sub": str(text)}:
            for name in SUBSTITUTED.findall(text):
                yield from _own(name)
        case {"Fn::Sub": [str(text), dict(given)]}:
            yield from set(names_in({"Fn::Sub": text})) - set(given)
            yield from names_in(given)
        case dict():
            for part in value.values():
                yield from names_in(part)
        case list():
            for part in value:
                yield from names_in(part)


def conditions_in(value: Any) -> Iterator[str]:
    """The names of the conditions that a part of a template depends on."""
    match value:
        case {"Fn::If": [str(name), *parts]}:
            yield name
            yield from conditions_in(parts)
        case dict():
            if isinstance(condition := value.get("Condition"), str):
                yield condition
            yield from conditions_in(list(value.values()))
        case list():
            for part in value:
                yield from conditions_in(part)


def _own(name: str) -> Iterator[str]:
    if not name.startswith("AWS::"):
        yield name.split(".", maxsplit=1)[0]


def resolved(value: Any, names: Mapping[str, str]) -> Any:
    """A part of a template with every reference replaced by what it stands for.

    `names` has the values of names (`Table`), attributes (`Table.Arn`) and AWS's own
    (`AWS::Region`). No condition holds. Raises `UnknownNameError`.
    """
    match value:
        case {"Fn::If": [_, _, otherwise]}:
            return resolved(otherwise, names)
        case {"Ref": _} | {"Fn::GetAtt": _} | {"Fn::Sub": _}:
            return _resolved_reference(value, names)
        case dict():
            return {key: resolved(part, names) for key, part in value.items()}
        case list():
            return [resolved(part, names) for part in value]
        case _:
            return value


def _resolved_reference(value: Mapping[str, Any], names: Mapping[str, str]) -> str:
    match value:
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return _known(f"{name}.{attribute}", names)
        case {"Fn::Sub": str(text)}:
            return SUBSTITUTED.sub(lambda found: _known(found[1], names), text)
        case _:
            return _known(str(value.get("Ref", value)), names)


def _known(name: str, names: Mapping[str, str]) -> str:
    if name not in names:
        raise UnknownNameError(f"{name} is not among {', '.join(sorted(names))}")
    return names[name]
