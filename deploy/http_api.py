"""The HTTP API of the one stack, in place of the REST API that Chalice packages.

Its resources are in `.chalice/http_api.yaml`, and its routes come from the table of routes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from chalicelib.api import TABLE
from chalicelib.aws import get_views
from chalicelib.http.routing import Authentication, Route
from chalicelib.settings import Feature
from deploy import template
from deploy.stage import Folder
from deploy.template import Template

RESOURCES = template.ROOT / ".chalice" / "http_api.yaml"
JOINED = ("Parameters", "Rules", "Conditions")
"""The sections of the two templates that are joined as they are."""
CONDITIONS = {Feature.EVENTS: "HasEvents", Feature.WALLETS: "HasWallets"}
REST_API, API_HANDLER = "RestAPI", "APIHandler"
HANDLERS = {
    API_HANDLER: "chalicelib.aws.api_handler.handler",
    "Authorize": "chalicelib.aws.http_authorizer.handler",
}
"""The handlers of Chalice's functions that read the events of an HTTP API, without Chalice."""
APART = {"GetViews": "get_views", "PauseApi": "pause_api"}
"""The functions that Chalice does not know, by their logical names."""
OF_VIEWS = {
    "Target": {"Fn::Sub": "integrations/${GetViewsIntegration}"},
    "AuthorizationType": "NONE",
}
GUARDED = {
    "Target": {"Fn::Sub": "integrations/${ApiHandlerIntegration}"},
    "AuthorizationType": "CUSTOM",
    "AuthorizerId": {"Ref": "HttpApiAuthorizer"},
}
"""The kinds of routes; `$default` calls `api_handler` without the authorizer."""


def replace_rest_api(packaged: Template) -> Template:
    """Return the template of `chalice package` with the HTTP API in place of the REST API."""
    added = template.load(RESOURCES)
    joined = {part: {**packaged.get(part, {}), **added[part]} for part in JOINED}
    resources = {
        **_without_rest_api(packaged["Resources"]),
        **added["Resources"],
        **routes(TABLE.routes),
    }
    for function, handler in HANDLERS.items():
        resources[function] = _with_properties(resources[function], Handler=handler)
    for name, function in APART.items():
        _complete(name, function, resources)
    outputs = {**_without_rest_api(packaged["Outputs"]), **added["Outputs"]}
    return {**packaged, **joined, "Resources": resources, "Outputs": outputs}


def _without_rest_api(parts: Template) -> Template:
    """Return the parts without the REST API and those that refer to it."""
    return {
        name: part
        for name, part in parts.items()
        if name != REST_API and REST_API not in template.names_in(part)
    }


def _complete(name: str, function: str, resources: Template) -> None:
    """Add the policy of a function, and the properties that it shares with `api_handler`."""
    policy = {
        "PolicyName": f"{name}RolePolicy",
        "PolicyDocument": json.loads(Folder().policy(function).read_text()),
    }
    role = f"{name}Role"
    resources[role] = _with_properties(resources[role], Policies=[policy])
    for part, model in ((name, API_HANDLER), (f"{name}LogGroup", "ApiHandlerLogGroup")):
        own = resources[part]
        shared = _with_properties(resources[model], **own["Properties"])["Properties"]
        resources[part] = {**resources[model], **own, "Properties": shared}


def _with_properties(resource: Template, **properties: Any) -> Template:
    return {**resource, "Properties": {**resource["Properties"], **properties}}


def routes(table: Iterable[Route]) -> Template:
    """Return the routes of a table that `$default` can't replace, each after the one before it.

    API Gateway answers concurrent changes of an API with conflicts. A route depends on none that
    has another condition, because that one may be missing.
    """
    made: Template = {}
    latest: dict[Feature | None, str] = {None: "DefaultRoute"}
    for key, route in {key: one for one in table for key in _keys(one)}.items():
        name = "".join(["Route", *map(str.capitalize, re.findall("[A-Za-z0-9]+", key))])
        kind = OF_VIEWS if route in get_views.TABLE.routes else GUARDED
        made[name] = {
            "Type": "AWS::ApiGatewayV2::Route",
            **({"Condition": CONDITIONS[route.feature]} if route.feature else {}),
            "DependsOn": latest.get(route.feature, latest[None]),
            "Properties": {"ApiId": {"Ref": "HttpApi"}, "RouteKey": key, **kind},
        }
        latest[route.feature] = name
    return made


def _keys(route: Route) -> list[str]:
    """Return the keys of a route, none if `$default` answers it in the same way."""
    if route in get_views.TABLE.routes:
        return [f"ANY {route.path}"]
    # Without events and wallets there is no authorizer, so `api_handler` checks the other tokens.
    is_guarded = route.feature is not None and route.authentication is not Authentication.NONE
    return [f"{method} {route.path}" for method in route.methods if is_guarded]
