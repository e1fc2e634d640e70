"""The routes of wallets: permissions and results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chalicelib.http import tokens
from chalicelib.settings import Settings
from chalicelib.storage.errors import Refused, Unavailable
from chalicelib.storage.items import Item, Key
from chalicelib.storage.writes import Delete, Update, Write
from chalicelib.wallets import opening
from chalicelib.wallets.amounts import MAX_BALANCE
from chalicelib.wallets.ledger import UnknownWalletError
from chalicelib.wallets.wallet import entry as entry_key
from chalicelib.wallets.wallet import wallet
from simulation.clocks import NOON
from simulation.memory_table import MemoryTable
from simulation.queues import FakeQueue
from simulation.resources import GivenResources
from simulation.tables import FaultyTable
from simulation.tokens import store_token
from tests.profile import cases
from tests.unit import http_requests
from tests.unit.http_requests import Answer

WALLETS = "/api/v1/wallets"
EVA = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
BOB = "0b1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d22"
CARL = "ca1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d33"
OPERATOR, EVAS, BOBS, CARLS = (tokens.new_token() for _ in range(4))
NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
"""The id of no wallet."""
USERS = {EVAS: EVA, BOBS: BOB, CARLS: CARL}


class Desk:
    """A client that sends a token, by default the operator's."""

    def __init__(self, resources: GivenResources) -> None:
        self._resources = resources

    def ask(
        self, method: str, target: str, body: object = b"", token: str = OPERATOR, kind: str = ""
    ) -> Answer:
        authorization = f"Bearer {token}" if token else ""
        return http_requests.ask(
            self._resources, method, target, body, kind=kind, authorization=authorization
        )

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
        """Return a badge's label, message, colour and error flag; check its status and headers."""
        said, drawn = (
            self.ask("GET", f"{WALLETS}/{of}/{name}{query}", token="")
            for name in ("badge", "badge.svg")
        )
        for answer, kind in ((said, "application/json"), (drawn, "image/svg+xml;charset=utf-8")):
            assert answer.status == 200
            assert answer.headers["Content-Type"] == kind
            assert answer.headers["Cache-Control"].startswith("max-age=0, no-cache, no-store")
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert drawn.text.startswith("<svg")
        badge = said.body
        assert badge["message"] in drawn.text
        return badge["label"], badge["message"], badge["color"], badge.get("isError", False)


@pytest.fixture
def resources() -> GivenResources:
    table = MemoryTable()
    for token, user in USERS.items():
        store_token(table, token, user)
    settings = Settings(api_token_digests=frozenset({tokens.digest(OPERATOR)}))
    return GivenResources(table, delivery_queue=FakeQueue(), settings=settings, clock=lambda: NOON)


@pytest.fixture
def desk(resources: GivenResources) -> Desk:
    return Desk(resources)


@pytest.fixture
def eva(desk: Desk) -> str:
    """Return Eva's wallet."""
    return desk.open(EVA)


@pytest.fixture
def bob(desk: Desk) -> str:
    """Return Bob's wallet."""
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
    none = desk.ask(method, target, token="")
    assert none.refusal == (401, "unauthorized")
    assert none.headers["WWW-Authenticate"] == "Bearer"
    for wrong in (tokens.digest(OPERATOR), f"{OPERATOR}x"):
        refused = desk.ask(method, target, token=wrong)
        assert (refused.refusal, refused.says) == (
            (403, "forbidden"),
            "this token opens nothing here",
        )


@pytest.mark.parametrize("name", ["badge", "badge.svg"])
def test_a_badge_requires_no_token(desk: Desk, name: str) -> None:
    for method in ("GET", "HEAD"):
        assert desk.ask(method, f"{WALLETS}/{NOBODY}/{name}", token="").status == 200


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


