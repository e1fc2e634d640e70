"""The statements that `make audit` gives to parliament."""

from __future__ import annotations

import json
from pathlib import Path

from tests import policy_statements

STATEMENT = {
    "Sid": "Read",
    "Effect": "Allow",
    "Action": [
        "dynamodb:GetItem",
        {"Fn::If": ["IsRestored", "dynamodb:Query", policy_statements.NO_VALUE]},
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


def test_each_statement_is_written_for_both_values_of_its_conditions(tmp_path: Path) -> None:
    policy_statements.write(STACK, tmp_path)
    files = sorted(file for file in tmp_path.rglob("*") if file.is_file())
    assert [str(file.relative_to(tmp_path)) for file in files] == [
        "Role/false/Read.json",
        "Role/true/Read.json",
    ]
    in_use, restored = (json.loads(file.read_text())["Statement"][0] for file in files)
    one = {"Sid": "Read", "Effect": "Allow"}
    assert in_use == one | {"Action": ["dynamodb:GetItem"], "Resource": policy_statements.TABLE}
    assert restored == one | {
        "Action": ["dynamodb:GetItem", "dynamodb:Query"],
        "Resource": "vu-mi-restored",
    }
