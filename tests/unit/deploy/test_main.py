"""The steps of `python -m deploy`, as the Makefile calls them."""

from __future__ import annotations

import json

import boto3
import pytest
from moto import mock_aws

from deploy.__main__ import main

BADGES_ALONE = {
    "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
    "Outputs": {"TableName": {"Value": "vu-mi"}},
}


def test_a_command_for_events_says_that_the_stack_has_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with mock_aws():
        boto3.client("cloudformation").create_stack(
            StackName="vu-mi-prod", TemplateBody=json.dumps(BADGES_ALONE)
        )
        assert main(["redrive-events", "--stage", "prod"]) == 1
    told = "the stack vu-mi-prod has no events; deploy it with Events=on first\n"
    assert capsys.readouterr().err == told
