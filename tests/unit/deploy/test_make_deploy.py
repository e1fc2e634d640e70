"""`make deploy` and `make chalice-deploy` of one stage use stacks and functions of their own."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from deploy import template
from deploy.stage import Folder

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
    """Otherwise the later one would delete the API of the earlier one."""
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
