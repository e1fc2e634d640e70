"""The routes for the owner of a badge: claim, show, change and delete. They check its secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.badges.options import MAX_BASE
from chalicelib.http import authentication, guards, responses
from chalicelib.http.bodies import read_fields
from chalicelib.http.errors import BadRequestError
from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import Route
from chalicelib.http.times import to_iso8601
from chalicelib.lazy import lazy
from chalicelib.limits import Action
from chalicelib.resources import Resources
from chalicelib.settings import DIGEST
from chalicelib.views import counting, ids

if TYPE_CHECKING:
    from chalicelib.views.owners import changing, claiming, deleting, errors, finding
else:
    changing = lazy("chalicelib.views.owners.changing")
    claiming = lazy("chalicelib.views.owners.claiming")
    deleting = lazy("chalicelib.views.owners.deleting")
    errors = lazy("chalicelib.views.owners.errors")
    finding = lazy("chalicelib.views.owners.finding")

CLAIM = {"id", "base", "digest"}
CHANGE = {"base", "reset", "frozen", "rename"}
MAX_BODY_BYTES = 16_384
"""More than any claim or change has; a claim is read before its caller is known."""


def post_badge(request: Request, resources: Resources) -> Response:
    """Claim an id that has no views; answer its secret, unless the owner chose one."""
    fields = read_fields(request.body, CLAIM, MAX_BODY_BYTES)
    badge_id = _id(fields.get("id"), "id")
    ids.check_counted(badge_id, resources.settings)
    own_digest = _digest(fields["digest"]) if "digest" in fields else ""
    base = _base(fields.get("base", 0))
    guards.check_limit(Action.CLAIM, request, resources)
    claimed = claiming.claim(resources.table, badge_id, base, resources.view_clock(), own_digest)
    secret = {"secret": claimed.secret} if claimed.secret else {}
    return responses.json({"id": badge_id, **secret}, 201)


def get_badge(request: Request, resources: Resources) -> Response:
    """Show the names, the base and the count of a badge; this counts no view."""
    owned = _find(request, resources)
    if owned.deleted:
        raise finding.deleted_error(owned.badge_id)
    count = counting.read(resources.table, owned.badge_id)
    return responses.json(
        {
            "id": owned.names[-1],
            "names": sorted({*owned.names}),
            "base": count.summary.base,
            "count": count.shown,
            "frozen": count.summary.frozen,
            "created": to_iso8601(owned.created * 1000),
        }
    )


def patch_badge(request: Request, resources: Resources) -> Response:
    """Set the base, reset, freeze, rename."""
    owned = _authenticate(request, resources)
    wanted = _read_change(request.body)
    if wanted.name is not None:
        ids.check_counted(wanted.name, resources.settings)
    changing.change(resources.table, owned, wanted, resources.view_clock())
    return responses.json({"id": wanted.name or owned.names[-1]})


def delete_badge(request: Request, resources: Resources) -> Response:
    """Remove a badge and all it has."""
    owned = _authenticate(request, resources)
    retention = resources.settings.retention_seconds
    deleting.delete(resources.table, owned, resources.view_clock(), retention)
    return responses.no_content()


def _find(request: Request, resources: Resources) -> finding.OwnedBadge:
    """Return the badge for its owner or an operator."""
    caller = authentication.find(request.headers.get("authorization", ""), resources)
    if caller and caller.is_operator:
        return finding.find(resources.table, _badge_id(request))
    return _authenticate(request, resources)


def _authenticate(request: Request, resources: Resources) -> finding.OwnedBadge:
    return finding.authenticate(resources.table, _badge_id(request), _secret(request))


def _badge_id(request: Request) -> str:
    """Return the id in the path or in the query. Raises `BadIdError` unless there is one."""
    return ids.parse([*request.path_parameters.values(), *request.query.get("id", ())])


def _read_change(body: bytes) -> changing.BadgeChange:
    fields = read_fields(body, CHANGE, MAX_BODY_BYTES)
    wanted = changing.BadgeChange(
        base=_base(fields["base"]) if "base" in fields else None,
        reset=_flag(fields.get("reset", False), "reset"),
        frozen=_flag(fields["frozen"], "frozen") if "frozen" in fields else None,
        name=_id(fields["rename"], "rename") if "rename" in fields else None,
    )
    if wanted == changing.BadgeChange():
        raise BadRequestError(f"give at least one of {', '.join(sorted(CHANGE))}")
    return wanted


def _id(given: object, name: str) -> str:
    if not isinstance(given, str):
        raise BadRequestError(f"{name}: give an id, a text of 1 to {ids.MAX_CHARACTERS} characters")
    return ids.normalise(given)


def _base(given: object) -> int:
    """Return a whole number; 5.0 is 5, too (JSON Schema, "Numeric Types")."""
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


def _secret(request: Request) -> str:
    """Return the secret after `Authorization: Bearer`. Raises `NoSecretError`."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        raise errors.NoSecretError("give the secret of the badge: Authorization: Bearer SECRET")
    return secret.strip()


ROUTES = (
    Route("POST", "/api/v1/badges", post_badge),
    *(
        Route(method, path, handler)
        for path in ("/api/v1/badges", "/api/v1/badges/{badge_id}")
        for method, handler in (
            ("GET", get_badge),
            ("PATCH", patch_badge),
            ("DELETE", delete_badge),
        )
    ),
)
