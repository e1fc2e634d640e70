"""The parts of a template whose conditions are decided, as CloudFormation decides them."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.conditions import choose, decide

GIVEN: dict[str, Any] = {
    "Conditions": {
        "HasEvents": {"Fn::Equals": [{"Ref": "Events"}, "on"]},
        "HasArns": {"Fn::Not": [{"Fn::Equals": [{"Fn::Join": ["", {"Ref": "Arns"}]}, ""]}]},
    },
    "Resources": {
        "Queue": {"Type": "AWS::SQS::Queue", "Condition": "HasEvents"},
        "Topic": {"Type": "AWS::SNS::Topic", "Condition": "HasArns"},
        "Role": {"Properties": {"Condition": {"Bool": {"aws:SecureTransport": "false"}}}},
    },
    "Outputs": {"Url": {"Condition": "HasEvents", "Value": {"Ref": "Queue"}}},
}
NOTHING = {"Ref": "AWS::NoValue"}


@pytest.mark.parametrize(("is_true", "kept"), [(True, {"Queue"}), (False, set())])
def test_a_part_whose_condition_is_false_is_left_out(*, is_true: bool, kept: set[str]) -> None:
    """A condition that is not decided stays, and so does that of IAM."""
    decided = decide(GIVEN, {"HasEvents": is_true})
    assert set(decided["Resources"]) == {"Topic", "Role"} | kept
    assert all("Condition" not in decided["Resources"][name] for name in kept)
    assert decided["Resources"]["Topic"] == GIVEN["Resources"]["Topic"]
    assert decided["Resources"]["Role"] == GIVEN["Resources"]["Role"]
    assert decided["Outputs"] == ({"Url": {"Value": {"Ref": "Queue"}}} if is_true else {})
    assert set(decided["Conditions"]) == set(GIVEN["Conditions"]) - {"HasEvents"}


def test_one_of_two_values_is_chosen_and_no_value_removes_its_place() -> None:
    def either(condition: str, then: Any, otherwise: Any) -> Any:
        return {"Fn::If": [condition, then, otherwise]}

    part = {
        "a": either("Yes", 1, 2),
        "b": either("No", 1, NOTHING),
        "c": [either("No", 1, NOTHING), either("Yes", either("No", 3, 4), NOTHING), 5],
        "d": either("Maybe", either("Yes", 1, 2), NOTHING),
    }
    assert choose(part, {"Yes": True, "No": False}) == {
        "a": 1,
        "c": [4, 5],
        "d": either("Maybe", 1, NOTHING),
    }
