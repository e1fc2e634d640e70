"""The routes of wallets: permissions, results, and amounts as texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from chalicelib.http import tokens
from chalicelib.wallets import serializers
from chalicelib.wallets.serializers import parse_amount as parse
from chalicelib.wallets.wallet import MAX_BALANCE, Entry, Posting
from simulation.clocks import NOON
from simulation.storage import store_token
from tests.unit.http_requests import Answer, Api, read_badge

WALLETS = "/api/v1/wallets"
EVA = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
BOB = "0b1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d22"
CARL = "ca1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d33"
OPERATOR, EVAS, BOBS, CARLS = (tokens.new_token() for _ in range(4))
NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
"""The id of no wallet."""
USERS = {EVAS: EVA, BOBS: BOB, CARLS: CARL}


class Desk(Api):
    """A client that sends a token, by default the operator's."""

    def ask(
        self, method: str, target: str, body: object = b"", token: str = OPERATOR, **more: Any
    ) -> Answer:
        return super().ask(method, target, body, token, **more)

    def open(self, user: str) -> str:
        made = self.ask("POST", WALLETS, {"user_id": user})
        assert made.status == 200
        return str(made.body["id"])

    def deposit(
        self, to: str, amount: object, nonce: object = "deposit-1", token: str = OPERATOR
    ) -> Answer:
        body = {"amount": amount, "nonce": nonce}
        return self.ask("PUT", f"{WALLETS}/{to}/deposit", body, token)

    def transfer(
        self, source: str, to: str, amount: object, nonce: object = "transfer-1", token: str = EVAS
    ) -> Answer:
        body = {"amount": amount, "nonce": nonce}
        return self.ask("PUT", f"{WALLETS}/{source}/transfer/{to}", body, token)

    def balance(self, of: str) -> int:
        shown = self.ask("GET", f"{WALLETS}/{of}/balance")
        assert (shown.status, set(shown.body)) == (200, {"id", "balance"})
        return int(shown.body["balance"])

    def page(self, of: str, cursor: str = "", token: str = OPERATOR) -> Any:
        query = f"?cursor={cursor}" if cursor else ""
        shown = self.ask("GET", f"{WALLETS}/{of}/transactions{query}", token=token)
        assert shown.status == 200, shown.text
        return shown.body

    def badge(self, of: str, query: str = "") -> tuple[str, str, str, bool]:
        path = f"{WALLETS}/{of}/badge"
        return read_badge(lambda path: self.ask("GET", path, token=""), path, query)


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    for token, user in USERS.items():
        store_token(desk.table, token, user)
    desk.set(api_token_digests=frozenset({tokens.digest(OPERATOR)}))
    return desk


@pytest.fixture
def eva(desk: Desk) -> str:
    return desk.open(EVA)


@pytest.fixture
def bob(desk: Desk) -> str:
    return desk.open(BOB)


Endpoint = tuple[str, str]
OF_A_WALLET: Sequence[Endpoint] = (
    ("PATCH", ""),
    ("GET", "/balance"),
    ("GET", "/transactions"),
    ("PUT", "/deposit"),
    ("PUT", f"/transfer/{NOBODY}"),
)
ENDPOINTS: Sequence[Endpoint] = (
    ("POST", WALLETS),
    ("GET", f"{WALLETS}/me"),
    *((method, f"{WALLETS}/{NOBODY}{path}") for method, path in OF_A_WALLET),
)


# ---- permissions


@pytest.mark.parametrize(("method", "target"), ENDPOINTS)
def test_each_endpoint_requires_a_token(desk: Desk, method: str, target: str) -> None:
    assert desk.ask(method, target, token="").refusal == (401, "unauthorized")


@pytest.mark.parametrize(("method", "path"), OF_A_WALLET)
def test_a_users_token_opens_only_their_wallet_and_discloses_no_other(
    desk: Desk, eva: str, bob: str, method: str, path: str
) -> None:
    desk.deposit(eva, "5")
    told = set()
    for other in (eva, NOBODY, "nobody", "x" * 3_000, "%00"):
        body = {"amount": "1", "nonce": "nonce-01"} if method == "PUT" else {"badge": True}
        answer = desk.ask(method, f"{WALLETS}/{other}{path}", body, BOBS)
        assert answer.refusal == (403, "forbidden")
        told.add(answer.text)
    [text] = told
    assert json.loads(text)["error"]["message"] == (
        "the token is a user's: it is good for the user's wallet alone"
    )
    assert (desk.balance(eva), desk.balance(bob)) == (5, 0)
    assert desk.badge(eva)[1] == "no such badge"