def test_a_users_token_is_refused_by_routes_of_events(desk: Desk) -> None:
    wanted = {"id": "e", "delay": 60, "target": {"log": True}}
    assert desk.ask("POST", "/api/v1/events", wanted, EVAS).refusal == (403, "forbidden")
    assert desk.ask("POST", "/api/v1/events", wanted).status == 201
    for method, target in (
        ("GET", "/api/v1/events"),
        ("GET", "/api/v1/events/e"),
        ("DELETE", "/api/v1/events/e"),
        ("GET", "/timers/e"),
        ("POST", "/timers"),
        ("POST", "/echoAtTime"),
        ("GET", "/api/v1/events/e%2Fapi%2Fv1%2Fwallets%2Fx"),
    ):
        assert desk.ask(method, target, token=EVAS).refusal == (403, "forbidden")
    for method, target in (("POST", "/api/v1/events"), ("GET", "/timers/e")):
        forged = f"{target}#/api/v1/wallets/x"
        assert desk.ask(method, forged, wanted, EVAS).refusal == (404, "not_found")


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


def test_an_operators_token_opens_every_wallet_and_has_none_itself(
    desk: Desk, eva: str, bob: str
) -> None:
    desk.deposit(eva, "50")
    assert desk.transfer(eva, bob, "20", token=OPERATOR).status == 204
    assert desk.ask("PATCH", f"{WALLETS}/{eva}", {"badge": True}).status == 200
    refused = desk.ask("GET", f"{WALLETS}/me")
    assert refused.refusal == (403, "forbidden")
    assert refused.says == "the token names no user: ask for a wallet by its id"


# ---- opening


def test_a_wallet_is_opened_once_for_a_user_and_is_empty(desk: Desk) -> None:
    made = desk.ask("POST", WALLETS, {"user_id": EVA.upper()})
    assert made.status == 200
    assert made.headers["Cache-Control"] == "no-store"
    assert made.body == {"id": made.body["id"], "balance": "0"}
    again = desk.ask("POST", WALLETS, {"user_id": EVA})
    assert again.refusal == (409, "wallet_exists")
    assert again.details == {"id": made.body["id"]}
    assert desk.ask("GET", f"{WALLETS}/me", token=EVAS).body["id"] == made.body["id"]
    assert desk.open(BOB) != made.body["id"]


@pytest.mark.parametrize(
    "user",
    [
        None,
        1,
        True,
        "",
        [EVA],
        EVA + "\n",
        " " + EVA,
        EVA.replace("-", ""),
        "{" + EVA + "}",
        f"urn:uuid:{EVA}",
        EVA[:-1],
        EVA[:-1] + "g",
        EVA[:-1] + "\u0661",
        "\ud800",
    ],
)
def test_a_user_is_a_uuid(desk: Desk, user: object) -> None:
    refused = desk.ask("POST", WALLETS, {"user_id": user})
    assert refused.refusal == (400, "bad_request")
    assert refused.says.startswith("user_id: give a UUID, such as ")
    assert desk.ask("GET", f"{WALLETS}/me", token=EVAS).status == 404


BODIES: Sequence[tuple[bytes, str]] = (
    (b"", "the body must be a JSON object"),
    (b"[]", "the body must be a JSON object"),
    (b"\xff\xfe", "the body must be a JSON object"),
    (b"[" * 99_999, "the body must be a JSON object"),
    (b'{"a": 1' + b"0" * 5_000 + b"}", "the body must be a JSON object"),
    (b'{"more": 1}', "no field 'more': there are "),
    (b'{"nonce": "nonce-01", "nonce": "nonce-01"}', "'nonce' is given twice: give it once"),
    (b'{"amount": "1", "amount": "2"}', "'amount' is given twice: give it once"),
    (b'{"user_id": "1", "user_id": "2"}', "'user_id' is given twice: give it once"),
    (b'{"badge": true, "badge": false}', "'badge' is given twice: give it once"),
    (b"{}", ": give "),
)


@pytest.mark.parametrize(("body", "said"), BODIES)
def test_a_body_is_a_json_object_of_known_fields_each_given_once(
    desk: Desk, eva: str, bob: str, body: bytes, said: str
) -> None:
    for method, path in (
        ("POST", ""),
        ("PATCH", f"/{eva}"),
        ("PUT", f"/{eva}/deposit"),
        ("PUT", f"/{eva}/transfer/{bob}"),
    ):
        refused = desk.ask(method, WALLETS + path, body)
        assert refused.refusal == (400, "bad_request")
        assert said in refused.says
    assert desk.balance(eva) == 0


