"""`authorize` in the one stack: the authorizer of an HTTP API, with simple responses.

Source: the API Gateway developer guide, "Control access to HTTP APIs with AWS Lambda authorizers".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.http.authentication import authenticate
from chalicelib.http.errors import ClientError


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Name the caller by the token, or refuse a malformed or unknown token.

    The answer depends on the token alone, because API Gateway caches it for every route. The
    function that answers compares the caller with the route.
    """
    telemetry.begin("authorize", context)
    [authorization] = event["identitySource"]
    try:
        caller = authenticate(authorization, resources.current())
    except ClientError:
        return {"isAuthorized": False}
    return {"isAuthorized": True, "context": caller.fields}
