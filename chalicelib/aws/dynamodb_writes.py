"""DynamoDB's requests for writes and conditions: expressions, names and values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chalicelib.aws.attribute_values import encode, encode_item, encode_key
from chalicelib.storage.conditions import Combination, Comparison, Condition, Presence
from chalicelib.storage.items import Value
from chalicelib.storage.writes import Check, Delete, Put, Update, Write

OLD_ITEM = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
"""The error of a failed condition has the stored item, so that it is not read again."""


def single_request(write: Put | Update | Delete) -> tuple[str, dict[str, Any]]:
    """Return the client method for one write, and its arguments without the table's name."""
    operation = {Put: "put_item", Update: "update_item", Delete: "delete_item"}[type(write)]
    return operation, _arguments(write)


def transaction_item(write: Write, table: str) -> dict[str, Any]:
    """Return the write as an entry of `TransactItems`."""
    kind = "ConditionCheck" if isinstance(write, Check) else type(write).__name__
    return {kind: {"TableName": table, **_arguments(write)}}


def _arguments(write: Write) -> dict[str, Any]:
    expression = _Expression()
    arguments: dict[str, Any] = {}
    match write:
        case Put():
            arguments["Item"] = encode_item(write.item)
        case Update():
            arguments["Key"] = encode_key(write.key)
            arguments["UpdateExpression"] = expression.update(write)
        case Delete() | Check():
            arguments["Key"] = encode_key(write.key)
    if write.condition is not None:
        arguments["ConditionExpression"] = expression.condition(write.condition)
        arguments |= OLD_ITEM
    return arguments | expression.placeholders()


@dataclass
class _Expression:
    """The placeholders of one request."""

    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def update(self, write: Update) -> str:
        sets = [self._assign("{0} = {1}", *entry) for entry in write.values.items()]
        sets += [
            self._assign("{0} = if_not_exists({0}, {1})", *entry)
            for entry in write.defaults.items()
        ]
        adds = [self._assign("{0} {1}", *entry) for entry in write.add.items()]
        clauses = {"SET": sets, "ADD": adds, "REMOVE": [self._name(name) for name in write.remove]}
        return " ".join(f"{word} {', '.join(parts)}" for word, parts in clauses.items() if parts)

    def condition(self, condition: Condition) -> str:
        match condition:
            case Comparison(name, operator, value):
                return f"{self._name(name)} {operator} {self._value(value)}"
            case Presence(name, exists):
                function = "attribute_exists" if exists else "attribute_not_exists"
                return f"{function}({self._name(name)})"
            case Combination(left, operator, right):
                return f"({self.condition(left)} {operator} {self.condition(right)})"

    def placeholders(self) -> dict[str, Any]:
        """Return the maps of names and values that are not empty: DynamoDB refuses empty ones."""
        maps = {"ExpressionAttributeNames": self.names, "ExpressionAttributeValues": self.values}
        return {name: content for name, content in maps.items() if content}

    def _assign(self, template: str, name: str, value: Value) -> str:
        return template.format(self._name(name), self._value(value))

    def _name(self, name: str) -> str:
        placeholder = f"#n{len(self.names)}"
        self.names[placeholder] = name
        return placeholder

    def _value(self, value: Value) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = encode(value)
        return placeholder
