"""The files that `make audit` checks."""

from __future__ import annotations

import json
from pathlib import Path

from deploy import template
from tests import audited

STATEMENT = {
    "Sid": "Read",
    "Effect": "Allow",
    "Action": [
        "dynamodb:GetItem",
        {"Fn::If": ["IsRestored", "dynamodb:Query", audited.NO_VALUE]},
    ],
    "Resource": {
        "Fn::If": ["IsRestored", {"Ref": "RestoredTable"}, {"Fn::GetAtt": ["Table", "Arn"]}]
    },
}
STACK = {
    "Resources": {
        "Table": {"Type": "AWS::DynamoDB::Table"},
        "Role": {"Properties": {"Policies": [{"PolicyDocument": {"Statement": [STATEMENT]}}]}},
    }
}


def resources_of(stack: template.Template) -> object:
    """Return the resources of the one statement."""
    [policy] = stack["Resources"]["Role"]["Properties"]["Policies"]
    return policy["PolicyDocument"]["Statement"][0]["Resource"]


def test_the_template_and_its_statements_are_written_for_both_values_of_the_conditions(
    tmp_path: Path,
) -> None:
    audited.write(STACK, tmp_path)
    files = [f"statements/{value}/Role/Read.json" for value in ("false", "true")]
    in_use, restored = (json.loads((tmp_path / file).read_text())["Statement"][0] for file in files)
    written = (
        template.load(tmp_path / "templates" / f"{value}.yaml") for value in ("false", "true")
    )
    assert [resources_of(stack) for stack in written] == [
        {"Fn::GetAtt": ["Table", "Arn"]},
        {"Ref": "RestoredTable"},
    ]
    one = {"Sid": "Read", "Effect": "Allow"}
    assert in_use == one | {"Action": ["dynamodb:GetItem"], "Resource": audited.TABLE}
    assert restored == one | {
        "Action": ["dynamodb:GetItem", "dynamodb:Query"],
        "Resource": "vu-mi-restored",
    }
