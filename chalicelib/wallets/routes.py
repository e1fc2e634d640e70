"""What the routes of wallets answer, whatever happens.

A token that names a user is good for that user's wallet alone: to look at it, to transfer from it
and to switch its badge. All else is for tokens that name none: opening wallets, and deposits, which
make money.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from chalice.app import Request, Response

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.badges.badge import Reasons
from chalicelib.badges.options import BadOptionError, Options, one, parse, query_of
from chalicelib.badges.picture import picture
from chalicelib.http import responses
from chalicelib.http.bodies import BadRequestError, body_of
from chalicelib.http.responses import answer, error, unavailable
from chalicelib.resources import Resources
from chalicelib.storage.errors import StorageError
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailed
from chalicelib.wallets import journal, ledger, opening, requests, serializers
from chalicelib.wallets.opening import Wallet
from chalicelib.wallets.wallet import Outcome, Posting

DONE = {"Cache-Control": "no-store"}
OF_A_USER = "the token is a user's: it is good for the user's wallet alone"


REASONS = Reasons(
    ledger.UnknownWalletError,
    "no such badge",
    "a wallet can't be read",
    "the badge of a wallet failed",
)


class ForbiddenError(Exception):
    """The token is not good for this; the message says for what it is."""


REFUSALS: tuple[tuple[type[Exception], int, str], ...] = (
    (BadRequestError, 400, "bad_request"),
    (BadOptionError, 400, "bad_request"),
    (journal.BadCursorError, 400, "bad_request"),
    (ledger.SameWalletError, 400, "same_wallet"),
    (ForbiddenError, 403, "forbidden"),
    (ledger.UnknownWalletError, 404, "not_found"),
    (ledger.NonceReusedError, 422, "nonce_reused"),
)
"""What is wrong with a request, the status and the code; the first that fits."""


def open_wallet(request: Request) -> Response:
    """`POST /api/v1/wallets`."""

    def do(use: Resources, now: int) -> Response:
        _check_operator(request)
        user = requests.read_user(body_of(request))
        return answer(serializers.balance(opening.open_wallet(use.table, user, now)))

    return _answered(do)


def mine(request: Request) -> Response:
    """`GET /api/v1/wallets/me`."""

    def do(use: Resources, _: int) -> Response:
        if not (user := _user(request)):
            raise ForbiddenError("the token names no user: ask for a wallet by its id")
        return answer(serializers.own(opening.of_user(use.table, user)))

    return _answered(do)


def balance(request: Request, wallet_id: str) -> Response:
    """`GET /api/v1/wallets/{id}/balance`."""
    return _answered(
        lambda use, _: answer(serializers.balance(_allowed(request, use.table, wallet_id)))
    )


def transactions(request: Request, wallet_id: str) -> Response:
    """`GET /api/v1/wallets/{id}/transactions`."""

    def do(use: Resources, now: int) -> Response:
        _allowed(request, use.table, wallet_id)
        cursor = one(query_of(request), "cursor", str, default="")
        page = journal.read(use.table, wallet_id, cursor)
        return answer(serializers.transactions(page, wallet_id, now))

    return _answered(do)


def deposit(request: Request, wallet_id: str) -> Response:
    """`PUT /api/v1/wallets/{id}/deposit`."""

    def do(use: Resources, _: int) -> Response:
        _check_operator(request)
        return _moved(use, requests.read_posting(body_of(request), wallet_id))

    return _answered(do)


def transfer(request: Request, source: str, target: str) -> Response:
    """`PUT /api/v1/wallets/{id}/transfer/{target}`."""

    def do(use: Resources, _: int) -> Response:
        if _user(request):
            _allowed(request, use.table, source)
        return _moved(use, requests.read_posting(body_of(request), target, source))

    return _answered(do)


def publish(request: Request, wallet_id: str) -> Response:
    """`PATCH /api/v1/wallets/{id}`."""

    def do(use: Resources, _: int) -> Response:
        _allowed(request, use.table, wallet_id)
        is_public = requests.read_publicity(body_of(request))
        opening.publish(use.table, wallet_id, is_public=is_public)
        return answer({"id": wallet_id, "badge": is_public})

    return _answered(do)


def badge(request: Request, wallet_id: str) -> Response:
    """`GET /api/v1/wallets/{id}/badge`."""
    body, _ = _badge(request, wallet_id)
    return responses.badge(body)


def badge_svg(request: Request, wallet_id: str) -> Response:
    """`GET /api/v1/wallets/{id}/badge.svg`."""
    return responses.svg(picture(*_badge(request, wallet_id)))


def _moved(use: Resources, posting: Posting) -> Response:
    ledger.Ledger(use.table, use.clock).post(posting)
    return Response("", status_code=204, headers=dict(DONE))


def _answered(do: Callable[[Resources, int], Response]) -> Response:
    try:
        use = resources.for_timers()
        return do(use, int(use.clock() * 1000))
    except opening.HasWalletError as refusal:
        return _with(error(409, "wallet_exists", str(refusal)), id=refusal.wallet_id)
    except ledger.RefusedError as refusal:
        return _impossible(refusal)
    except Exception as failure:  # noqa: BLE001  Chalice would answer it in a form of its own
        return _refused(failure)


def _impossible(refusal: ledger.RefusedError) -> Response:
    """Name the balance to those who take from a wallet or deposit, not to those who give to it."""
    answer = refusal.answer
    if answer.outcome is Outcome.BALANCE_LIMIT and answer.entry.posting.source:
        return error(409, str(answer.outcome), "the target has no room for so much")
    refused = error(409, str(answer.outcome), str(refusal))
    return _with(refused, balance=str(answer.balance))


def _with(refused: Response, **more: str) -> Response:
    """An error that tells more than its code and message."""
    refused.body["error"].update(more)
    return refused


def _refused(failure: Exception) -> Response:
    for kind, status, code in REFUSALS:
        if isinstance(failure, kind):
            return error(status, code, str(failure))
    telemetry.event(logging.ERROR, "a request about a wallet failed")
    # A failed condition is no answer of the business here: what it stands for is gone by and by.
    if isinstance(failure, StorageError | ConditionFailed):
        return unavailable("the table does not answer: ask again, with the same nonce")
    return error(500, "internal", "an internal error, see the log")


def _user(request: Request) -> str:
    """Whose the token is, empty for nobody's."""
    authorizer: dict[str, Any] = request.context.get("authorizer") or {}
    return str(authorizer.get("user") or "")


def _check_operator(request: Request) -> None:
    if _user(request):
        raise ForbiddenError(OF_A_USER)


def _allowed(request: Request, table: Table, wallet_id: str) -> Wallet:
    """A wallet that the token is good for. Whose others are, a user's token does not learn."""
    user = _user(request)
    if not user:
        return opening.read(table, wallet_id)
    try:
        wallet = opening.read(table, wallet_id)
    except ledger.UnknownWalletError:
        wallet = None
    if wallet is None or wallet.user_id != user:
        raise ForbiddenError(OF_A_USER)
    return wallet


def _badge(request: Request, wallet_id: str) -> tuple[dict[str, Any], Options]:
    """A badge in any case; of a wallet without one it says no more than of none."""
    try:
        options = parse(query_of(request))
        wallet = opening.read(resources.for_timers().table, wallet_id)
        if wallet.is_public:
            return serializers.badge(wallet, options), options
        reason = REASONS.missing
    except Exception as failure:  # noqa: BLE001  a badge is drawn whatever happens
        reason = REASONS.of(failure)
    return serializers.error(reason), Options()
