"""`authorize`: the authorizer of the token routes, which lets a bearer of a known token through."""

from __future__ import annotations

import logging

from chalice.app import AuthRequest, AuthResponse, Blueprint

from chalicelib import resources, telemetry, tokens

blueprint = Blueprint(__name__)

SECONDS_KEPT = 300
"""API Gateway keeps an answer for so long: a token that is taken away opens doors until then."""


@blueprint.authorizer(name="authorize", ttl_seconds=SECONDS_KEPT)
def authorize(request: AuthRequest) -> AuthResponse:
    """All routes for who has a token, none for anybody else."""
    telemetry.begin("authorize", None)
    known = resources.for_timers().settings.api_token_digests
    holder = tokens.holder(request.token, known)
    if holder is None:
        telemetry.event(logging.WARNING, "a token was refused")
    return AuthResponse(routes=["*"] if holder else [], principal_id=holder or "nobody")
