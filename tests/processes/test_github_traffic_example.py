"""The example of a workflow: its steps run as they stand, against a GitHub and vu-mi here."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from chalicelib.http.tokens import digest
from simulation.environment import ROOT
from simulation.loopback import Answer, SilentHandler, answering
from tests.processes.programs import PATIENCE_SECONDS
from tests.processes.server import Server, running

WORKFLOW = ROOT / "examples" / "github-traffic" / "traffic.yml"
SAMPLE = ROOT / "tests" / "unit" / "pages" / "github_traffic.json"
NAME = "octocat/hello"
SECRETS = {"TRAFFIC_TOKEN": "github_pat_of_these_tests", "VUMI_SECRET": "secret-of-these-tests-01"}
PROGRAMS = {
    "gh": '[ "$1" = api ] && exec curl -sf -H "Authorization: Bearer $GH_TOKEN" "$API/$2"',
    "sleep": 'echo "$1" >>"$RUNNER_TEMP/slept"',
}
"""Stand-ins for programs of a runner: GitHub's own, and the clock."""


@dataclass
class World:
    """A GitHub that answers from the sample, and a way to vu-mi; each may fail some times."""

    server: Server
    failures: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def respond(self, request: SilentHandler) -> Answer:
        method, target = request.command, request.path
        bearer, body = request.headers["Authorization"], request.read().decode()
        self.asked.append(f"{method} {target}")
        if self.failures.get(method, 0):
            self.failures[method] -= 1
            return 503, b"", {}
        if method == "PUT":
            status, _, reply = self.server.request(target, method, body, {"Authorization": bearer})
            return status, reply, {}
        if bearer != f"Bearer {SECRETS['TRAFFIC_TOKEN']}":
            return 401, b"", {}
        [kind] = re.findall(f"^/repos/{NAME}/traffic/(views|clones)$", target)
        return 200, json.dumps(json.loads(SAMPLE.read_text())[kind]).encode(), {}


def run_steps(
    folder: Path, url: str, secrets: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run the steps of the workflow as a runner does; return the last one, or the first failed."""
    for name, script in PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    [job] = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    known = {f"secrets.{name}": secret for name, secret in secrets.items()}
    known["github.repository"] = NAME
    runner = {"PATH": f"{folder}:{os.environ['PATH']}", "GITHUB_REPOSITORY": NAME, "API": url}
    for step in job["steps"]:
        given = {
            name: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], value)
            for name, value in {**job["env"], **step["env"], "VUMI": url}.items()
        }
        done = subprocess.run(  # noqa: S603  the steps of the example
            ["/bin/bash", "-e", "-c", step["run"]],
            env=runner | given | {"RUNNER_TEMP": str(folder)},
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        if done.returncode:
            break
    return done


@pytest.mark.parametrize("failures", [{}, {"GET": 2, "PUT": 1}], ids=["well", "with retries"])
def test_the_workflow_tells_what_github_told(tmp_path: Path, failures: dict[str, int]) -> None:
    with running(tmp_path / "data") as server:
        claim = json.dumps({"id": NAME, "digest": digest(SECRETS["VUMI_SECRET"])})
        assert server.request("/api/v1/badges", "POST", claim)[0] == 201
        world = World(server, {**failures})
        with answering(world.respond) as url:
            last = run_steps(tmp_path, url, SECRETS)
        assert last.returncode == 0, last.stderr
        assert json.loads(last.stdout.splitlines()[-1])["days"] == {"views": 15, "clones": 15}
        badge = server.request(f"/api/v1/views?id={NAME}&show=clones&peek=1")[2]
        assert json.loads(badge)["message"] == "173"
        assert world.asked[-1] == "PUT /api/v1/badges/traffic?id=octocat%2Fhello"
        assert len(world.asked) == 3 + sum(failures.values())
