"""`make help` lists every documented target in its group, and what users need first."""

from __future__ import annotations

import re
import subprocess
from functools import cache

from simulation.environment import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()
USERS = ["Run it on this machine", "Run it on AWS"]
DEVELOPERS = ["Develop", "Test more", "Measure", "Maintain"]


@cache
def shown() -> str:
    command = ["make", "--no-print-directory", "help"]
    finished = subprocess.run(  # noqa: S603  fixed arguments
        command, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return finished.stdout


def test_groups_of_users_come_before_those_of_developers() -> None:
    assert re.findall(r"^\S.*", shown(), re.MULTILINE) == [*USERS, *DEVELOPERS]
    assert shown().startswith(f"\n{USERS[0]}\n  make run ")


def test_every_documented_target_is_in_a_group() -> None:
    """It is listed once, in the order of the Makefile, and each is a phony target."""
    documented = re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE)
    assert re.findall(r"^  make (\S+)", shown(), re.MULTILINE) == documented
    phony = " ".join(re.findall(r"^\.PHONY: (.*)", MAKEFILE, re.MULTILINE)).split()
    assert set(documented) <= set(phony)
    assert len(set(documented)) == len(documented)


def test_a_terminal_of_80_columns_shows_every_line_whole() -> None:
    assert [line for line in shown().splitlines() if len(line) > 80] == []


def test_variables_have_a_line_of_their_own() -> None:
    lines = shown().splitlines()
    deploy = lines.index("  make deploy          deploy one stack to AWS")
    assert lines[deploy + 1].strip() == "STAGE=prod BUCKET=my-bucket [EMAIL=me@example.org]"
    assert not [line for line in lines if re.match(r"  make .*[A-Z]=", line)]
