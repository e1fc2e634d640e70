"""The files that `make audit` checks: `python -m tests.audited TEMPLATE FOLDER` writes them.

checkov passes over a policy in which a condition decides, and parliament refuses it. So both get
two copies: one with every condition true, and one with every condition false. parliament gets each
statement as a file of its own, named after its `Sid`, without references.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deploy import template

QUEUES = ("ViewsQueue", "TimersQueue", "DistributionQueue")
TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/vu-mi"
NAMES = {
    "Archive.Arn": "arn:aws:s3:::vu-mi-archive",
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "us-east-1",
    "AWS::StackName": "vu-mi-prod",
    "EventQueueArns": "arn:aws:sqs:us-east-1:123456789012:orders",
    "RestoredTable": "vu-mi-restored",
    "Table.Arn": TABLE,
    # parliament can't parse the colons of a label, which is a time.
    "Table.StreamArn": f"{TABLE}/stream/label",
    **{f"{queue}.Arn": f"arn:aws:sqs:us-east-1:123456789012:{queue}" for queue in QUEUES},
}

NO_VALUE = {"Ref": "AWS::NoValue"}
"""The branch of a condition that leaves a value out."""


def write(stack: template.Template, folder: Path) -> None:
    """Write the template and its statements for both values of the conditions."""
    for branch, name in ((0, "true"), (1, "false")):
        chosen = {**stack, "Resources": choose(stack["Resources"], branch)}
        _write(folder / "templates" / f"{name}.yaml", template.dump(chosen))
        for role, statement in _statements(chosen["Resources"]):
            policy = {"Version": "2012-10-17", "Statement": [template.resolve(statement, NAMES)]}
            file = folder / "statements" / name / role / f"{statement['Sid']}.json"
            _write(file, json.dumps(policy, indent=2))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _statements(resources: template.Template) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, resource in resources.items():
        for policy in resource.get("Properties", {}).get("Policies", ()):
            for statement in policy["PolicyDocument"]["Statement"]:
                yield name, statement


def choose(value: Any, branch: int) -> Any:
    """Return a part of a template in which each `Fn::If` is the branch of this number."""
    match value:
        case {"Fn::If": [_, *branches]}:
            return choose(branches[branch], branch)
        case dict():
            chosen = {name: choose(part, branch) for name, part in value.items()}
            return {name: part for name, part in chosen.items() if part != NO_VALUE}
        case list():
            return [part for each in value if (part := choose(each, branch)) != NO_VALUE]
        case _:
            return value


if __name__ == "__main__":
    write(template.load(Path(sys.argv[1])), Path(sys.argv[2]))
