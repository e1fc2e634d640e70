"""How the writes of `ports` read as DynamoDB requests: expressions, names and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chalicelib.aws.attribute_values import encode, encode_item, encode_key
from chalicelib.storage.ports import Check, Delete, Put, Update, Value, Write

if TYPE_CHECKING:
    from boto3.dynamodb.conditions import ConditionBase

OLD_ITEM = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
"""A failed condition carries the item as it stands, so that nobody need read it again."""


def single_request(write: Put | Update | Delete) -> tuple[str, dict[str, Any]]:
    """The client method for one write alone, and its arguments but for the table's name."""
    operation = {Put: "put_item", Update: "update_item", Delete: "delete_item"}[type(write)]
    return operation, _arguments(write)


def transaction_item(write: Write, table: str) -> dict[str, Any]:
    """One entry of `TransactItems`."""
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
    """Collects the placeholders of one request."""

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

    def condition(self, condition: ConditionBase) -> str:
        # Imported here: a function that writes no condition need not pay for boto3 at cold start.
        from boto3.dynamodb.conditions import ConditionExpressionBuilder  # noqa: PLC0415

        built = ConditionExpressionBuilder().build_expression(condition)
        self.names |= built.attribute_name_placeholders
        values: Mapping[str, Value] = built.attribute_value_placeholders
        self.values |= {placeholder: encode(value) for placeholder, value in values.items()}
        expression: str = built.condition_expression
        return expression

    def placeholders(self) -> dict[str, Any]:
        """DynamoDB refuses empty maps of names or values."""
        maps = {"ExpressionAttributeNames": self.names, "ExpressionAttributeValues": self.values}
        return {name: content for name, content in maps.items() if content}

    def _assign(self, template: str, name: str, value: Value) -> str:
        placeholder = f":u{len(self.values)}"
        self.values[placeholder] = encode(value)
        return template.format(self._name(name), placeholder)

    def _name(self, name: str) -> str:
        placeholder = f"#u{len(self.names)}"
        self.names[placeholder] = name
        return placeholder
