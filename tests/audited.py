"""The files that `make audit` checks: `python -m tests.audited TEMPLATE FOLDER` writes them.

checkov passes over a policy in which a condition decides, and parliament refuses it. So both get
two copies: one with every condition true, and one with only those of features true. parliament
gets each statement as a file of its own, named after its `Sid`, without references.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deploy import template
from deploy.template import ALL_FEATURES, Template, decide

QUEUES = ("ViewsQueue", "DeliveryQueue", "DistributionQueue")
TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/vu-mi"
NAMES = {
    "Archive.Arn": "arn:aws:s3:::vu-mi-archive",
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "us-east-1",
    "AWS::StackName": "vu-mi-prod",
    **{
        f"{name}.Arn": f"arn:aws:lambda:us-east-1:123456789012:function:vu-mi-{name}"
        for name in ("APIHandler", "Authorize", "GetViews")
    },
    "EventQueueArns": "arn:aws:sqs:us-east-1:123456789012:orders",
    "RestoredTable": "vu-mi-restored",
    "Table.Arn": TABLE,
    # parliament can't parse the colons of a label, which is a time.
    "Table.StreamArn": f"{TABLE}/stream/label",
    **{f"{queue}.Arn": f"arn:aws:sqs:us-east-1:123456789012:{queue}" for queue in QUEUES},
}


def write(stack: Template, folder: Path) -> None:
    """Write the template and its statements for both values of the conditions but features."""
    for is_true, name in ((True, "true"), (False, "false")):
        chosen = decide(stack, {**dict.fromkeys(stack["Conditions"], is_true), **ALL_FEATURES})
        _write(folder / "templates" / f"{name}.yaml", template.dump(chosen))
        for role, statement in _statements(chosen["Resources"]):
            policy = {"Version": "2012-10-17", "Statement": [template.resolve(statement, NAMES)]}
            file = folder / "statements" / name / role / f"{statement['Sid']}.json"
            _write(file, json.dumps(policy, indent=2))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _statements(resources: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, resource in resources.items():
        for policy in resource.get("Properties", {}).get("Policies", ()):
            for statement in policy["PolicyDocument"]["Statement"]:
                yield name, statement


if __name__ == "__main__":
    write(template.load(Path(sys.argv[1])), Path(sys.argv[2]))
