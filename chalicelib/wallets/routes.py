"""The routes of wallets.

A user's token is valid only for the user's wallet: to read it, to transfer from it and to switch
its badge on or off. An operator's token is needed to open wallets, and to deposit, which creates
money.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from chalicelib.badges.badge import Badge, explain
from chalicelib.badges.options import LOOK, parse
from chalicelib.badges.responses import badge_json, badge_svg, json_failure, svg_failure
from chalicelib.http import responses
from chalicelib.http.authorization import OF_A_USER, caller_of
from chalicelib.http.errors import ForbiddenError, NotFoundError
from chalicelib.http.messages import Request, Response
from chalicelib.http.query import one
from chalicelib.http.routing import Authentication, Route
from chalicelib.lazy import lazy
from chalicelib.resources import Resources
from chalicelib.settings import Feature
from chalicelib.units import Milliseconds, to_milliseconds

if TYPE_CHECKING:
    from chalicelib.wallets import journal, ledger, opening, requests, serializers, wallet
else:
    journal = lazy("chalicelib.wallets.journal")
    ledger = lazy("chalicelib.wallets.ledger")
    opening = lazy("chalicelib.wallets.opening")
    requests = lazy("chalicelib.wallets.requests")
    serializers = lazy("chalicelib.wallets.serializers")

LABEL = "balance"
NO_BADGE = "no such badge"


def post_wallet(request: Request, resources: Resources) -> Response:
    """Open a wallet for a user who has none."""
    user = requests.read_user(request.body)
    opened = opening.open_wallet(resources.table, user, _now(resources))
    return responses.json(serializers.balance(opened))


def get_own_wallet(request: Request, resources: Resources) -> Response:
    """Answer the wallet of the user whose token it is."""
    found = opening.of_user(resources.table, caller_of(request).user)
    return responses.json(serializers.to_json(found))


def patch_wallet(request: Request, resources: Resources) -> Response:
    """Switch the badge of a wallet on or off."""
    wallet_id = _authorize(request, resources).wallet_id
    is_public = requests.read_publicity(request.body)
    opening.publish(resources.table, wallet_id, is_public=is_public)
    return responses.json({"id": wallet_id, "badge": is_public})


def get_balance(request: Request, resources: Resources) -> Response:
    """Answer the balance of a wallet."""
    return responses.json(serializers.balance(_authorize(request, resources)))


def get_transactions(request: Request, resources: Resources) -> Response:
    """Answer the journal of a wallet, newest first, a page at a time."""
    wallet_id = _authorize(request, resources).wallet_id
    cursor = one(request.query, "cursor", str, default="")
    page = journal.read(resources.table, wallet_id, cursor)
    return responses.json(serializers.transactions(page, wallet_id, _now(resources)))


def put_deposit(request: Request, resources: Resources) -> Response:
    """Deposit into a wallet, once for each nonce."""
    target = request.path_parameters["wallet_id"]
    return _post(requests.read_posting(request.body, target), resources)


def put_transfer(request: Request, resources: Resources) -> Response:
    """Transfer from a wallet to another, once for each nonce."""
    source, target = (request.path_parameters[name] for name in ("wallet_id", "target_id"))
    if not caller_of(request).is_operator:
        _authorize(request, resources)
    return _post(requests.read_posting(request.body, target, source), resources)


def get_badge(request: Request, resources: Resources) -> Response:
    """Answer the balance of a wallet as a badge, if the owner shows it."""
    return badge_json(_badge(request, resources))


def get_badge_svg(request: Request, resources: Resources) -> Response:
    """Answer the balance of a wallet as an image, if the owner shows it."""
    return badge_svg(_badge(request, resources))


def _badge(request: Request, resources: Resources) -> Badge:
    """Draw a balance; a private wallet has the same badge as a wallet that does not exist."""
    options = parse(request.query)
    found = opening.read(resources.table, request.path_parameters["wallet_id"])
    if not found.is_public:
        return Badge.error(LABEL, NO_BADGE)
    return serializers.badge(found, options)


def _draw_failure(failure: Exception) -> Badge:
    return Badge.error(LABEL, NO_BADGE if isinstance(failure, NotFoundError) else explain(failure))


def _post(posting: wallet.Posting, resources: Resources) -> Response:
    ledger.Ledger(resources.table, resources.clock).post(posting)
    return responses.no_content()


def _authorize(request: Request, resources: Resources) -> opening.Wallet:
    """Return the wallet if the token is valid for it. Users don't learn which others exist."""
    caller = caller_of(request)
    try:
        found = opening.read(resources.table, request.path_parameters["wallet_id"])
    except NotFoundError:
        if caller.is_operator:
            raise
        raise ForbiddenError(OF_A_USER) from None
    if not caller.is_operator and found.user_id != caller.user:
        raise ForbiddenError(OF_A_USER)
    return found


def _now(resources: Resources) -> Milliseconds:
    return to_milliseconds(resources.clock())


OPERATOR, USER, TOKEN = Authentication.OPERATOR, Authentication.USER, Authentication.TOKEN
WALLETS = "/api/v1/wallets"
WALLET = f"{WALLETS}/{{wallet_id}}"
_route = partial(Route, feature=Feature.WALLETS)
ROUTES = (
    _route("POST", WALLETS, post_wallet, OPERATOR),
    _route("GET", f"{WALLETS}/me", get_own_wallet, USER),
    _route("PATCH", WALLET, patch_wallet, TOKEN),
    _route("GET", f"{WALLET}/balance", get_balance, TOKEN),
    _route("GET", f"{WALLET}/transactions", get_transactions, TOKEN, options=("cursor",)),
    _route("PUT", f"{WALLET}/deposit", put_deposit, OPERATOR),
    _route("PUT", f"{WALLET}/transfer/{{target_id}}", put_transfer, TOKEN),
    _route(
        "GET",
        f"{WALLET}/badge",
        get_badge,
        with_head=True,
        from_any_site=True,
        on_failure=json_failure(_draw_failure),
        options=LOOK,
    ),
    _route(
        "GET",
        f"{WALLET}/badge.svg",
        get_badge_svg,
        with_head=True,
        from_any_site=True,
        on_failure=svg_failure(_draw_failure),
        options=LOOK,
    ),
)
