"""The refusals of owners' requests. Each message says why, and what to do instead."""

from __future__ import annotations

from chalicelib.http.errors import ClientError, UnauthorizedError


class OwnerError(ClientError):
    """An owner's request is refused. The message says why."""


class TakenError(OwnerError):
    """The id has an owner, views, a base or GitHub's numbers, or is an alias of another badge."""

    status = 409
    code = "taken"


class ReachedError(OwnerError):
    """The badge has reached a new milestone already, so it would never be sent."""

    status = 409
    code = "reached"


class NotFoldedError(OwnerError):
    """The hours have views that are not folded yet, so they can't be removed."""

    status = 409
    code = "not_folded"


class NotClaimedError(OwnerError):
    """The id has no owner, so nobody can change its badge."""

    status = 404
    code = "not_claimed"


class NoSecretError(UnauthorizedError, OwnerError):
    """The request has no secret."""


class WrongSecretError(OwnerError):
    """The secret is not that of the badge."""

    status = 403
    code = "wrong_secret"
