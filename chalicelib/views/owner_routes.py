"""`api_handler`'s routes for who owns a badge: claim, change, delete."""

from __future__ import annotations

import logging
from collections.abc import Callable
from urllib.parse import unquote

from chalice.app import Blueprint, Response

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.badges.options import MAX_BASE
from chalicelib.http.bodies import BadRequestError, body_of, read_fields
from chalicelib.http.responses import ANY_TYPE, answer, error, unavailable
from chalicelib.settings import DIGEST
from chalicelib.storage.errors import StorageError
from chalicelib.storage.ports import Table
from chalicelib.views import ids

blueprint = Blueprint(__name__)

CLAIM = {"id", "base", "digest"}
CHANGE = {"base", "reset", "frozen", "rename"}


@blueprint.route("/api/v1/badges", methods=["POST"], content_types=ANY_TYPE)
def post_badge() -> Response:
    """Claim an id that has no views; answer its secret, unless the owner has one."""
    return _answered(_claim)


@blueprint.route("/api/v1/badges/{badge_id}", methods=["PATCH"], content_types=ANY_TYPE)
def patch_badge(badge_id: str) -> Response:
    """Set the base, reset, freeze, rename."""
    return _answered(lambda table, now: _change(table, now, unquote(badge_id)))


@blueprint.route("/api/v1/badges/{badge_id}", methods=["DELETE"], content_types=ANY_TYPE)
def delete_badge(badge_id: str) -> Response:
    """Remove a badge and all it has."""
    return _answered(lambda table, now: _delete(table, now, unquote(badge_id)))


def _answered(do: Callable[[Table, float], Response]) -> Response:
    from chalicelib.views import owner  # noqa: PLC0415  no view needs it

    telemetry.begin("api_handler", blueprint.lambda_context)
    use = resources.current()
    try:
        return do(use.table, use.clock())
    except (BadRequestError, ids.BadIdError) as wrong:
        return error(400, "bad_request", str(wrong))
    except owner.OwnerError as refusal:
        return _refused(refusal)
    except StorageError:
        telemetry.event(logging.ERROR, "an owner's request failed")
        return unavailable("the table does not answer; nothing is half-done: try again")
    except Exception:  # noqa: BLE001  Chalice would answer it in a form of its own
        telemetry.event(logging.ERROR, "an owner's request failed")
        return error(500, "internal", "an internal error, see the log")


def _refused(refusal: Exception) -> Response:
    from chalicelib.views import owner  # noqa: PLC0415

    match refusal:
        case owner.TakenError():
            return error(409, "taken", str(refusal))
        case owner.NotClaimedError():
            return error(404, "not_claimed", str(refusal))
        case owner.NoSecretError():
            refused = error(401, "unauthorized", str(refusal))
            refused.headers["WWW-Authenticate"] = "Bearer"
            return refused
        case _:
            return error(403, "wrong_secret", str(refusal))


def _claim(table: Table, now: float) -> Response:
    from chalicelib.views import owner  # noqa: PLC0415

    fields = read_fields(body_of(blueprint.current_request), CLAIM)
    badge_id = _id(fields.get("id"), "id")
    own_digest = _digest(fields["digest"]) if "digest" in fields else ""
    claimed = owner.claim(table, badge_id, _base(fields.get("base", 0)), now, own_digest)
    told = {"id": badge_id} | ({"secret": claimed.secret} if claimed.secret else {})
    return answer(told, 201)


def _change(table: Table, now: float, badge_id: str) -> Response:
    from chalicelib.views import owner  # noqa: PLC0415

    owned = owner.authenticate(table, ids.normalise(badge_id), _secret())
    if owned.deleted:
        raise owner.NotClaimedError(f"{badge_id} was deleted")
    fields = read_fields(body_of(blueprint.current_request), CHANGE)
    wanted = owner.Change(
        base=_base(fields["base"]) if "base" in fields else None,
        reset=_flag(fields.get("reset", False), "reset"),
        frozen=_flag(fields["frozen"], "frozen") if "frozen" in fields else None,
        name=_id(fields["rename"], "rename") if "rename" in fields else None,
    )
    if wanted == owner.Change():
        raise BadRequestError(f"give at least one of {', '.join(sorted(CHANGE))}")
    owner.change(table, owned, wanted, now)
    return answer({"id": wanted.name or owned.names[-1]})


def _delete(table: Table, now: float, badge_id: str) -> Response:
    from chalicelib.views import owner  # noqa: PLC0415

    owned = owner.authenticate(table, ids.normalise(badge_id), _secret())
    owner.delete(table, owned, now, resources.current().settings.retention_seconds)
    return Response("", status_code=204, headers={"Cache-Control": "no-store"})


def _id(given: object, name: str) -> str:
    if not isinstance(given, str):
        raise BadRequestError(f"{name}: give an id, a text of 1 to {ids.MAX_CHARACTERS} characters")
    return ids.normalise(given)


def _base(given: object) -> int:
    """A whole number, however it is written: 5.0 is 5 (JSON Schema, "Numeric Types")."""
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    if type(given) is not int or not 0 <= given <= MAX_BASE:
        raise BadRequestError(f"base: give a whole number from 0 to {MAX_BASE}")
    return given


def _digest(given: object) -> str:
    if not isinstance(given, str) or DIGEST.fullmatch(given) is None:
        raise BadRequestError(
            "digest: give the SHA-256 digest of a secret of yours, 64 hex digits in lower case"
        )
    return given


def _flag(given: object, name: str) -> bool:
    if not isinstance(given, bool):
        raise BadRequestError(f"{name}: give true or false")
    return given


def _secret() -> str:
    """Return the secret after `Authorization: Bearer`. Raises `NoSecretError`."""
    from chalicelib.views import owner  # noqa: PLC0415

    given: str = blueprint.current_request.headers.get("authorization", "")
    kind, _, secret = given.partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        raise owner.NoSecretError("give the secret of the badge: Authorization: Bearer SECRET")
    return secret.strip()
