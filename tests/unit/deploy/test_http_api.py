"""The HTTP API of the one stack: its routes are those of the table of routes."""

from __future__ import annotations

from chalicelib.api import TABLE
from chalicelib.http.routing import Authentication
from deploy import http_api, template

ROUTES = {
    part["Properties"]["RouteKey"]: part["Properties"]
    for part in http_api.routes(TABLE.routes).values()
}


def test_the_routes_are_those_of_the_table() -> None:
    expected = [f"{method} {route.path}" for route in TABLE.routes for method in route.methods]
    assert sorted(ROUTES) == sorted(expected)
    assert len(http_api.routes(TABLE.routes)) == len(expected)


def test_views_with_their_history_and_pages_have_a_function_of_their_own() -> None:
    of_views = {
        key.split(" ")[1]
        for key, route in ROUTES.items()
        if set(template.names_in(route["Target"])) == {"GetViewsIntegration"}
    }
    assert of_views == {
        "/api/v1/views",
        "/api/v1/views.svg",
        "/api/v1/views/history",
        "/api/v1/views/history.svg",
        "/v1/api/views",
        "/s",
        "/s.png",
    }
    targets = {name for route in ROUTES.values() for name in template.names_in(route["Target"])}
    assert targets == {"GetViewsIntegration", "ApiHandlerIntegration"}


def test_exactly_the_routes_that_need_a_token_have_the_authorizer() -> None:
    for route in TABLE.routes:
        for method in route.methods:
            made = ROUTES[f"{method} {route.path}"]
            guarded = route.authentication is not Authentication.NONE
            assert (made["AuthorizationType"] == "CUSTOM") is guarded
            assert (made.get("AuthorizerId") == {"Ref": "HttpApiAuthorizer"}) is guarded


def test_exactly_the_routes_of_a_feature_have_its_condition() -> None:
    made = {
        part["Properties"]["RouteKey"]: part.get("Condition")
        for part in http_api.routes(TABLE.routes).values()
    }
    assert made == {
        f"{method} {route.path}": route.feature and f"Has{route.feature.value.capitalize()}"
        for route in TABLE.routes
        for method in route.methods
    }


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
