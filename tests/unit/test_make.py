"""The Makefile: its help, and the stacks, functions and region of its deployments."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib

import pytest

from deploy import template
from deploy.stage import Folder
from simulation.environment import ROOT

STAGES = ["dev", "prod"]


def stack_of(target: str, stage: str, *given: str) -> str:
    """Return the one stack that the commands of a target name; none of them is run."""
    printed = subprocess.run(  # noqa: S603  our own words
        ["make", "--dry-run", target, f"STAGE={stage}", "BUCKET=b", *given],  # noqa: S607
        cwd=template.ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    [stack] = set(re.findall(r"--stack(?:-name)? (\S+)", printed))
    return str(stack)


@pytest.mark.parametrize("stage", STAGES)
def test_the_two_deployments_of_a_stage_have_different_stacks(stage: str) -> None:
    """Otherwise the later `make deploy` or `make chalice-deploy` would delete the other API."""
    assert stack_of("deploy", stage) != stack_of("chalice-deploy", stage)


@pytest.mark.parametrize("stage", STAGES)
def test_the_functions_of_a_deployment_begin_with_the_name_of_its_stack(stage: str) -> None:
    """Otherwise the two deployments of a stage would have functions of the same names.

    Chalice names them APP-STAGE-FUNCTION.
    """
    app = json.loads(Folder().config.read_text())["app_name"]
    assert f"{app}-{stage}" == stack_of("chalice-deploy", stage)
    handler = template.load()["Resources"]["APIHandler"]["Properties"]
    assert handler["FunctionName"] == {"Fn::Sub": "${AWS::StackName}-api_handler"}


@pytest.mark.parametrize("target", ["deploy", "chalice-deploy", "fold", "token"])
def test_an_operator_chooses_another_stack(target: str) -> None:
    assert stack_of(target, "prod", "STACK=mine") == "mine"


MAKEFILE = (ROOT / "Makefile").read_text()


def test_every_documented_target_is_in_a_group() -> None:
    """It is listed once, in the order of the Makefile, and each is a phony target."""
    documented = re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE)
    command = ["make", "--no-print-directory", "help"]
    shown = subprocess.check_output(command, cwd=ROOT, text=True)  # noqa: S603  fixed arguments
    assert re.findall(r"^  make (\S+)", shown, re.MULTILINE) == documented
    phony = " ".join(re.findall(r"^\.PHONY: (.*)", MAKEFILE, re.MULTILINE)).split()
    assert set(documented) <= set(phony)
    assert len(set(documented)) == len(documented)


def test_programs_get_the_region_by_the_name_that_they_know() -> None:
    command = ["make", "--no-print-directory", "--eval", "shown: ; @echo $$AWS_DEFAULT_REGION"]
    region = subprocess.run(  # noqa: S603  fixed arguments
        [*command, "shown"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "AWS_REGION": "eu-central-1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert region.stdout == "eu-central-1\n"


def test_the_modules_and_tests_of_mutants_exist() -> None:
    """Otherwise pytest refuses its arguments, and `make mutants` ends before the first mutant."""
    mutmut = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
    named = [*mutmut["only_mutate"], *mutmut["pytest_add_cli_args_test_selection"]]
    assert [path for path in named if not (ROOT / path).exists()] == []
