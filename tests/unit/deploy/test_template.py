"""The variants of `.chalice/resources.yaml`: resolved, standalone, and for other stages."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from deploy import template
from deploy.template import UnknownNameError, choose, decide, names_in, resolve

NAMES = {
    "Table": "vu-mi",
    "Table.Arn": "arn:aws:dynamodb:us-east-1:123456789012:table/vu-mi",
    "Table.StreamArn": "arn:aws:dynamodb:us-east-1:123456789012:table/vu-mi/stream/label",
    "AWS::Region": "us-east-1",
}


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ({"Ref": "Table"}, ["Table"]),
        ({"Ref": "RestAPI.Stage"}, ["RestAPI"]),
        ({"Ref": "AWS::Region"}, []),
        ({"Fn::GetAtt": ["Table", "Arn"]}, ["Table"]),
        ({"Fn::Sub": "${Queue.QueueName} in ${AWS::Region} and ${Table}"}, ["Queue", "Table"]),
        ({"Fn::Sub": ["${Used} ${Own.Arn}", {"Used": {"Ref": "Table"}}]}, ["Own", "Table"]),
        ({"Fn::Sub": "${!Table} is a text, and so is $Table"}, []),
        ({"a": [{"b": {"Ref": "Table"}}, 7, None], "c": {"Ref": "Queue"}}, ["Table", "Queue"]),
        ({"Fn::If": ["Told", {"Ref": "Topic"}, {"Ref": "AWS::NoValue"}]}, ["Topic"]),
        ("a text that says ${Table}", []),
        ([], []),
    ],
)
def test_the_names_in_a_part_are_those_that_it_refers_to(part: object, names: list[str]) -> None:
    assert list(names_in(part)) == names


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"Ref": "Table"}, "vu-mi"),
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Fn::GetAtt": ["Table", "Arn"]}, NAMES["Table.Arn"]),
        ({"Fn::Sub": "${Table.Arn}/stream/*"}, NAMES["Table.Arn"] + "/stream/*"),
        ({"Fn::Sub": "${AWS::Region}:${Table}:${Table}"}, "us-east-1:vu-mi:vu-mi"),
        ({"Fn::If": ["Told", {"Ref": "Unknown"}, {"Ref": "Table"}]}, "vu-mi"),
        ({"a": [{"Ref": "Table"}, 7, None, True]}, {"a": ["vu-mi", 7, None, True]}),
        ({"Action": "sqs:SendMessage"}, {"Action": "sqs:SendMessage"}),
    ],
)
def test_a_resolved_part_has_values_where_it_referred_to_names(part: object, value: object) -> None:
    """A choice resolves to its value for a false condition."""
    before = copy.deepcopy(part)
    assert resolve(part, NAMES) == value
    assert part == before


@pytest.mark.parametrize(
    ("part", "unknown"),
    [
        ({"Ref": "Queue"}, "Queue"),
        ({"Fn::GetAtt": ["Table", "Name"]}, "Table.Name"),
        ({"Fn::If": ["Told", {"Ref": "Table"}, {"Ref": "Queue"}]}, "Queue"),
        ({"Statement": [{"Resource": {"Fn::Sub": "arn:${AWS::Partition}"}}]}, "AWS::Partition"),
    ],
)
def test_a_name_without_a_value_is_refused_by_name_and_the_known_are_listed(
    part: object, unknown: str
) -> None:
    with pytest.raises(UnknownNameError) as refused:
        resolve(part, NAMES)
    known = "AWS::Region, Table, Table.Arn, Table.StreamArn"
    assert str(refused.value) == (f"the template refers to {unknown}; the known names are {known}")


# ---- a stack of its own

SMALL: dict[str, Any] = {
    "Parameters": {"Used": {"Type": "String"}, "UsedByWhatGoes": {"Type": "String"}},
    "Conditions": {
        "Told": {"Fn::Equals": [{"Ref": "Used"}, ""]},
        "Asked": {"Fn::Equals": [{"Ref": "UsedByWhatGoes"}, ""]},
        "Seen": {"Fn::Equals": [{"Ref": "Used"}, "seen"]},
    },
    "Resources": {
        "Function": {"Properties": {"Runtime": {"Fn::If": ["Asked", "python3.13", "none"]}}},
        "Alarm": {"Type": "Alarm", "Properties": {"Of": {"Ref": "Function"}}},
        "Board": {
            "Type": "Board",
            "Properties": {"Of": {"Fn::Sub": "${Alarm.Arn} ${UsedByWhatGoes}"}},
        },
        "Table": {"Type": "Table"},
        "Stream": {"Type": "Stream", "Condition": "Told", "Of": {"Fn::GetAtt": ["Table", "Arn"]}},
    },
    "Outputs": {
        "TableName": {"Value": {"Fn::If": ["Seen", {"Ref": "Table"}, "none"]}},
        "BoardName": {"Value": {"Ref": "Board"}},
    },
}
"""Board needs Alarm, Alarm needs Function, and Chalice makes Function."""


def test_a_resource_that_refers_to_a_removed_one_is_removed() -> None:
    before = copy.deepcopy(SMALL)
    alone = template.extract_standalone(SMALL)
    assert set(alone["Resources"]) == {"Table", "Stream"}
    assert alone["Outputs"] == {"TableName": SMALL["Outputs"]["TableName"]}
    assert alone["Parameters"] == {"Used": {"Type": "String"}}
    kept = {name: SMALL["Conditions"][name] for name in ("Told", "Seen")}
    assert alone["Conditions"] == kept
    assert before == SMALL


def test_a_written_template_reads_as_it_was_and_has_no_aliases() -> None:
    """CloudFormation does not support aliases (its guide, "CloudFormation template formats")."""
    written = template.dump(template.load())
    assert yaml.safe_load(written) == template.load()
    events = {type(event) for event in yaml.parse(written)}
    assert yaml.AliasEvent not in events
    assert yaml.AliasEvent in {type(event) for event in yaml.parse(template.RESOURCES.read_text())}


# ---- other stages than prod


@pytest.mark.parametrize("stage", ["dev", "staging", "Prod", "production"])
def test_any_other_stage_differs_from_prod_by_the_protection_of_its_data_alone(stage: str) -> None:
    """Prod keeps earlier versions of archived objects."""
    whole = template.load()
    assert template.for_stage(template.load(), "prod") == whole
    for name in ("Table", "ViewsDeadLetters", "Archive", "ArchivePolicy"):
        del whole["Resources"][name]["DeletionPolicy"]
        del whole["Resources"][name]["UpdateReplacePolicy"]
    del whole["Resources"]["Table"]["Properties"]["DeletionProtectionEnabled"]
    versions = whole["Resources"]["Archive"]["Properties"].pop("VersioningConfiguration")
    assert versions == {"Status": "Enabled"}
    assert template.for_stage(template.load(), stage) == whole


# ---- conditions

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