def test_json_is_read_with_any_content_type(desk: Desk, eva: str) -> None:
    for number, kind in enumerate(("text/plain", "application/x-www-form-urlencoded", "image/png")):
        body = {"amount": "1", "nonce": f"deposit-{number}"}
        assert desk.ask("PUT", f"{WALLETS}/{eva}/deposit", body, kind=kind).status == 204
    assert desk.balance(eva) == 3


# ---- postings


def test_repeated_postings_are_applied_once(desk: Desk) -> None:
    eva, bob = desk.open(EVA), desk.open(BOB)
    for _ in range(3):
        done = desk.deposit(eva, "100")
        assert (done.status, done.text, done.headers["Cache-Control"]) == (204, "", "no-store")
        assert desk.transfer(eva, bob, "30").status == 204
    assert (desk.balance(eva), desk.balance(bob)) == (70, 30)


def test_a_lack_of_funds_is_reported_with_the_balance_and_stays_the_answer(
    desk: Desk,
) -> None:
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


def test_a_balance_is_at_most_2_to_the_63_less_1(desk: Desk) -> None:
    eva, bob = desk.open(EVA), desk.open(BOB)
    assert desk.deposit(eva, "9223372036854775807").status == 204
    refused = desk.deposit(eva, "1", "deposit-2")
    assert refused.refusal == (409, "balance_limit")
    assert refused.details == {"balance": str(MAX_BALANCE)}
    assert desk.deposit(eva, "1", "deposit-2") == refused
    desk.deposit(bob, "1")
    assert desk.balance(eva) == MAX_BALANCE


def test_the_balance_of_the_target_is_not_disclosed(desk: Desk, eva: str, bob: str) -> None:
    desk.deposit(eva, str(MAX_BALANCE))
    desk.deposit(bob, "123456")
    for token in (EVAS, OPERATOR):
        refused = desk.transfer(eva, bob, str(MAX_BALANCE), token=token)
        assert refused.refusal == (409, "balance_limit")
        assert "123456" not in refused.text
        assert refused.details == {}


def test_a_nonce_belongs_to_one_request(desk: Desk) -> None:
    eva, bob = desk.open(EVA), desk.open(BOB)
    carl = desk.open(CARL)
    desk.deposit(eva, "100", "nonce-01")
    desk.deposit(bob, "100", "nonce-01")
    desk.transfer(eva, bob, "30", "nonce-02")
    for other in (
        desk.deposit(eva, "99", "nonce-01"),
        desk.deposit(eva, "30", "nonce-02"),
        desk.transfer(eva, bob, "100", "nonce-01"),
        desk.transfer(eva, bob, "31", "nonce-02"),
        desk.transfer(eva, carl, "30", "nonce-02"),
    ):
        assert other.refusal == (422, "nonce_reused")
        assert other.says == "the wallet has used this nonce for another movement"
    assert [desk.balance(one) for one in (eva, bob, carl)] == [70, 130, 0]
    assert desk.transfer(bob, eva, "30", "nonce-02", BOBS).status == 204


@pytest.mark.parametrize("other", [NOBODY, "me", "nobody", "x" * 3_000, "%00", "a%2Fb", "%FF"])
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


def test_switching_the_badge_of_a_missing_wallet_makes_none(desk: Desk) -> None:
    answer = desk.ask("PATCH", f"{WALLETS}/{NOBODY}", {"badge": True})
    assert answer.refusal == (404, "not_found")
    assert desk.ask("GET", f"{WALLETS}/{NOBODY}/balance").status == 404


def test_a_wallet_transfers_nothing_to_itself(desk: Desk, eva: str) -> None:
    desk.deposit(eva, "10")
    refused = desk.transfer(eva, eva, "1")
    assert refused.refusal == (400, "same_wallet")
    encoded = desk.transfer(eva, f"%{ord(eva[0]):x}{eva[1:]}", "1")
    assert encoded.refusal == (400, "same_wallet")
    assert desk.balance(eva) == 10