def test_a_users_token_opens_no_wallet_and_makes_no_deposit(desk: Desk, eva: str) -> None:
    assert desk.ask("POST", WALLETS, {"user_id": BOB}, EVAS).refusal == (403, "forbidden")
    assert desk.deposit(eva, "1", token=EVAS).refusal == (403, "forbidden")
    assert desk.balance(eva) == 0
    assert desk.ask("GET", f"{WALLETS}/me", token=BOBS).refusal == (404, "not_found")


def test_users_read_their_wallet_transfer_from_it_and_switch_its_badge(
    desk: Desk, eva: str, bob: str
) -> None:
    desk.deposit(eva, "50")
    assert desk.transfer(eva, bob, "20", token=EVAS).status == 204
    assert desk.ask("GET", f"{WALLETS}/{eva}/balance", token=EVAS).body == {
        "id": eva,
        "balance": "30",
    }
    assert len(desk.page(eva, token=EVAS)["transactions"]) == 2
    shown = desk.ask("PATCH", f"{WALLETS}/{eva}", {"badge": True}, EVAS)
    assert (shown.status, shown.body) == (200, {"id": eva, "badge": True})
    mine = desk.ask("GET", f"{WALLETS}/me", token=EVAS)
    assert mine.status == 200
    assert mine.headers["Cache-Control"] == "no-store"
    assert mine.body == {"id": eva, "balance": "30", "user_id": EVA, "badge": True}


# ---- opening


def test_a_wallet_is_opened_once_for_a_user_and_is_empty(desk: Desk) -> None:
    made = desk.ask("POST", WALLETS, {"user_id": EVA.upper()})
    assert made.status == 200
    assert made.headers["Cache-Control"] == "no-store"
    assert made.body == {"id": made.body["id"], "balance": "0"}
    again = desk.ask("POST", WALLETS, {"user_id": EVA})
    assert again.refusal == (409, "wallet_exists")
    assert again.details == {"id": made.body["id"]}
    mine = {**made.body, "user_id": EVA, "badge": False}
    assert desk.ask("GET", f"{WALLETS}/me", token=EVAS).body == mine
    assert desk.open(BOB) != made.body["id"]


@pytest.mark.parametrize(
    "user",
    [
        None,
        1,
        "",
        EVA + "\n",
        EVA.replace("-", ""),
        EVA[:-1] + "g",
        EVA[:-1] + "\u0661",
    ],
)
def test_a_user_is_a_uuid(desk: Desk, user: object) -> None:
    refused = desk.ask("POST", WALLETS, {"user_id": user})
    assert refused.refusal == (400, "bad_request")
    assert refused.says.startswith("user_id: give a UUID, such as ")
    assert desk.ask("GET", f"{WALLETS}/me", token=EVAS).status == 404


# ---- postings


def test_a_lack_of_funds_is_reported_with_the_balance_and_stays_the_answer(desk: Desk) -> None:
    eva, bob = desk.open(EVA), desk.open(BOB)
    desk.deposit(eva, "100")
    first = desk.transfer(eva, bob, "101")
    assert first.refusal == (409, "insufficient_funds")
    assert first.details == {"balance": "100"}
    assert first.says == "the wallet has 100 millionths, which is not enough"
    desk.deposit(eva, "1", "deposit-2")
    assert desk.transfer(eva, bob, "101") == first
    assert (desk.balance(eva), desk.balance(bob)) == (101, 0)
    assert desk.transfer(eva, bob, "101", "transfer-2").status == 204


def test_the_balance_of_the_target_is_not_disclosed(desk: Desk, eva: str, bob: str) -> None:
    desk.deposit(eva, str(MAX_BALANCE))
    desk.deposit(bob, "123456")
    for token in (EVAS, OPERATOR):
        refused = desk.transfer(eva, bob, str(MAX_BALANCE), token=token)
        assert refused.refusal == (409, "balance_limit")
        assert "123456" not in refused.text
        assert refused.details == {}


