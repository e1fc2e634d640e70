"""The description of the routes for wallets."""

from __future__ import annotations

import re

from chalicelib.badges.description import always_drawn, badge_operations, json_badge, options_of
from chalicelib.http.description import MOMENT, NEXT_PAGE
from chalicelib.http.openapi import (
    Operation,
    Refusal,
    Section,
    array,
    enum,
    json_content,
    link,
    path_parameter,
    query_parameter,
    record,
    schema,
    string,
    success,
)
from chalicelib.wallets import amounts, journal, requests, serializers
from chalicelib.wallets.ledger import (
    NonceReusedError,
    RefusedError,
    SameWalletError,
    UnknownWalletError,
)
from chalicelib.wallets.opening import HasWalletError, Wallet
from chalicelib.wallets.wallet import HOT_SECONDS, ID, Entry, Posting, PostingKind, PostingOutcome

HOT_DAYS = HOT_SECONDS // 86_400
UP_TO_MAX = f"Millionths of the unit, at most {amounts.MAX_BALANCE}."
ZERO_OR_AMOUNT = re.compile(f"(0|{amounts.AMOUNT.pattern})")
WALLET_ID = schema("WalletId", string(ID), "A ULID.")
TRANSACTION_ID = schema("TransactionId", string(ID))
USER_ID = schema("UserId", string(requests.UUID_TEXT), "A UUID. It is stored in lower case.")
AMOUNT = schema("Amount", string(amounts.AMOUNT), UP_TO_MAX)
MILLIONTHS = schema("Millionths", string(ZERO_OR_AMOUNT), UP_TO_MAX)
NONCE = schema("Nonce", string(requests.NONCE), "A new one for each posting of the wallet.")
SHOWN = {"type": "boolean", "description": "Whether everybody may see the balance as a badge."}
BALANCE_FIELDS = {"id": WALLET_ID, "balance": MILLIONTHS}
BALANCE = record("Balance", BALANCE_FIELDS)
WALLET = record("Wallet", BALANCE_FIELDS | {"user_id": USER_ID, "badge": SHOWN})
WALLET_REQUEST = record("WalletRequest", {"user_id": USER_ID})
WALLET_CHANGE = record("WalletChange", {"badge": SHOWN})
WALLET_CHANGED = record("WalletChanged", {"id": WALLET_ID, "badge": SHOWN})
POSTING = record("PostingRequest", {"amount": AMOUNT, "nonce": NONCE})
TRANSACTION = record(
    "Transaction",
    {
        "id": TRANSACTION_ID,
        "kind": enum(PostingKind),
        "amount": AMOUNT,
        "at": MOMENT,
        "to": WALLET_ID,
    },
    {
        "from": WALLET_ID.reference(description="The source of a transfer."),
        "nonce": NONCE.reference(description="Only in the journal of the wallet that asked."),
    },
)
ARCHIVED_BEFORE = MOMENT.reference(description="Earlier ones are archived, or about to be.")
TRANSACTIONS = record(
    "Transactions",
    {"transactions": array(TRANSACTION, journal.PAGE), "archived_before": ARCHIVED_BEFORE},
    {"cursor": TRANSACTION_ID},
)

HAS_WALLET = Refusal.of(HasWalletError, required={"id": WALLET_ID})
DEPOSIT_REFUSED = Refusal.of(
    RefusedError,
    "DepositRefused",
    codes=[PostingOutcome.BALANCE_LIMIT],
    description="The balance would exceed its limit.",
    required={"balance": MILLIONTHS},
)
TRANSFER_REFUSED = Refusal.of(
    RefusedError,
    "TransferRefused",
    codes=[PostingOutcome.INSUFFICIENT_FUNDS, PostingOutcome.BALANCE_LIMIT],
    description="The wallet has too little, and the error has its `balance`. Or the balance of the"
    " target would exceed its limit.",
    optional={"balance": MILLIONTHS},
)

A_WALLET, ANOTHER = "01KAJV4QZ8M3T6W9X2Y5B7C0DE", "01KAJV5R2N8P4S7V0Z3A6D9FGH"
A_USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
A_DEPOSIT = {"amount": "12500000", "nonce": "order-4711-a"}
A_TRANSFER = {"amount": "2500000", "nonce": "order-4711-b"}
EXAMPLE = Wallet(A_WALLET, A_USER, 12_500_000)
NOW = 1_795_255_500_000
ENTRIES = [
    Entry(
        "01KAJV6S4Q0R5T8W1Y4B7D0FGJ",
        Posting("order-4711-b", 2_500_000, ANOTHER, A_WALLET),
        NOW - 240_000,
    ),
    Entry(
        "01KAJV5S4Q0R5T8W1Y4B7D0FGJ", Posting("order-4711-a", 12_500_000, A_WALLET), NOW - 300_000
    ),
]
BALANCE_BADGE = json_badge(
    "BalanceBadge", serializers.badge(EXAMPLE), f"there is no wallet {A_WALLET}"
)
PAGE_EXAMPLE = serializers.transactions(journal.Page(ENTRIES, ""), A_WALLET, NOW)