def test_a_percent_encoded_id_is_found(desk: Desk, eva: str, bob: str) -> None:
    strange = "".join(f"%{ord(letter):02X}" for letter in eva)
    assert desk.deposit(strange, "2").status == 204
    assert desk.transfer(strange, bob, "1").status == 204
    assert desk.ask("GET", f"{WALLETS}/{strange}/balance").body == {"id": eva, "balance": "1"}
    assert desk.page(strange) == desk.page(eva)
    assert len(desk.page(strange)["transactions"]) == 2
    assert desk.ask("PATCH", f"{WALLETS}/{strange}", {"badge": True}, EVAS).body["id"] == eva
    assert desk.badge(strange)[1] == "0.000001"
    assert desk.ask("GET", f"{WALLETS}/{eva.lower()}/balance").status == 404


WRONG_AMOUNTS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.lists(st.just("1")),
    st.text(max_size=20),
    st.text(alphabet="0123456789+-eE._ \u0661\u00b2\uff11", max_size=25),
    st.integers(min_value=MAX_BALANCE + 1).map(str),
    st.integers(min_value=1).map(lambda number: f"0{number}"),
    st.integers(max_value=0).map(str),
).filter(lambda given: not _is_amount(given))


def _is_amount(given: object) -> bool:
    """Return whether a text is a valid amount as Python writes it."""
    if not isinstance(given, str) or not given.isascii() or not given.isdecimal():
        return False
    return len(given) < 25 and str(int(given)) == given and 1 <= int(given) <= MAX_BALANCE


