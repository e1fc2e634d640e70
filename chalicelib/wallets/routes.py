"""The routes of wallets.

A user's token is valid only for the user's wallet: to read it, to transfer from it and to switch
its badge on or off. An operator's token is needed to open wallets, and to deposit, which creates
money.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from chalicelib.badges.options import Badge, Look
from chalicelib.badges.responses import badge_route, explain, respond
from chalicelib.http import responses
from chalicelib.http.errors import ForbiddenError, NotFoundError
from chalicelib.http.fields import NEXT_PAGE, Field, Options, string
from chalicelib.http.guards import OF_A_USER, caller_of
from chalicelib.http.messages import Change, Request, Response
from chalicelib.http.routing import Authentication, Route
from chalicelib.lazy import lazy
from chalicelib.resources import Resources
from chalicelib.settings import Feature
from chalicelib.units import Milliseconds, to_milliseconds

if TYPE_CHECKING:
    from chalicelib.wallets import ledger, serializers, wallet
else:
    ledger = lazy("chalicelib.wallets.ledger")
    serializers = lazy("chalicelib.wallets.serializers")
    wallet = lazy("chalicelib.wallets.wallet")

NO_BADGE = "no such badge"


class JournalOptions(Options):
    """The option of a journal."""

    cursor = Field(str, lambda: string(wallet.ID), NEXT_PAGE, default="")


def open_wallet(request: Request, resources: Resources) -> Response:
    """Open a wallet for a user who has none."""
    user = serializers.WalletBody(request.body).user_id
    opened = wallet.open_wallet(resources.table, user, _now(resources))
    return responses.json(serializers.balance(opened), change=Change(opened.wallet_id))


def get_my_wallet(request: Request, resources: Resources) -> Response:
    """Return the caller's wallet."""
    found = wallet.of_user(resources.table, caller_of(request).user)
    return responses.json(serializers.to_json(found))


def change_wallet(request: Request, resources: Resources) -> Response:
    """Switch the badge of a wallet on or off."""
    found, asked = _authorize(request, resources), serializers.WalletChangeBody(request.body)
    wallet.publish(resources.table, found.wallet_id, is_public=asked.badge)
    change = Change(found.wallet_id, {"badge": found.is_public}, asked.given)
    return responses.json({"id": found.wallet_id, "badge": asked.badge}, change=change)


def get_balance(request: Request, resources: Resources) -> Response:
    """Return the balance of a wallet."""
    return responses.json(serializers.balance(_authorize(request, resources)))


def list_transactions(request: Request, resources: Resources) -> Response:
    """Return the journal of a wallet, newest first, a page at a time."""
    wallet_id = _authorize(request, resources).wallet_id
    cursor = JournalOptions(request.query).cursor
    page = ledger.read_journal(resources.table, wallet_id, cursor)
    return responses.json(serializers.transactions(page, wallet_id, _now(resources)))


def deposit_money(request: Request, resources: Resources) -> Response:
    """Deposit into a wallet, once for each nonce."""
    target = request.path_parameters["wallet_id"]
    _post(serializers.PostingBody(request.body).posting(target), resources)
    # The balance before is in the journal, and a read costs a unit.
    return responses.no_content(Change(target, {}))


def transfer_money(request: Request, resources: Resources) -> Response:
    """Transfer from a wallet to another, once for each nonce."""
    source, target = (request.path_parameters[name] for name in ("wallet_id", "target_id"))
    if not caller_of(request).is_operator:
        _authorize(request, resources)
    _post(serializers.PostingBody(request.body).posting(target, source), resources)
    # Users move their own money, and the journal has who and what.
    return responses.no_content(None)


def get_wallet_badge(request: Request, resources: Resources) -> Response:
    """Return the balance of a wallet as a badge, if the owner shows it.

    A private wallet has the same badge as a wallet that does not exist.
    """
    look = Look(request.query)
    found = wallet.read(resources.table, request.path_parameters["wallet_id"])
    if not found.is_public:
        return respond(Badge.error(serializers.LABEL, NO_BADGE), request)
    return respond(serializers.badge(found, look), request)


def _draw_failure(failure: Exception) -> Badge:
    return Badge.error(
        serializers.LABEL, NO_BADGE if isinstance(failure, NotFoundError) else explain(failure)
    )


def _post(posting: wallet.Posting, resources: Resources) -> None:
    ledger.Ledger(resources.table, resources.clock).post(posting)


def _authorize(request: Request, resources: Resources) -> wallet.Wallet:
    """Return the wallet if the token is valid for it. Users don't learn which others exist."""
    caller = caller_of(request)
    try:
        found = wallet.read(resources.table, request.path_parameters["wallet_id"])
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
_badge = badge_route(get_wallet_badge, _draw_failure, options=Look, feature=Feature.WALLETS)
ROUTES = (
    _route("POST", WALLETS, open_wallet, OPERATOR),
    _route("GET", f"{WALLETS}/me", get_my_wallet, USER),
    _route("PATCH", WALLET, change_wallet, TOKEN),
    _route("GET", f"{WALLET}/balance", get_balance, TOKEN),
    _route("GET", f"{WALLET}/transactions", list_transactions, TOKEN, options=JournalOptions),
    _route("PUT", f"{WALLET}/deposit", deposit_money, OPERATOR),
    _route("PUT", f"{WALLET}/transfer/{{target_id}}", transfer_money, TOKEN),
    *(_badge(path=f"{WALLET}/badge{form}") for form in ("", ".svg")),
)
