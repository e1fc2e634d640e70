"""`authorize`: the authorizer of the routes that need a token."""

from __future__ import annotations

import logging

from chalice.app import AuthRequest, AuthResponse, AuthRoute, Blueprint

from chalicelib import telemetry
from chalicelib.aws import callers, resources
from chalicelib.http import tokens

blueprint = Blueprint(__name__)

CACHED_SECONDS = 300
"""API Gateway caches the answer for this long, also for a token that is removed meanwhile."""
METHODS = ["GET", "PATCH", "POST", "PUT"]
"""A `*` in place of a method would match the beginning of any other path too."""
ALL = ["*"]
OF_USERS = [AuthRoute("/api/v1/wallets", METHODS), AuthRoute("/api/v1/wallets/*", METHODS)]
"""A user's token is valid for the routes of wallets, which check whose token it is."""


@blueprint.authorizer(name="authorize", ttl_seconds=CACHED_SECONDS)
def authorize(request: AuthRequest) -> AuthResponse:
    """Allow all routes for an operator's token, those of wallets for a user's, else none.

    The context has `role` and `user`. The answer names all allowed routes, because API Gateway
    caches it for every route.
    """
    telemetry.begin("authorize", None)
    settings = resources.current().settings
    holder = tokens.holder(request.token, settings.api_token_digests)
    if holder is None:
        telemetry.event(logging.WARNING, "token_refused")
        return AuthResponse([], "nobody", {})
    user = settings.token_users.get(holder, "")
    return AuthResponse([*(OF_USERS if user else ALL)], holder, callers.to_context(user))
