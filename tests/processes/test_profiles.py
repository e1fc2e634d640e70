"""A command with `--stack` and the profiles of the AWS CLI, against an AWS on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from simulation.loopback import Answer, SilentHandler, answering
from tests.processes.programs import finish

LATER = "2099-01-01T00:00:00Z"
ROLE = "arn:aws:iam::123456789012:role/operator"
PROFILES = f"""\
[profile user]
aws_access_key_id = AKIDOFUSER
aws_secret_access_key = secret

[profile role]
role_arn = {ROLE}
source_profile = user
"""
ROLE_KEYS = (
    "<Credentials><AccessKeyId>AKIDOFROLE</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>"
    f"<SessionToken>session</SessionToken><Expiration>{LATER}</Expiration></Credentials>"
)
OUTPUT = "<member><OutputKey>TableName</OutputKey><OutputValue>vu-mi</OutputValue></member>"
STACK = f"<StackName>vu-mi-prod</StackName><Outputs>{OUTPUT}</Outputs>"
IN_XML = {
    "AssumeRole": ROLE_KEYS,
    "DescribeStacks": f"<Stacks><member>{STACK}</member></Stacks>",
}
ANSWERS = {
    **{name: f"<Answer><{name}Result>{it}</{name}Result></Answer>" for name, it in IN_XML.items()},
    "Query": json.dumps({"Items": [], "Count": 0, "ScannedCount": 0}),
}


@dataclass
class Aws:
    """STS, CloudFormation and DynamoDB on this machine.

    `calls` are the operations with the ids of their access keys.
    """

    endpoint: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)

    def answer(self, request: SilentHandler) -> Answer:
        """Answer a request; its operation is in a header or in the body."""
        target = request.headers.get("X-Amz-Target", "").partition(".")[2]
        operation = target or parse_qs(request.read().decode())["Action"][0]
        [key] = re.findall(r"Credential=(\w+)/", request.headers["Authorization"])
        self.calls.append((operation, key))
        return 200, ANSWERS[operation].encode(), {}


@pytest.fixture
def aws() -> Iterator[Aws]:
    found = Aws()
    with answering(found.answer) as found.endpoint:
        yield found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Write the file that `aws configure` writes."""
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(PROFILES)
    return tmp_path


def run(home: Path, aws: Aws, profile: str) -> subprocess.CompletedProcess[str]:
    """Run a command that finds a stack and reads its table, in the environment of a shell."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    own = {
        "HOME": str(home),
        "AWS_PROFILE": profile,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": aws.endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    command = (sys.executable, "-m", "vumi", "token", "list", "--stack", "vu-mi-prod")
    return finish(*command, env=others | own)


def test_a_command_takes_the_role_of_a_profile_once(aws: Aws, home: Path) -> None:
    """AWS accepts a code of a second factor only once."""
    finished = run(home, aws, "role")
    assert (finished.returncode, finished.stderr) == (0, "")
    assert aws.calls == [
        ("AssumeRole", "AKIDOFUSER"),
        ("DescribeStacks", "AKIDOFROLE"),
        ("Query", "AKIDOFROLE"),
    ]
