"""A command with `--stack` and the profiles of the AWS CLI, against an AWS on loopback."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from urllib.parse import parse_qs

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


def environment(home: Path, endpoint: str) -> dict[str, str]:
    """Return the environment of a shell with the file that `aws configure` writes."""
    (home / ".aws").mkdir()
    (home / ".aws" / "config").write_text(PROFILES)
    others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return others | {
        "HOME": str(home),
        "AWS_PROFILE": "role",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def test_a_command_takes_the_role_of_a_profile_once(tmp_path: Path) -> None:
    """AWS accepts a code of a second factor only once. An operation is in a header or the body."""
    calls: list[tuple[str, str]] = []

    def answer(request: SilentHandler) -> Answer:
        target = request.headers.get("X-Amz-Target", "").partition(".")[2]
        operation = target or parse_qs(request.read().decode())["Action"][0]
        [key] = re.findall(r"Credential=(\w+)/", request.headers["Authorization"])
        calls.append((operation, key))
        return 200, ANSWERS[operation].encode(), {}

    command = (sys.executable, "-m", "vumi", "token", "list", "--stack", "vu-mi-prod")
    with answering(answer) as endpoint:
        finished = finish(*command, env=environment(tmp_path, endpoint))
    assert (finished.returncode, finished.stderr) == (0, "")
    assert calls == [
        ("AssumeRole", "AKIDOFUSER"),
        ("DescribeStacks", "AKIDOFROLE"),
        ("Query", "AKIDOFROLE"),
    ]
