"""A stack on AWS as an installation: its outputs, its items, and what it does not have."""

from __future__ import annotations

import json

import boto3
import pytest
from moto import mock_aws

from vumi.cli.program import main

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
        assert main(["redrive-events", "--stack", "vu-mi-prod"]) == 1
    told = "Error: the stack vu-mi-prod has no events; deploy it with Events=on first\n"
    assert capsys.readouterr().err == told


def test_an_unknown_stack_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with mock_aws():
        assert main(["token", "list", "--stack", "vu-mi-prod"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("Error: ")
    assert "vu-mi-prod" in told
    assert told.count("\n") == 1


def test_a_missing_region_is_reported_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    assert main(["list", "--stack", "vu-mi-prod"]) == 1
    told = "Error: no region is configured; set AWS_DEFAULT_REGION\n"
    assert capsys.readouterr().err == told
