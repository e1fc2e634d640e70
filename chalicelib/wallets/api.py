"""`api_handler`'s routes for wallets.

What they answer is in `doors`, imported on use, so that the cold start of a badge is spared it.
"""

from __future__ import annotations

from urllib.parse import unquote

from chalice.app import Blueprint, Request, Response

from chalicelib import telemetry
from chalicelib.aws.authorizer import authorize
from chalicelib.http.responses import ANY_TYPE

# ruff: noqa: PLC0415

blueprint = Blueprint(__name__)

WALLETS = "/api/v1/wallets"
WALLET = WALLETS + "/{wallet_id}"


@blueprint.route(WALLETS, methods=["POST"], content_types=ANY_TYPE, authorizer=authorize)
def post_wallet() -> Response:
    """Open a wallet for a user who has none."""
    from chalicelib.wallets import routes

    return routes.open_wallet(_begun())


@blueprint.route(WALLETS + "/me", methods=["GET"], content_types=ANY_TYPE, authorizer=authorize)
def get_my_wallet() -> Response:
    """The wallet of the user whom the token names."""
    from chalicelib.wallets import routes

    return routes.mine(_begun())


@blueprint.route(WALLET, methods=["PATCH"], content_types=ANY_TYPE, authorizer=authorize)
def patch_wallet(wallet_id: str) -> Response:
    """Switch the badge of a wallet on or off."""
    from chalicelib.wallets import routes

    return routes.publish(_begun(), unquote(wallet_id))


@blueprint.route(WALLET + "/balance", methods=["GET"], content_types=ANY_TYPE, authorizer=authorize)
def get_balance(wallet_id: str) -> Response:
    """What a wallet has."""
    from chalicelib.wallets import routes

    return routes.balance(_begun(), unquote(wallet_id))


@blueprint.route(
    WALLET + "/transactions", methods=["GET"], content_types=ANY_TYPE, authorizer=authorize
)
def get_transactions(wallet_id: str) -> Response:
    """What moved, newest first."""
    from chalicelib.wallets import routes

    return routes.transactions(_begun(), unquote(wallet_id))


@blueprint.route(WALLET + "/deposit", methods=["PUT"], content_types=ANY_TYPE, authorizer=authorize)
def put_deposit(wallet_id: str) -> Response:
    """Deposit into a wallet, once for each nonce."""
    from chalicelib.wallets import routes

    return routes.deposit(_begun(), unquote(wallet_id))


@blueprint.route(
    WALLET + "/transfer/{target_id}", methods=["PUT"], content_types=ANY_TYPE, authorizer=authorize
)
def put_transfer(wallet_id: str, target_id: str) -> Response:
    """Transfer from a wallet to another, once for each nonce."""
    from chalicelib.wallets import routes

    return routes.transfer(_begun(), unquote(wallet_id), unquote(target_id))


@blueprint.route(WALLET + "/badge", methods=["GET", "HEAD"], content_types=ANY_TYPE)
def wallet_badge(wallet_id: str) -> Response:
    """The balance of a wallet whose owner shows it, as shields.io's endpoint JSON."""
    from chalicelib.wallets import routes

    return routes.badge(_begun(), unquote(wallet_id))


@blueprint.route(WALLET + "/badge.svg", methods=["GET", "HEAD"], content_types=ANY_TYPE)
def wallet_badge_svg(wallet_id: str) -> Response:
    """The same as a picture."""
    from chalicelib.wallets import routes

    return routes.badge_svg(_begun(), unquote(wallet_id))


def _begun() -> Request:
    telemetry.begin("api_handler", blueprint.lambda_context)
    return blueprint.current_request
