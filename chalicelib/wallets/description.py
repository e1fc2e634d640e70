"""The description of the routes for wallets."""

from __future__ import annotations

from chalicelib.badges.description import badge_operations
from chalicelib.http.fields import Field, array, enum, record, schema, string
from chalicelib.http.openapi import MOMENT, Operation, Refusal, Section, body_of, schema_of, success
from chalicelib.wallets import ledger, serializers, wallet
from chalicelib.wallets.ledger import NonceReusedError, SameWalletError
from chalicelib.wallets.serializers import AMOUNT, AMOUNT_TEXT, NONCE_TEXT, UP_TO_MAX, USER_ID
from chalicelib.wallets.wallet import Entry, Posting, Wallet

WALLET_ID = schema("WalletId", string(wallet.ID), "A ULID.")
TRANSACTION_ID = schema("TransactionId", string(wallet.ID))
MILLIONTHS = schema("Millionths", string(f"(0|{AMOUNT_TEXT.pattern})"), UP_TO_MAX)
SHOWN = {"badge": schema_of(serializers.WalletChangeBody.fields["badge"])}
BALANCE_FIELDS = {"id": WALLET_ID, "balance": MILLIONTHS}
BALANCE = record("Balance", BALANCE_FIELDS)
WALLET = record("Wallet", BALANCE_FIELDS | {"user_id": USER_ID} | SHOWN)
WALLET_CHANGED = record("WalletChanged", {"id": WALLET_ID} | SHOWN)
TRANSACTION = record(
    "Transaction",
    {
        "id": TRANSACTION_ID,
        "kind": enum(wallet.PostingKind),
        "amount": AMOUNT,
        "at": MOMENT,
        "to": WALLET_ID,
    },
    {
        "from": WALLET_ID | {"description": "The source of a transfer."},
        "nonce": NONCE_TEXT | {"description": "Only in the journal of the wallet that asked."},
    },
)
ARCHIVED_BEFORE = MOMENT | {"description": "Earlier ones are archived, or about to be."}
TRANSACTIONS = record(
    "Transactions",
    {"transactions": array(TRANSACTION, ledger.PAGE), "archived_before": ARCHIVED_BEFORE},
    {"cursor": TRANSACTION_ID},
)

FULL = Refusal(
    "DepositRefused",
    409,
    [wallet.PostingOutcome.BALANCE_LIMIT],
    "The balance would exceed its limit.",
    details={"balance": MILLIONTHS},
)
TRANSFER_REFUSED = Refusal(
    "TransferRefused",
    409,
    [wallet.PostingOutcome.INSUFFICIENT_FUNDS, wallet.PostingOutcome.BALANCE_LIMIT],
    "The wallet has too little, and the error has its `balance`.\n"
    "The balance of the target would exceed its limit.",
    details={"balance": MILLIONTHS},
)

A_WALLET, ANOTHER = "01KAJV4QZ8M3T6W9X2Y5B7C0DE", "01KAJV5R2N8P4S7V0Z3A6D9FGH"
A_USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
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
PAGE_EXAMPLE = serializers.transactions((ENTRIES, ""), A_WALLET, NOW)

ONCE = (
    "Happens once for each nonce of {}. The same request again has the same response, however late"
    " it comes, also if it is an error."
)

POSTED = {204: success(words="The money moved, now or when the request was first sent.")}

OPERATIONS = {
    "openWallet": Operation(
        "A user has one wallet. Its balance is 0.",
        {200: success(BALANCE, example={"id": A_WALLET, "balance": "0"})},
        [Refusal.of(wallet.HasWalletError, id=WALLET_ID)],
        body_of(serializers.WalletBody, {"user_id": A_USER}),
    ),
    "getMyWallet": Operation(
        "",
        {200: success(WALLET, example=serializers.to_json(EXAMPLE))},
        [wallet.UnknownWalletError],
    ),
    "changeWallet": Operation(
        "It is off until it is switched on.",
        {200: success(WALLET_CHANGED, example={"id": A_WALLET, "badge": True})},
        [wallet.UnknownWalletError],
        body_of(serializers.WalletChangeBody, {"badge": True}),
    ),
    "getBalance": Operation(
        "Every posting until now is in it.",
        {200: success(BALANCE, example=serializers.balance(EXAMPLE))},
        [wallet.UnknownWalletError],
    ),
    "listTransactions": Operation(
        f"A posting moves to the archive after {wallet.HOT_SECONDS // 86_400} days, and is there"
        " some minutes later. A posting that was refused is not listed. New transactions come"
        " before all that were read, so following the cursors misses none. A page may have fewer"
        " transactions than another; the last one has no `cursor`.",
        {200: success(TRANSACTIONS, example=PAGE_EXAMPLE)},
        [wallet.UnknownWalletError],
    ),
    "depositMoney": Operation(
        ONCE.format("this wallet"),
        POSTED,
        [wallet.UnknownWalletError, FULL, NonceReusedError],
        body_of(serializers.PostingBody, {"amount": "12500000", "nonce": "order-4711-a"}),
    ),
    "transferMoney": Operation(
        ONCE.format("the source"),
        POSTED,
        [SameWalletError, wallet.UnknownWalletError, TRANSFER_REFUSED, NonceReusedError],
        body_of(serializers.PostingBody, {"amount": "2500000", "nonce": "order-4711-b"}),
    ),
    **badge_operations(
        "getWalletBadge",
        "The message is in units, such as `1,234.5`. Only if the badge is switched on.",
        serializers.badge(EXAMPLE),
        f"there is no wallet {A_WALLET}",
    ),
}
SECTION = Section(
    "wallet",
    "Balances that move exactly once. Amounts are whole millionths of the unit of currency, as"
    " texts of digits. An operator's token is good for every wallet; a user's token is good for the"
    " user's own wallet: to look at it, to transfer from it and to switch its badge. The badges"
    " need no token.",
    OPERATIONS,
    {
        "wallet_id": Field(str, WALLET_ID, "The id that opening it returned.", example=A_WALLET),
        "target_id": Field(str, WALLET_ID, "The wallet that gets the money.", example=ANOTHER),
    },
)