@given(amount=WRONG_AMOUNTS)
@settings(max_examples=cases(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_amount_is_a_text_of_digits(desk: Desk, eva: str, bob: str, amount: object) -> None:
    for refused in (desk.deposit(eva, amount), desk.transfer(eva, bob, amount)):
        assert refused.refusal == (400, "bad_request")
        assert refused.says == (
            'amount: give millionths of the unit as a text of digits, "1" to'
            ' "9223372036854775807", no sign, no point'
        )
    assert desk.balance(eva) == 0


@given(st.lists(st.integers(1, MAX_BALANCE), min_size=1, max_size=5))
@settings(max_examples=cases(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_balance_is_the_sum_of_the_accepted_deposits(
    desk: Desk, resources: GivenResources, amounts: list[int]
) -> None:
    resources.table = MemoryTable()
    carl, total = desk.open(CARL), 0
    for number, amount in enumerate(amounts):
        fits = total + amount <= MAX_BALANCE
        total += amount if fits else 0
        answer = desk.deposit(carl, str(amount), f"deposit-{number}")
        assert answer.status == (204 if fits else 409)
    assert desk.balance(carl) == total


@pytest.mark.parametrize(
    "nonce",
    [None, 12345678, True, "", "a" * 7, "a" * 65, "nonce 01", "nonce-01\n", "nönce-01", "nonce#01"],
)
def test_a_nonce_is_8_to_64_letters(desk: Desk, eva: str, bob: str, nonce: object) -> None:
    for refused in (desk.deposit(eva, "1", nonce), desk.transfer(eva, bob, "1", nonce)):
        assert refused.refusal == (400, "bad_request")
        assert refused.says == (
            "nonce: give 8 to 64 letters, digits, - or _, new for each movement"
        )
    assert desk.balance(eva) == 0


def test_the_shortest_and_the_longest_nonce_are_accepted(desk: Desk, eva: str) -> None:
    for nonce in ("aZ09-_-_", "a" * 64):
        assert desk.deposit(eva, "1", nonce).status == 204
    assert desk.balance(eva) == 2


# ---- transactions


def test_a_transfer_is_in_both_journals_and_its_nonce_in_that_of_its_source(desk: Desk) -> None:
    eva, bob = desk.open(EVA), desk.open(BOB)
    desk.deposit(eva, "100")
    desk.transfer(eva, bob, "101", "transfer-0")
    desk.transfer(eva, bob, "30")
    page = desk.page(eva)
    assert page["archived_before"] == "2026-03-12T12:00:00.000Z"
    assert "cursor" not in page
    ids = [one.pop("id") for one in page["transactions"]]
    assert ids == sorted(ids, reverse=True)
    moment = {"at": "2026-03-14T12:00:00.000Z"}
    deposit = {"kind": "deposit", "amount": "100", "to": eva, "nonce": "deposit-1", **moment}
    transfer = {"kind": "transfer", "amount": "30", "to": bob, "from": eva, **moment}
    by_kind = sorted(page["transactions"], key=lambda one: str(one["kind"]))
    assert by_kind == [deposit, transfer | {"nonce": "transfer-1"}]
    [received] = desk.page(bob)["transactions"]
    assert received.pop("id") in ids
    assert received == transfer


def test_transactions_have_stable_pages_of_50_newest_first(
    desk: Desk,
) -> None:
    eva = desk.open(EVA)
    for number in range(1, 121):
        desk.deposit(eva, str(number), f"deposit-{number}")
    first = desk.page(eva)
    desk.deposit(eva, "1000", "deposit-later")
    second = desk.page(eva, first["cursor"])
    third = desk.page(eva, second["cursor"])
    pages = [page["transactions"] for page in (first, second, third)]
    assert [len(page) for page in pages] == [50, 50, 20]
    assert "cursor" not in third
    ids = [one["id"] for page in pages for one in page]
    assert ids == sorted(ids, reverse=True)
    assert sorted(int(one["amount"]) for page in pages for one in page) == [*range(1, 121)]
    assert desk.page(eva)["transactions"][0]["amount"] == "1000"


def test_a_full_last_page_is_followed_by_an_empty_one(desk: Desk, eva: str) -> None:
    for number in range(50):
        desk.deposit(eva, "1", f"deposit-{number}")
    first = desk.page(eva)
    last = desk.page(eva, first["cursor"])
    assert (len(first["transactions"]), last["transactions"]) == (50, [])
    assert "cursor" not in last
    assert desk.ask("GET", f"{WALLETS}/{eva}/transactions?cursor=").body == first


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("cursor=x", "cursor: give the one that the page before answered"),
        (f"cursor={NOBODY.lower()}", "cursor: give the one that the page before answered"),
        (f"cursor={NOBODY}0", "cursor: give the one that the page before answered"),
        (f"cursor={NOBODY}%0A", "cursor: give the one that the page before answered"),
        ("cursor=%ED%A0%80", "cursor: give the one that the page before answered"),
        (f"cursor={NOBODY}&cursor={NOBODY}", "cursor: give one, not 2"),
    ],
)
def test_a_malformed_cursor_is_refused(desk: Desk, eva: str, query: str, said: str) -> None:
    refused = desk.ask("GET", f"{WALLETS}/{eva}/transactions?{query}")
    assert (refused.refusal, refused.says) == ((400, "bad_request"), said)


# ---- badges


def test_a_wallet_has_a_badge_only_if_it_is_switched_on(desk: Desk) -> None:
    eva = desk.open(EVA)
    desk.deposit(eva, "1234500000")
    hidden = ("balance", "no such badge", "red", True)
    assert desk.badge(eva) == hidden == desk.badge(NOBODY)
    desk.ask("PATCH", f"{WALLETS}/{eva}", {"badge": True}, EVAS)
    assert desk.badge(eva) == ("balance", "1,234.5", "blue", False)
    off = desk.ask("PATCH", f"{WALLETS}/{eva}", {"badge": False}, EVAS)
    assert off.body == {"id": eva, "badge": False}
    assert desk.badge(eva) == hidden
    assert desk.balance(eva) == 1_234_500_000


@pytest.mark.parametrize("given", [None, 0, 1, "true", [], {}])
def test_true_and_false_switch_a_badge(desk: Desk, eva: str, given: object) -> None:
    refused = desk.ask("PATCH", f"{WALLETS}/{eva}", {"badge": given}, EVAS)
    assert (refused.refusal, refused.says) == ((400, "bad_request"), "badge: give true or false")
    assert desk.badge(eva)[1] == "no such badge"


def test_a_badge_has_the_requested_options(desk: Desk, eva: str) -> None:
    desk.ask("PATCH", f"{WALLETS}/{eva}", {"badge": True})
    wanted = "?label=tips&color=red&labelColor=000&style=flat-square&logo=github"
    said = desk.ask("GET", f"{WALLETS}/{eva}/badge{wanted}", token="")
    assert said.body == {
        "schemaVersion": 1,
        "label": "tips",
        "message": "0",
        "color": "#dd4343",
        "labelColor": "#000000",
        "style": "flat-square",
        "namedLogo": "github",
    }
    drawn = desk.ask("GET", f"{WALLETS}/{eva}/badge.svg{wanted}", token="").text
    assert "tips" in drawn
    said_again = desk.ask("GET", f"{WALLETS}/{eva}/badge", token="")
    head = desk.ask("HEAD", f"{WALLETS}/{eva}/badge", token="")
    assert head == said_again


def test_a_badge_with_a_malformed_option_says_how_to_fix_it(desk: Desk, eva: str) -> None:
    desk.ask("PATCH", f"{WALLETS}/{eva}", {"badge": True})
    said = desk.badge(eva, "?label=a&label=b")
    assert said == ("balance", "label: give one, not 2", "red", True)


@pytest.mark.parametrize("name", ["me", "%00", "a%2Fb", "%FF", "x" * 3_000])
def test_a_badge_of_an_unknown_wallet_is_an_error_badge(desk: Desk, name: str) -> None:
    assert desk.badge(name) == ("balance", "no such badge", "red", True)


# ---- failures of the storage


@dataclass
class Unreadable(FaultyTable):
    """A table that can't be read or written."""

    failure: type[Exception] = Unavailable

    def get(self, key: Key) -> Item | None:
        raise self.failure(f"no answer for {key}")

    def query(self, partition: str, **how: Any) -> list[Item]:
        raise self.failure(f"no answer for {partition}, {how}")

    def write(self, *writes: Write) -> None:
        raise self.failure(f"no answer for {writes}")


def failing(_: Sequence[Write]) -> None:
    raise Unavailable("no answer")


def each_endpoint(desk: Desk, eva: str, bob: str) -> Iterator[Answer]:
    """Yield the response of each endpoint to a valid request."""
    yield desk.ask("POST", WALLETS, {"user_id": CARL})
    yield desk.ask("GET", f"{WALLETS}/me", token=EVAS)
    yield desk.ask("PATCH", f"{WALLETS}/{eva}", {"badge": True})
    for token in (OPERATOR, EVAS):
        yield desk.ask("GET", f"{WALLETS}/{eva}/balance", token=token)
        yield desk.ask("GET", f"{WALLETS}/{eva}/transactions", token=token)
        yield desk.transfer(eva, bob, "1", token=token)
    yield desk.deposit(eva, "1")


@pytest.mark.parametrize("failure", [Unavailable, Refused])
def test_a_table_that_does_not_answer_is_503_with_a_time_to_retry(
    desk: Desk, resources: GivenResources, eva: str, bob: str, failure: type[Exception]
) -> None:
    real = resources.table
    resources.table = Unreadable(real, failure=failure)
    for answer in each_endpoint(desk, eva, bob):
        assert answer.refusal == (503, "unavailable")
        assert answer.headers["Retry-After"] == "1"
        assert answer.says == "the storage does not answer: send the same request again"
    assert desk.badge(eva) == ("balance", "unavailable: try again", "red", True)


def test_an_internal_error_is_500(
    desk: Desk, resources: GivenResources, eva: str, bob: str, caplog: pytest.LogCaptureFixture
) -> None:
    resources.table = Unreadable(resources.table, failure=ZeroDivisionError)
    answers = [*each_endpoint(desk, eva, bob)]
    for answer in answers:
        assert answer.refusal == (500, "internal")
        assert "no answer for" not in answer.text
    assert caplog.messages.count("request_failed") == len(answers) == 10
    assert desk.badge(eva) == ("balance", "internal error: try again", "red", True)
    assert "badge_failed" in caplog.messages


def test_postings_that_are_always_overtaken_must_be_retried(
    desk: Desk, resources: GivenResources, eva: str, bob: str
) -> None:
    """Between a transfer and its refusal the money comes; it goes before the next try."""
    real, rounds = resources.table, 0

    def flicker(writes: Sequence[Write]) -> None:
        nonlocal rounds
        if any(isinstance(write, Update) for write in writes):
            real.write(Update(wallet(eva), values={"balance": 0}))
            rounds += 1
        else:
            real.write(Update(wallet(eva), values={"balance": 5}))

    resources.table = FaultyTable(real, before_write=flicker)
    answer = desk.transfer(eva, bob, "5")
    assert answer.refusal == (503, "unavailable")
    assert answer.headers["Retry-After"] == "1"
    assert rounds > 1
    resources.table = real
    assert desk.transfer(eva, bob, "5").status == 204


@pytest.mark.parametrize("when", ["before_write", "after_write"])
def test_a_retry_after_a_lost_response_moves_no_money_again(
    desk: Desk, resources: GivenResources, eva: str, bob: str, when: str
) -> None:
    desk.deposit(eva, "100")
    real = resources.table
    hook: dict[str, Any] = {when: failing}
    resources.table = FaultyTable(real, **hook)
    for _ in range(2):
        lost = desk.transfer(eva, bob, "30")
        answered = when == "after_write" and lost.status == 204
        assert answered or lost.refusal == (503, "unavailable")
    resources.table = real
    assert desk.transfer(eva, bob, "30").status == 204
    assert (desk.balance(eva), desk.balance(bob)) == (70, 30)


def test_a_retry_after_a_lost_response_returns_the_opened_wallet(
    desk: Desk, resources: GivenResources
) -> None:
    real = resources.table
    resources.table = FaultyTable(real, after_write=failing)
    assert desk.ask("POST", WALLETS, {"user_id": EVA}).refusal == (503, "unavailable")
    resources.table = real
    again = desk.ask("POST", WALLETS, {"user_id": EVA})
    assert again.refusal == (409, "wallet_exists")
    assert desk.balance(again.details["id"]) == 0


def test_an_opening_that_finds_its_own_wallet_succeeds(
    desk: Desk, resources: GivenResources
) -> None:
    """The client of DynamoDB repeats a request whose answer was lost."""
    real = resources.table

    def doubled(writes: Sequence[Write]) -> None:
        real.write(*writes)

    resources.table = FaultyTable(real, before_write=doubled)
    made = desk.ask("POST", WALLETS, {"user_id": EVA})
    assert (made.status, made.body["balance"]) == (200, "0")
    assert desk.ask("GET", f"{WALLETS}/me", token=EVAS).status == 200


def test_a_retry_after_archiving_has_the_first_response(
    desk: Desk, resources: GivenResources, eva: str, bob: str
) -> None:
    desk.deposit(eva, "100")
    desk.transfer(eva, bob, "30")
    refused = desk.transfer(eva, bob, "71", "transfer-2")
    for one in (eva, bob):
        for entry in desk.page(one)["transactions"]:
            resources.table.write(Delete(entry_key(one, entry["id"])))
    resources.clock = lambda: NOON + 3 * 86_400
    assert desk.transfer(eva, bob, "30").status == 204
    assert desk.transfer(eva, bob, "71", "transfer-2") == refused
    assert desk.transfer(eva, bob, "29").refusal == (422, "nonce_reused")
    assert (desk.balance(eva), desk.balance(bob)) == (70, 30)


@pytest.mark.parametrize("other", [NOBODY, "x" * 3_000])
def test_the_badge_of_a_missing_wallet_makes_none(resources: GivenResources, other: str) -> None:
    with pytest.raises(UnknownWalletError):
        opening.publish(resources.table, other, is_public=True)
    assert resources.table.get(wallet(other)) is None


def test_a_malformed_id_is_not_read_from_the_table(desk: Desk, resources: GivenResources) -> None:
    """DynamoDB refuses a key of more than 2,048 bytes."""
    resources.table = Unreadable(resources.table)
    for method, path, body in (("GET", "/balance", b""), ("PATCH", "", {"badge": True})):
        answer = desk.ask(method, f"{WALLETS}/{'x' * 3_000}{path}", body)
        assert answer.refusal == (404, "not_found")
    with pytest.raises(UnknownWalletError):
        opening.publish(resources.table, "x" * 3_000, is_public=True)