BALANCE_LINK = {"balance": link("getBalance", "wallet_id")}
BADGE_LINK = {"badge": link("getWalletBadge", "wallet_id", "If it is switched on.")}
DEPOSIT_LINK = {"deposit": link("depositMoney", "wallet_id")}
WALLET_LINKS = {
    **BALANCE_LINK,
    **BADGE_LINK,
    "transfer": link("transferMoney", "wallet_id", "To another wallet."),
    "transactions": link("listTransactions", "wallet_id"),
    "change": link("changeWallet", "wallet_id"),
}
NEXT = {
    "next": link(
        "listTransactions", wallet_id="$request.path.wallet_id", cursor="$response.body#/cursor"
    )
}
ONCE = (
    "Happens once for each nonce of {}. The same request again has the same response, however late"
    " it comes, also if it is an error."
)
POSTED = {204: success(description="The money moved, now or when the request was first sent.")}
OPTIONS = options_of(serializers.LABEL, "WalletLabel")

OPERATIONS = {
    "POST /api/v1/wallets": Operation(
        "openWallet",
        "A user has one wallet. Its balance is 0.",
        body=json_content(WALLET_REQUEST, {"user_id": A_USER}),
        responses={
            200: success(
                BALANCE, example={"id": A_WALLET, "balance": "0"}, links=WALLET_LINKS | DEPOSIT_LINK
            )
        },
        refusals=(HAS_WALLET,),
    ),
    "GET /api/v1/wallets/me": Operation(
        "getMyWallet",
        responses={200: success(WALLET, example=serializers.to_json(EXAMPLE), links=WALLET_LINKS)},
        refusals=(UnknownWalletError,),
    ),
    "PATCH /api/v1/wallets/{wallet_id}": Operation(
        "changeWallet",
        "It is off until it is switched on.",
        body=json_content(WALLET_CHANGE, {"badge": True}),
        responses={
            200: success(
                WALLET_CHANGED,
                example={"id": A_WALLET, "badge": True},
                links=BADGE_LINK | BALANCE_LINK,
            )
        },
        refusals=(UnknownWalletError,),
    ),
    "GET /api/v1/wallets/{wallet_id}/balance": Operation(
        "getBalance",
        "Every posting until now is in it.",
        responses={200: success(BALANCE, example=serializers.balance(EXAMPLE))},
        refusals=(UnknownWalletError,),
    ),
    "GET /api/v1/wallets/{wallet_id}/transactions": Operation(
        "listTransactions",
        f"A posting moves to the archive after {HOT_DAYS} days, and is there some minutes later. A"
        " posting that was refused is not listed. New transactions come before all that were read,"
        " so following the cursors misses none. A page may have fewer transactions than another;"
        " the last one has no `cursor`.",
        (query_parameter("cursor", TRANSACTION_ID, NEXT_PAGE, component="TransactionCursor"),),
        responses={200: success(TRANSACTIONS, example=PAGE_EXAMPLE, links=NEXT)},
        refusals=(UnknownWalletError,),
    ),
    "PUT /api/v1/wallets/{wallet_id}/deposit": Operation(
        "depositMoney",
        ONCE.format("this wallet"),
        body=json_content(POSTING, A_DEPOSIT),
        responses=POSTED,
        refusals=(UnknownWalletError, DEPOSIT_REFUSED, NonceReusedError),
    ),
    "PUT /api/v1/wallets/{wallet_id}/transfer/{target_id}": Operation(
        "transferMoney",
        ONCE.format("the source"),
        body=json_content(POSTING, A_TRANSFER),
        responses=POSTED,
        refusals=(SameWalletError, UnknownWalletError, TRANSFER_REFUSED, NonceReusedError),
    ),
    **badge_operations(
        "/api/v1/wallets/{wallet_id}/badge",
        always_drawn(
            "getWalletBadge",
            "The message is in units, such as `1,234.5`. Only if the badge is switched on.",
            OPTIONS,
            BALANCE_BADGE,
        ),
    ),
}
PATH_PARAMETERS = (
    path_parameter("wallet_id", WALLET_ID, "The id that opening it returned.", A_WALLET),
    path_parameter("target_id", WALLET_ID, "The wallet that gets the money.", ANOTHER),
)
SECTIONS = (
    Section(
        "wallet",
        "Balances that move exactly once. Amounts are whole millionths of the unit of currency, as"
        " texts of digits. An operator's token is good for every wallet; a user's token is good for"
        " the user's own wallet: to look at it, to transfer from it and to switch its badge. The"
        " badges need no token.",
        OPERATIONS,
        PATH_PARAMETERS,
    ),
)
