"""The HTTP API of the one stack, as it is made of the table of routes and of Chalice's template."""

from __future__ import annotations

from chalicelib.api import TABLE
from deploy import http_api


def test_exactly_the_routes_of_a_feature_have_its_condition() -> None:
    """No route depends on one that has another condition, because that one may be missing."""
    made = http_api.routes(TABLE.routes)
    features = {route.path: route.feature for route in TABLE.routes}
    for part in made.values():
        feature = features[part["Properties"]["RouteKey"].split(" ")[1]]
        condition = feature and f"Has{feature.value.capitalize()}"
        assert part.get("Condition") == condition
        before = made.get(part["DependsOn"], {})
        assert before.get("Condition") in {None, condition}


def test_the_template_has_nothing_of_the_rest_api() -> None:
    """All parts that refer to it are left out; others stay as they are."""
    function = {"Type": "AWS::Serverless::Function", "Properties": {"Handler": "app.app"}}
    log = {"Type": "AWS::Logs::LogGroup", "Properties": {"RetentionInDays": 30}}
    table = {"Type": "AWS::DynamoDB::Table"}
    packaged = {
        "Resources": {
            "RestAPI": {"Type": "AWS::Serverless::Api", "Properties": {}},
            "APIHandlerInvokePermission": {"Properties": {"SourceArn": {"Ref": "RestAPI"}}},
            "APIHandler": function,
            "Authorize": function,
            "ApiHandlerLogGroup": log,
            "Table": table,
        },
        "Outputs": {"RestAPIId": {"Value": {"Ref": "RestAPI"}}, "TableName": {"Ref": "Table"}},
        "Parameters": {"AlarmEmail": {"Type": "String"}},
        "Conditions": {"HasAlarmEmail": {}},
    }
    made = http_api.replace_rest_api(packaged)
    assert "RestAPI" not in str(made)
    assert made["Resources"]["Table"] == table
    assert set(made["Outputs"]) == {"BadgeURL", "DomainTarget", "HttpApiId", "TableName"}
    assert {"AlarmEmail", "DomainName"} <= set(made["Parameters"])
    assert {"HasAlarmEmail", "HasDomain"} <= set(made["Conditions"])
    handlers = {
        name: part["Properties"]["Handler"]
        for name, part in made["Resources"].items()
        if part["Type"] == "AWS::Serverless::Function"
    }
    assert handlers == {
        "GetViews": "chalicelib.aws.get_views.handler",
        "APIHandler": "chalicelib.aws.api_handler.handler",
        "Authorize": "chalicelib.aws.http_authorizer.handler",
    }
    assert made["Resources"]["GetViewsLogGroup"]["Properties"]["RetentionInDays"] == 30
