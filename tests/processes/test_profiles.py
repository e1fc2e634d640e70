"""A command with `--stack` and the profiles of the AWS CLI, against an AWS on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from simulation.environment import ROOT
from tests.loopback import SilentHandler, serving
from tests.processes.programs import PATIENCE_SECONDS

LATER = "2099-01-01T00:00:00Z"
ROLE = "arn:aws:iam::123456789012:role/operator"
PROFILES = f"""\
[profile user]
aws_access_key_id = AKIDOFUSER
aws_secret_access_key = secret

[profile role]
role_arn = {ROLE}
source_profile = user

[sso-session company]
sso_start_url = https://company.awsapps.com/start
sso_region = us-east-1

[profile sso]
sso_session = company
sso_account_id = 123456789012
sso_role_name = operator

[profile role-by-sso]
role_arn = {ROLE}
source_profile = sso
"""
ROLE_KEYS = (
    "<Credentials><AccessKeyId>AKIDOFROLE</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>"
    f"<SessionToken>session</SessionToken><Expiration>{LATER}</Expiration></Credentials>"
)
SSO_KEYS = {"accessKeyId": "AKIDOFSSO", "secretAccessKey": "secret", "sessionToken": "session"}
OUTPUT = "<member><OutputKey>TableName</OutputKey><OutputValue>vu-mi</OutputValue></member>"
STACK = f"<StackName>vu-mi-prod</StackName><Outputs>{OUTPUT}</Outputs>"
IN_XML = {
    "AssumeRole": ROLE_KEYS,
    "DescribeStacks": f"<Stacks><member>{STACK}</member></Stacks>",
}
IN_JSON = {
    "/federation/credentials": {"roleCredentials": {**SSO_KEYS, "expiration": 4_070_908_800_000}},
    "Query": {"Items": [], "Count": 0, "ScannedCount": 0},
}
ANSWERS = {
    **{name: f"<Answer><{name}Result>{it}</{name}Result></Answer>" for name, it in IN_XML.items()},
    **{name: json.dumps(content) for name, content in IN_JSON.items()},
}


@dataclass
class Aws:
    """STS, SSO, CloudFormation and DynamoDB on this machine.

    `calls` are the operations with the ids of their access keys, which are empty without one.
    """

    endpoint: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)

    def answer(self, path: str, headers: Mapping[str, str], body: str) -> str:
        """Answer a request; its operation is in a header, in the body or in the path."""
        target = headers.get("X-Amz-Target", "").partition(".")[2]
        operation = target or parse_qs(body).get("Action", [path.partition("?")[0]])[0]
        signed = re.search(r"Credential=(\w+)/", headers.get("Authorization", ""))
        self.calls.append((operation, signed[1] if signed else ""))
        return ANSWERS[operation]


@pytest.fixture
def aws() -> Iterator[Aws]:
    found = Aws()

    class Handler(SilentHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
            content = found.answer(self.path, dict(self.headers), body).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST

    with serving(Handler) as port:
        found.endpoint = f"http://127.0.0.1:{port}"
        yield found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Write the files that `aws configure` and `aws sso login` write."""
    cache = tmp_path / ".aws" / "sso" / "cache"
    cache.mkdir(parents=True)
    (tmp_path / ".aws" / "config").write_text(PROFILES)
    url = "https://company.awsapps.com/start"
    login = {"startUrl": url, "region": "us-east-1", "accessToken": "login", "expiresAt": LATER}
    digest = hashlib.sha1(b"company", usedforsecurity=False).hexdigest()
    (cache / f"{digest}.json").write_text(json.dumps(login))
    return tmp_path


def run(home: Path, aws: Aws, profile: str) -> subprocess.CompletedProcess[str]:
    """Run a command that finds a stack and reads its table, in the environment of a shell."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return subprocess.run(
        [sys.executable, "-m", "vumi", "token", "list", "--stack", "vu-mi-prod"],
        cwd=ROOT,
        env={
            **others,
            "HOME": str(home),
            "AWS_PROFILE": profile,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": aws.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )


OF_USER, OF_ROLE, OF_SSO = "AKIDOFUSER", "AKIDOFROLE", "AKIDOFSSO"
BY_SSO = ("/federation/credentials", "")
AS_ROLE = (("DescribeStacks", OF_ROLE), ("Query", OF_ROLE))
AS_SSO = (("DescribeStacks", OF_SSO), ("Query", OF_SSO))


@pytest.mark.parametrize(
    ("profile", "calls"),
    [
        ("user", [("DescribeStacks", OF_USER), ("Query", OF_USER)]),
        ("role", [("AssumeRole", OF_USER), *AS_ROLE]),
        ("sso", [BY_SSO, *AS_SSO]),
        ("role-by-sso", [BY_SSO, ("AssumeRole", OF_SSO), *AS_ROLE]),
    ],
)
def test_a_command_gets_the_credentials_of_a_profile_once(
    aws: Aws, home: Path, profile: str, calls: list[tuple[str, str]]
) -> None:
    """AWS accepts a code of a second factor only once."""
    finished = run(home, aws, profile)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert aws.calls == calls


def test_a_login_that_is_over_is_reported(aws: Aws, home: Path) -> None:
    for file in (home / ".aws" / "sso" / "cache").iterdir():
        file.write_text(file.read_text().replace(LATER, "2020-01-01T00:00:00Z"))
    finished = run(home, aws, "sso")
    *_, reported = finished.stderr.splitlines()
    assert (finished.returncode, reported.startswith("Error: ")) == (1, True)
    assert "sso" in reported
