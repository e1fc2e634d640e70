"""The routes for the owner of a badge: claim, prove, show, change and delete.

They check its secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from chalicelib.counting import badge_count, ids
from chalicelib.counting.view import Windows
from chalicelib.http import authentication, guards, responses, tokens
from chalicelib.http.errors import BadRequestError
from chalicelib.http.messages import OWNER, Change, Request, Response
from chalicelib.http.routing import Route
from chalicelib.lazy import lazy
from chalicelib.resources import Action, Resources
from chalicelib.storage.ports import Table

if TYPE_CHECKING:
    from chalicelib.counting.milestones import Milestone
    from chalicelib.outgoing import urls, webhooks
    from chalicelib.outgoing.fetching import Fetcher
    from chalicelib.outgoing.urls import Resolver
    from chalicelib.outgoing.webhooks import WebhookSchedule
    from chalicelib.owners import changing, claiming, finding, proving, removing, requests
else:
    changing = lazy("chalicelib.owners.changing")
    claiming = lazy("chalicelib.owners.claiming")
    finding = lazy("chalicelib.owners.finding")
    proving = lazy("chalicelib.owners.proving")
    removing = lazy("chalicelib.owners.removing")
    requests = lazy("chalicelib.owners.requests")
    urls, webhooks = lazy("chalicelib.outgoing.urls"), lazy("chalicelib.outgoing.webhooks")

MILESTONES_SECONDS = 5.0
"""The longest time in which the hosts of all milestones are resolved."""


class OwnerResources(Resources, Protocol):
    """The resources of the routes of owners."""

    @property
    def webhooks(self) -> WebhookSchedule | None:
        """Return the schedule of webhooks, or None if events are off."""

    @property
    def resolver(self) -> Resolver:
        """Return the resolver of the host names in the URLs of milestones."""

    @property
    def fetcher(self) -> Fetcher:
        """Return the fetcher of the files that prove the ownership of badges."""


def claim_badge(request: Request, resources: OwnerResources) -> Response:
    """Claim an id that has no views, or prove that an id is yours; return the secret."""
    asked = requests.ClaimBody(request.body)
    if asked.proof is not None:
        return _prove(asked, request, resources)
    ids.check_counted(asked.badge_id, resources)
    guards.check_limit(Action.CLAIM, request, resources)
    _check_quota(asked.badge_id, resources)
    now = resources.view_clock()
    before = _describe(asked.badge_id, resources)
    table, base = resources.table, asked.base or 0
    secret = claiming.claim(table, asked.badge_id, base, now, asked.digest)
    return _claimed_response(secret, before, asked)


def get_badge(request: Request, resources: OwnerResources) -> Response:
    """Show everything that is set of a badge, and its count; this counts no view."""
    owned, _ = _find(request, resources)
    if owned.deleted:
        raise finding.deleted_error(owned.badge_id)
    return responses.json(finding.describe(resources.table, owned))


def change_badge(request: Request, resources: OwnerResources) -> Response:
    """Set the base, reset, freeze, rename, hand over, or remove the views of hours."""
    badge_id, secret, table = _badge_id(request), secret_of(request), resources.table
    asked, now = requests.ChangeBody(request.body), resources.view_clock()
    if not asked.remove:
        ids.check_not_banned(badge_id, resources)
    if asked.digest:
        before = _describe(badge_id, resources)
        owned = changing.hand_over(table, badge_id, secret, asked.digest, now)
        return _changed_response(owned, before, asked)
    if asked.remove:
        owned, by = _find(request, resources, of_operator=finding.look_up)
        before = finding.describe_for_log(table, owned)
        windows = Windows.of(resources.settings)
        removed = removing.remove(table, owned, asked.remove, windows, now)
        return _changed_response(owned, before, asked, by, removed=removed)
    owned, wanted = finding.authenticate(table, badge_id, secret), asked.change
    if wanted.name is not None:
        ids.check_counted(wanted.name, resources)
        guards.check_limit(Action.CLAIM, request, resources)
    if wanted.milestones:
        _check_milestones(wanted.milestones, request, resources)
    before = finding.describe_for_log(table, owned)
    changing.change(table, owned, wanted, now, resources.webhooks)
    return _changed_response(owned, before, asked, id=wanted.name or owned.names[-1])


def delete_badge(request: Request, resources: OwnerResources) -> Response:
    """Remove a badge and all it has."""
    owned = _authenticate(request, resources)
    before = finding.describe_for_log(resources.table, owned)
    retention = resources.settings.retention_seconds
    changing.delete(resources.table, owned, resources.view_clock(), retention)
    return responses.no_content(Change(owned.names[-1], before))


def _prove(asked: requests.ClaimBody, request: Request, resources: OwnerResources) -> Response:
    """Give the badge to the requester if the line of their key is there.

    Without a key, return a new one, and the line that shows it; nothing is stored.
    """
    proof = proving.Proof(asked.badge_id, asked.proof or tokens.new_token(), asked.digest)
    ids.check_counted(proof.badge_id, resources)
    place = proving.find_place(proof.badge_id, resources.settings.proofs)
    guards.check_limit(Action.PROOF, request, resources)
    if not asked.proof:
        shown = {"challenge": proof.challenge, "proof": proof.key, "url": place.url}
        return responses.json({"id": proof.badge_id, **shown}, 202)
    _check_quota(proof.badge_id, resources)
    before = _describe(proof.badge_id, resources)
    search = proving.ProofSearch(resources.table, lambda: resources.fetcher, resources.clock)
    search.prove(proof, place, resources.view_clock())
    return _claimed_response(proof.secret, before, asked)


def _check_quota(badge_id: str, resources: OwnerResources) -> None:
    """Count the badge that a claim is going to make. Raises `NoNewBadgesError`."""
    if resources.quota and badge_count.read(resources.table, badge_id).is_new:
        guards.check_quota(resources)


def _check_milestones(
    wanted: Iterable[Milestone], request: Request, resources: OwnerResources
) -> None:
    """Check the URLs of milestones, which share the time for one. Raises `ClientError`."""
    if resources.webhooks is None:
        raise BadRequestError(
            "milestones: nothing is sent in this deployment, because events are switched off:"
            " EVENTS=off"
        )
    guards.check_limit(Action.CLAIM, request, resources)
    resolver = partial(urls.resolve_for_stranger, resources.resolver)
    named = {milestone.url for milestone in wanted}
    for url in named:
        webhooks.check_webhook(url, resources.settings, resolver, MILESTONES_SECONDS / len(named))


def _describe(badge_id: str, resources: OwnerResources) -> Mapping[str, Any]:
    return finding.describe_for_log(resources.table, finding.look_up(resources.table, badge_id))


def _claimed_response(
    secret: str, before: Mapping[str, Any], asked: requests.ClaimBody
) -> Response:
    told = {"secret": secret} if secret else {}
    change = Change(asked.badge_id, before, asked.given)
    return responses.json({"id": asked.badge_id, **told}, 201, change=change)


def _changed_response(
    owned: finding.OwnedBadge,
    before: Mapping[str, Any],
    asked: requests.ChangeBody,
    by: str = OWNER,
    **more: Any,
) -> Response:
    change = Change(owned.names[-1], before, asked.given, by)
    return responses.json({"id": owned.names[-1], **more}, change=change)


def _find(
    request: Request,
    resources: OwnerResources,
    of_operator: Callable[[Table, str], finding.OwnedBadge] | None = None,
) -> tuple[finding.OwnedBadge, str]:
    """Return the badge for its owner, or for an operator by another function, and who asks."""
    caller = authentication.find(request.headers.get("authorization", ""), resources)
    if caller and caller.is_operator:
        return (of_operator or finding.find)(resources.table, _badge_id(request)), caller.name
    ids.check_not_banned(_badge_id(request), resources)
    return _authenticate(request, resources), OWNER


def _authenticate(request: Request, resources: OwnerResources) -> finding.OwnedBadge:
    return finding.authenticate(resources.table, _badge_id(request), secret_of(request))


def _badge_id(request: Request) -> str:
    """Return the id in the path or in the query. Raises `BadIdError` unless there is one."""
    given = request.path_parameters.get("badge_id")
    return ids.IdOption(request.query).badge_id if given is None else ids.normalise(given)


def secret_of(request: Request) -> str:
    """Return the secret after `Authorization: Bearer`. Raises `NoSecretError`."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        raise finding.NoSecretError("give the secret of the badge: Authorization: Bearer SECRET")
    return secret.strip()


HANDLERS = (("GET", get_badge), ("PATCH", change_badge), ("DELETE", delete_badge))
BADGES = "/api/v1/badges"
"""Without an id, GET lists the badges of a secret (`chalicelib.pages.owned_badges`)."""
ROUTES = (
    Route("POST", BADGES, claim_badge),
    *(Route(method, f"{BADGES}/{{badge_id}}", handler) for method, handler in HANDLERS),
    *(Route(method, BADGES, handler, options=ids.IdOption) for method, handler in HANDLERS[1:]),
)
