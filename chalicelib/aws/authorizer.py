"""`authorize`: the authorizer of the token routes, which lets a bearer of a known token through."""

from __future__ import annotations

import logging

from chalice.app import AuthRequest, AuthResponse, AuthRoute, Blueprint

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.http import tokens

blueprint = Blueprint(__name__)

SECONDS_KEPT = 300
"""API Gateway keeps an answer for so long: a token that is taken away opens doors until then."""
METHODS = ["GET", "PATCH", "POST", "PUT"]
"""Each by its name: a `*` in its place would stand for the beginning of any other path too."""
ALL = ["*"]
OF_USERS = [AuthRoute("/api/v1/wallets", METHODS), AuthRoute("/api/v1/wallets/*", METHODS)]
"""What a user's token opens: the routes of wallets, which look at whose it is."""


@blueprint.authorizer(name="authorize", ttl_seconds=SECONDS_KEPT)
def authorize(request: AuthRequest) -> AuthResponse:
    """All routes for an operator's token, those of wallets for a user's, none for anybody else.

    `user` tells whose the token is. The answer is kept for every route, so it names them all.
    """
    telemetry.begin("authorize", None)
    settings = resources.current().settings
    holder = tokens.holder(request.token, settings.api_token_digests)
    if holder is None:
        telemetry.event(logging.WARNING, "a token was refused")
        return AuthResponse([], "nobody", {"user": ""})
    user = settings.token_users.get(holder, "")
    return AuthResponse([*(OF_USERS if user else ALL)], holder, {"user": user})
