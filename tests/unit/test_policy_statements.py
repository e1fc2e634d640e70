"""The statements that `make audit` gives to parliament."""

from __future__ import annotations

import json
from pathlib import Path

from tests import policy_statements

STATEMENT = {
    "Sid": "Read",
    "Effect": "Allow",
    "Action": ["dynamodb:GetItem"],
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
    written = [json.loads(file.read_text())["Statement"] for file in files]
    assert written == [
        [STATEMENT | {"Resource": policy_statements.TABLE}],
        [STATEMENT | {"Resource": "vu-mi-restored"}],
    ]
