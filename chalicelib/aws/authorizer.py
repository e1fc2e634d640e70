"""`authorize`: the authorizer of the routes that need a token."""

from __future__ import annotations

from chalice.app import AuthRequest, AuthResponse, AuthRoute, Blueprint

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.http.authentication import authenticate
from chalicelib.http.errors import ClientError

blueprint = Blueprint(__name__)

CACHED_SECONDS = 300
"""API Gateway caches the answer for this long, also for a token that is revoked meanwhile."""
METHODS = ["GET", "PATCH", "POST", "PUT"]
"""A `*` in place of a method would match the beginning of any other path too."""
ALL = ["*"]
OF_USERS = [AuthRoute("/api/v1/wallets", METHODS), AuthRoute("/api/v1/wallets/*", METHODS)]
"""A user's token is valid for the routes of wallets, which check whose token it is."""


@blueprint.authorizer(name="authorize", ttl_seconds=CACHED_SECONDS)
def authorize(request: AuthRequest) -> AuthResponse:
    """Allow all routes for an operator's token, those of wallets for a user's, else none.

    The context has `role`, `user` and the token's `name`. The answer names all allowed routes,
    because API Gateway caches it for every route.
    """
    telemetry.begin("authorize", None)
    try:
        caller = authenticate(request.token, resources.current())
    except ClientError:
        return AuthResponse([], "nobody", {})
    allowed = ALL if caller.is_operator else OF_USERS
    return AuthResponse([*allowed], caller.user or str(caller.role), caller.fields)