@pytest.mark.parametrize("other", [NOBODY, "x" * 3_000, "%00", "a%2Fb"])
def test_a_missing_wallet_is_not_found_whatever_its_id(desk: Desk, other: str) -> None:
    eva = desk.open(EVA)
    desk.deposit(eva, "10")
    for answer in (
        desk.deposit(other, "1"),
        desk.transfer(other, eva, "1", token=OPERATOR),
        desk.transfer(eva, other, "1", token=OPERATOR),
        desk.transfer(eva, other, "1", token=EVAS),
        desk.ask("GET", f"{WALLETS}/{other}/balance"),
        desk.ask("GET", f"{WALLETS}/{other}/transactions"),
    ):
        assert answer.refusal == (404, "not_found")
        assert answer.says.startswith("there is no wallet ")
        assert len(answer.says) < 60
    assert desk.balance(eva) == 10
    assert desk.transfer(eva, desk.open(BOB), "1").status == 204, "no nonce was used up"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"amount": 1.0}, "amount: give millionths of the unit as a text of digits, "),
        ({"amount": "0"}, "amount: give millionths of the unit as a text of digits, "),
        *(
            ({"nonce": nonce}, "nonce: give 8 to 64 letters, digits, - or _, new for each movement")
            for nonce in (12345678, "a" * 7, "a" * 65, "nonce-01\n", "nönce-01", "nonce#01")
        ),
    ],
)
def test_an_amount_and_a_nonce_have_a_form(
    desk: Desk, eva: str, bob: str, fields: dict[str, Any], said: str
) -> None:
    body = {"amount": "1", "nonce": "aZ09-_-_"}
    for path in (f"/{eva}/deposit", f"/{eva}/transfer/{bob}"):
        refused = desk.ask("PUT", WALLETS + path, body | fields)
        assert refused.refusal == (400, "bad_request")
        assert refused.says.startswith(said)
    for nonce in ("aZ09-_-_", "a" * 64):
        done = desk.deposit(eva, "1", nonce)
        assert (done.status, done.text, done.headers["Cache-Control"]) == (204, "", "no-store")
    assert desk.balance(eva) == 2


# ---- transactions


def test_a_full_last_page_is_followed_by_an_empty_one(desk: Desk, eva: str) -> None:
    for number in range(50):
        desk.deposit(eva, "1", f"deposit-{number}")
    first = desk.page(eva)
    last = desk.page(eva, first["cursor"])
    assert (len(first["transactions"]), last["transactions"]) == (50, [])
    assert "cursor" not in last
    assert desk.ask("GET", f"{WALLETS}/{eva}/transactions?cursor=").body == first


# ---- badges


def test_a_wallet_has_a_badge_only_if_it_is_switched_on(desk: Desk) -> None:
    eva = desk.open(EVA)
    desk.deposit(eva, "1234500000")
    hidden = ("balance", "no such badge", "red", True)
    assert desk.badge(eva) == hidden == desk.badge(NOBODY)
    desk.ask("PATCH", f"{WALLETS}/{eva}", {"badge": True}, EVAS)
    assert desk.badge(eva) == ("balance", "1,234.5", "blue", False)
    assert desk.badge(eva, "?label=tips") == ("tips", "1,234.5", "blue", False)
    off = desk.ask("PATCH", f"{WALLETS}/{eva}", {"badge": False}, EVAS)
    assert off.body == {"id": eva, "badge": False}
    assert desk.badge(eva) == hidden
    assert desk.balance(eva) == 1_234_500_000


# ---- JSON


AT = int(NOON * 1000)
MOMENT = "2026-03-14T12:00:00.000Z"
DEPOSIT = Posting("nonce-01", MAX_BALANCE, "a")
TRANSFER = Posting("nonce-01", 30, "b", "a")
DEPOSITED = {"kind": "deposit", "amount": "9223372036854775807", "to": "a"}
TRANSFERRED = {"kind": "transfer", "amount": "30", "to": "b", "from": "a"}
OWN = {"nonce": "nonce-01"}


@pytest.mark.parametrize(
    ("posting", "wallet_id", "fields"),
    [
        (DEPOSIT, "a", DEPOSITED | OWN),
        (TRANSFER, "a", TRANSFERRED | OWN),
        (TRANSFER, "b", TRANSFERRED),
    ],
)
def test_only_a_transfer_has_a_source_and_only_the_asker_sees_the_nonce(
    posting: Posting, wallet_id: str, fields: dict[str, str]
) -> None:
    assert serializers.transactions(([Entry("1", posting, AT)], ""), wallet_id, AT) == {
        "transactions": [{"id": "1", "at": MOMENT, **fields}],
        "archived_before": "2026-03-12T12:00:00.000Z",
    }


# ---- amounts


@pytest.mark.parametrize(
    "wrong",
    [
        "0",
        "01",
        "-1",
        "+1",
        "1.0",
        "1_000",
        "1\n",
        "",
        "\u0661",
        "\u00b2",
        "9223372036854775808",
        "9" * 5_000,
        1,
        1.0,
        None,
        b"1",
    ],
)
def test_other_amounts_are_refused_with_the_fix(wrong: object) -> None:
    range_of_amounts = '"1" to "9223372036854775807", no sign, no point'
    with pytest.raises(ValueError, match=range_of_amounts):
        parse(wrong)


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "0"),
        (1, "0.000001"),
        (100_000, "0.1"),
        (10_000_000, "10"),
        (12_500_000, "12.5"),
        (1_000_000_000_000, "1,000,000"),
        (MAX_BALANCE, "9,223,372,036,854.775807"),
    ],
)
def test_whole_units_have_no_fraction(amount: int, shown: str) -> None:
    assert serializers.units(amount) == shown
