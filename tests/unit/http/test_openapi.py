"""The description says of each route what the code does, and reads as one that a hand wrote."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from app import app
from chalicelib.badges import badge, options
from chalicelib.events import delivery, event, listing, requests, serializers
from chalicelib.events.webhooks import urls
from chalicelib.http import openapi, page
from chalicelib.http.responses import ANY_TYPE, BADGE_HEADERS
from chalicelib.settings import DIGEST, QUEUE_NAME
from chalicelib.views import history_routes, ids, owner, owner_routes
from chalicelib.views.chart import Look
from chalicelib.views.history import By
from chalicelib.views.summary import HOURS_OF_DAY
from chalicelib.wallets import amounts, journal, wallet
from chalicelib.wallets import requests as wallet_requests
from chalicelib.wallets import serializers as wallet_showing
from chalicelib.wallets.opening import Wallet

ROOT = Path(__file__).parents[3]
METHODS = {"get", "head", "post", "put", "patch", "delete", "options", "trace"}
GATEWAYS = {"too_large", "too_many_requests"}
"""Codes that no route answers, but what stands before it: API Gateway, or waitress."""
BEHIND_A_TOKEN = {
    "startTimer", "getTimer", "listEvents", "makeEvent", "getEvent", "cancelEvent", "echoAtTime",
    "openWallet", "getMyWallet", "changeWallet", "getBalance", "listTransactions", "depositMoney",
    "transferMoney",
}  # fmt: skip


def described() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(openapi.text())
    return read


def component(kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = described()["components"][kind][name]
    return found


def parameter(name: str) -> dict[str, Any]:
    """The schema of a parameter, its reference resolved."""
    schema: dict[str, Any] = component("parameters", name)["schema"]
    return resolved(schema)


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref", "")
    return (at(reference) if reference else {}) | schema


def at(reference: str) -> dict[str, Any]:
    """What `#/components/…` points to."""
    found: Any = described()
    for name in reference.removeprefix("#/").split("/"):
        found = found[name.replace("~1", "/").replace("~0", "~")]
    assert isinstance(found, dict)
    return found


def within(part: Any) -> Iterator[dict[str, Any]]:
    """Every object in a part of the description, itself too."""
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if type(part) is list else ():
        yield from within(inner)


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and operation."""
    for path, item in described()["paths"].items():
        for method in METHODS & item.keys():
            yield path, method, item[method]


def limits(schema: dict[str, Any]) -> tuple[int, int]:
    return schema["minimum"], schema["maximum"]


# ---- as it is sent


def test_it_is_json_that_a_page_of_any_host_may_read_and_a_cache_keep_for_minutes() -> None:
    answer = openapi.get_description()
    assert answer.status_code == 200
    assert answer.body == openapi.FILE.read_text(encoding="utf-8")
    assert answer.headers == {
        "Content-Type": "application/json",
        "Cache-Control": "public, max-age=300",
        "Access-Control-Allow-Origin": "*",
        "X-Content-Type-Options": "nosniff",
    }


def test_a_badge_that_is_asked_for_reads_no_description() -> None:
    """Lambda pays for what is read at import at each cold start."""
    program = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda name, args: name == 'open' and opened.append(str(args[0])))\n"
        "import app\n"
        "from chalicelib.http import openapi\n"
        "assert not any(path.endswith('openapi.json') for path in opened), opened\n"
        "openapi.text()\n"
        "assert any(path.endswith('openapi.json') for path in opened), opened\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)  # noqa: S603  our own


def test_it_is_written_with_one_thing_a_line() -> None:
    assert openapi.text() == json.dumps(described(), indent=2, ensure_ascii=False) + "\n"


# ---- as OpenAPI has it


def test_it_is_valid() -> None:
    assert [*OpenAPIV31SpecValidator(described()).iter_errors()] == []


def test_its_version_is_the_products() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    info = described()["info"]
    assert (info["title"], info["version"]) == (project["name"], project["version"])
    assert info["license"]["identifier"] == project["license"]


def test_its_address_is_where_it_lies() -> None:
    """So that a stage before the path, as `/prod`, is no matter."""
    assert [server["url"] for server in described()["servers"]] == ["."]


def test_every_reference_leads_to_something_and_every_component_is_used() -> None:
    references = {part["$ref"] for part in within(described()) if "$ref" in part}
    for reference in references:
        assert at(reference)
    components = described()["components"]
    schemes = components.pop("securitySchemes")
    names = {f"#/components/{kind}/{name}" for kind, part in components.items() for name in part}
    assert names == references
    needed = {
        name for _, _, had in operations() for each in had.get("security", ()) for name in each
    }
    assert needed == set(schemes)


def test_every_operation_has_a_name_of_its_own_a_summary_and_a_known_tag() -> None:
    names = [had["operationId"] for _, _, had in operations()]
    assert len(set(names)) == len(names)
    tags = {tag["name"] for tag in described()["tags"]}
    assert {tag for _, _, had in operations() for tag in had["tags"]} == tags
    assert all(had["summary"] for _, _, had in operations())


def test_every_link_leads_to_an_operation() -> None:
    names = {had["operationId"] for _, _, had in operations()}
    links = [link for part in within(described()) for link in part.get("links", {}).values()]
    assert {link["operationId"] for link in links} <= names
    assert links


# ---- as the code does


def test_every_route_is_described_and_nothing_else() -> None:
    """HEAD is described with its GET: the same without a body, and nothing is counted."""
    routes = {
        (path, method.lower())
        for path, methods in app.routes.items()
        for method in methods
        if method != "HEAD" or "GET" not in methods
    }
    assert routes == {(path, method) for path, method, _ in operations()}


def test_no_route_refuses_a_request_for_the_type_of_its_body() -> None:
    """Chalice would with 415, in a form of its own, a badge too."""
    for path, methods in app.routes.items():
        for method, route in methods.items():
            assert route.content_types == ANY_TYPE, f"{method} {path}"


def test_a_path_has_the_parameters_that_are_in_it() -> None:
    for path, item in described()["paths"].items():
        parts = [part[1:-1] for part in path.split("/") if part.startswith("{")]
        given = [resolved(part) for part in item.get("parameters", ())]
        assert [part["name"] for part in given if part["in"] == "path"] == parts


def test_an_id_is_as_long_as_one_may_be() -> None:
    schema = component("schemas", "Id")
    assert (schema["minLength"], schema["maxLength"]) == (1, ids.MAX_CHARACTERS)
    assert parameter("Id").items() >= schema.items()
    assert parameter("BadgeId").items() >= schema.items()


def test_the_options_of_a_badge_have_the_limits_of_the_code() -> None:
    assert parameter("Label")["maxLength"] == options.MAX_LABEL
    assert parameter("Label")["default"] == badge.LABEL
    assert parameter("Logo")["maxLength"] == options.MAX_LOGO
    assert parameter("Format")["enum"] == [*options.FORMATS]
    assert parameter("Format")["default"] == options.Options().format
    assert parameter("Style")["enum"] == [*options.STYLES]
    assert parameter("Base")["default"] == options.Options().base
    assert limits(parameter("Base")) == (0, options.MAX_BASE)


@pytest.mark.parametrize("path", ["/api/v1/views", "/v1/api/views", "/api/v1/views.svg"])
def test_a_badge_has_all_options_that_there_are(path: str) -> None:
    given = described()["paths"][path]["get"]["parameters"]
    names = {resolved(part)["name"] for part in given}
    spelt = {"label_color": "labelColor"}
    fields = {spelt.get(name, name) for name in options.Options.__dataclass_fields__}
    assert names == {"id", *fields}


def test_a_history_has_the_limits_of_the_code() -> None:
    assert limits(parameter("Days")) == (1, By.DAY.most_days)
    assert parameter("Days")["default"] == history_routes.DAYS
    assert parameter("By")["enum"] == [*By]
    days, hours = (component("schemas", f"HistoryBy{by}")["properties"] for by in ("Day", "Hour"))
    assert limits(days["days"]) == (1, By.DAY.most_days)
    assert limits(hours["days"]) == (1, By.HOUR.most_days)
    assert (days["views"]["minItems"], days["views"]["maxItems"]) == (1, By.DAY.most_days)
    most = By.HOUR.most_days * HOURS_OF_DAY
    assert (hours["views"]["minItems"], hours["views"]["maxItems"]) == (HOURS_OF_DAY, most)


def test_a_chart_has_the_limits_of_the_code() -> None:
    for name, known, usual in (
        ("Width", history_routes.WIDTHS, Look().width),
        ("Height", history_routes.HEIGHTS, Look().height),
    ):
        assert limits(parameter(name)) == (known[0], known[-1])
        assert parameter(name)["default"] == usual


def test_an_owners_fields_are_those_of_the_code() -> None:
    assert component("schemas", "Claim")["properties"].keys() == owner_routes.CLAIM
    assert component("schemas", "Change")["properties"].keys() == owner_routes.CHANGE
    for name in ("Claim", "Change"):
        assert limits(resolved(component("schemas", name)["properties"]["base"])) == (
            0,
            options.MAX_BASE,
        )
    digest = component("schemas", "Claim")["properties"]["digest"]
    assert digest["pattern"] == f"^{DIGEST.pattern}$"
    assert component("schemas", "Claimed")["required"] == ["id"]
    secret = component("schemas", "Claimed")["properties"]["secret"]
    length = owner.SECRET_BYTES * 4 // 3  # Base64
    assert (secret["minLength"], secret["maxLength"]) == (length, length)
    assert f"{owner.MAX_NAMES} in all" in openapi.text()
    assert f"has had {owner.MAX_NAMES} names" in openapi.text()


def test_a_token_opens_what_an_authorizer_stands_before_and_nothing_else() -> None:
    behind = {
        (path, method.lower())
        for path, methods in app.routes.items()
        for method, route in methods.items()
        if route.authorizer is not None
    }
    token: list[dict[str, list[str]]] = [{"token": []}]
    asking = {(path, method) for path, method, had in operations() if had.get("security") == token}
    assert asking == behind
    assert {had["operationId"] for _, _, had in operations() if had.get("security") == token} == (
        BEHIND_A_TOKEN
    )


@pytest.mark.parametrize("name", sorted(BEHIND_A_TOKEN))
def test_what_a_token_opens_tells_what_becomes_of_one_without_it(name: str) -> None:
    [answers] = [had["responses"] for _, _, had in operations() if had["operationId"] == name]
    assert {"401", "403", "429", "500", "503"} < answers.keys()
    assert answers["401"]["$ref"].endswith("/NoToken")
    assert answers["403"]["$ref"].endswith("/WrongToken")


def test_the_fields_of_events_are_those_of_the_code() -> None:
    assert component("schemas", "EventRequest")["properties"].keys() == requests.EVENT
    timer = component("schemas", "TimerRequest")
    assert timer["properties"].keys() == set(timer["required"]) == requests.TIMER
    targets = [set(one["properties"]) for one in component("schemas", "Target")["oneOf"]]
    assert targets == [{kind} for kind in event.Kind]
    assert component("schemas", "Status")["enum"] == [*event.Status]
    assert parameter("Status")["default"] == event.Status.ACTIVE


def test_events_have_the_limits_of_the_code() -> None:
    assert component("schemas", "EventId")["pattern"] == f"^{event.ID.pattern}$"
    delay = component("schemas", "EventRequest")["properties"]["delay"]
    assert limits(delay) == (0, requests.MAX_AHEAD_SECONDS)
    for name, length in requests.PARTS.items():
        part = component("schemas", "TimerRequest")["properties"][name]
        assert limits(part) == (0, requests.MAX_AHEAD_SECONDS // length)
    left = component("schemas", "Timer")["properties"]["time_left"]
    assert limits(left) == (0, requests.MAX_AHEAD_SECONDS)
    [queue] = [one for one in component("schemas", "Target")["oneOf"] if "queue" in one["required"]]
    assert queue["properties"]["queue"]["pattern"] == f"^{QUEUE_NAME.pattern}$"
    assert component("schemas", "Url")["maxLength"] == urls.MAX_URL_CHARACTERS
    text = described()["paths"]["/echoAtTime"]["post"]["requestBody"]["content"]["text/plain"]
    assert text["schema"]["maxLength"] == requests.MAX_TEXT_CHARACTERS
    assert component("schemas", "Events")["properties"]["events"]["maxItems"] == listing.PAGE
    attempts = component("schemas", "Event")["properties"]["attempts"]
    assert attempts["maxItems"] == delivery.MAX_ATTEMPTS_KEPT
    assert f"at most {requests.MAX_PAYLOAD_BYTES} bytes" in openapi.text()
    assert f"{requests.MAX_AHEAD_SECONDS // 86_400} days ahead" in openapi.text()
    assert f"{event.KEPT_SECONDS // 86_400} days after it is done" in openapi.text()
    assert f"port {' or '.join(map(str, urls.PORTS))}" in openapi.text()


def test_what_an_event_shows_is_described() -> None:
    """All that an event can have at once, and the least it has."""
    attempt = event.Attempt(1, 2, 500, "status 500")
    most = event.Event(
        "e", 5, 1, event.Target(event.Kind.LOG), "{}", "", claim="worker", attempts=(attempt,)
    )
    least = event.Event("e", 5, 1, most.target, "", "", event.Status.SUCCESS)
    for schema, shown, bare in (
        ("Event", serializers.document(most), serializers.document(least)),
        ("Attempt", serializers.document(most)["attempts"][0], {"started"}),
        ("Timer", serializers.timer(most, 0), serializers.timer(least, 0)),
    ):
        assert component("schemas", schema)["properties"].keys() == set(shown)
        assert set(component("schemas", schema)["required"]) == set(bare)
    claim = component("schemas", "Event")["properties"]["claim"]
    assert claim["properties"].keys() == serializers.document(most)["claim"].keys()


def test_a_badge_has_every_color_of_a_countdown() -> None:
    pattern = component("schemas", "Badge")["properties"]["color"]["pattern"]
    assert all(re.search(pattern, color) for color in serializers.COLORS.values())


def test_the_examples_of_events_are_taken_as_they_stand() -> None:
    posts = {
        had["operationId"]: had["requestBody"]["content"]
        for _, method, had in operations()
        if method == "post"
    }
    now = 1_763_719_200_000  # 2025-11-21
    for example in posts["makeEvent"]["application/json"]["examples"].values():
        later = example["value"] | ({"at": now / 1000} if "at" in example["value"] else {})
        wanted = requests.read_event(json.dumps(later).encode(), (), now)
        assert wanted.target.document() == example["value"]["target"]
    timer = posts["startTimer"]["application/json"]["example"]
    assert requests.read_timer(json.dumps(timer).encode(), now).at == now + 330_000
    said = posts["echoAtTime"]["text/plain"]["example"]
    assert requests.read_echo(said.encode(), "0", now).payload == json.dumps(said)


A_WALLET, ANOTHER = "01KAJV4QZ8M3T6W9X2Y5B7C0DE", "01KAJV5R2N8P4S7V0Z3A6D9FGH"


def content(path: str, method: str, part: str) -> dict[str, Any]:
    """The JSON that is sent, or answered with a status."""
    had = described()["paths"][path][method]
    body = had["requestBody"] if part == "requestBody" else had["responses"][part]
    found: dict[str, Any] = body["content"]["application/json"]
    return found


def test_wallets_have_the_limits_and_fields_of_the_code() -> None:
    def properties(schema: str) -> dict[str, Any]:
        found: dict[str, Any] = component("schemas", schema)["properties"]
        return found

    for schema, pattern in (
        ("WalletId", wallet.ID),
        ("TransactionId", wallet.ID),
        ("UserId", wallet_requests.UUID_TEXT),
        ("Amount", amounts.AMOUNT),
        ("Nonce", wallet_requests.NONCE),
    ):
        assert component("schemas", schema)["pattern"] == f"^{pattern.pattern}$"
    assert component("schemas", "Millionths")["pattern"] == f"^(0|{amounts.AMOUNT.pattern})$"
    for schema in ("Amount", "Millionths"):
        assert component("schemas", schema)["description"].endswith(f" {amounts.MOST}.")
    assert properties("MovementRequest").keys() == wallet_requests.FIELDS
    assert properties("Transaction")["kind"]["enum"] == [*wallet.Kind]
    assert properties("Transactions")["transactions"]["maxItems"] == journal.PAGE
    assert wallet.HOT_SECONDS == 2 * 86_400
    journal_of = described()["paths"]["/api/v1/wallets/{wallet_id}/transactions"]["get"]
    assert "two days" in journal_of["description"]


def test_what_a_wallet_shows_is_described() -> None:
    """All that a transaction and a page can have at once, and the least they have."""
    shown = Wallet(A_WALLET, "", 0)
    transfer = wallet.Posting("nonce-01", 1, ANOTHER, A_WALLET)
    most = wallet_showing.transactions(
        journal.Page([wallet.Entry(A_WALLET, transfer, 0)], A_WALLET), A_WALLET, 0
    )
    deposit = wallet.Posting("nonce-01", 1, ANOTHER)
    least = wallet_showing.transactions(
        journal.Page([wallet.Entry(A_WALLET, deposit, 0)], ""), A_WALLET, 0
    )
    for schema, full, bare in (
        ("Balance", wallet_showing.balance(shown), wallet_showing.balance(shown)),
        ("Wallet", wallet_showing.own(shown), wallet_showing.own(shown)),
        ("Transactions", most, least),
        ("Transaction", most["transactions"][0], least["transactions"][0]),
    ):
        assert component("schemas", schema)["properties"].keys() == set(full)
        assert set(component("schemas", schema)["required"]) == set(bare)


def test_the_examples_of_wallets_are_taken_and_shown_as_they_stand() -> None:
    def example(*where: str) -> Any:
        return content(*where)["example"]

    user = example("/api/v1/wallets", "post", "requestBody")
    assert wallet_requests.read_user(json.dumps(user).encode()) == user["user_id"]
    one = "/api/v1/wallets/{wallet_id}"
    for path in (f"{one}/deposit", f"{one}/transfer/{{target_id}}"):
        body = example(path, "put", "requestBody")
        moved = wallet_requests.read_posting(json.dumps(body).encode(), ANOTHER)
        assert (moved.amount, moved.nonce) == (12_500_000, body["nonce"])
    change = example(one, "patch", "requestBody")
    assert wallet_requests.read_publicity(json.dumps(change).encode()) is True
    assert example("/api/v1/wallets/me", "get", "200") == wallet_showing.own(
        Wallet(A_WALLET, user["user_id"], 12_500_000)
    )
    page = example(f"{one}/transactions", "get", "200")
    entries = [
        wallet.Entry(
            told["id"],
            wallet.Posting(told["nonce"], int(told["amount"]), told["to"], told.get("from", "")),
            int(datetime.fromisoformat(told["at"]).timestamp() * 1000),
        )
        for told in page["transactions"]
    ]
    now = int(datetime.fromisoformat(page["archived_before"]).timestamp() * 1000)
    later = now + wallet.HOT_SECONDS * 1000
    assert wallet_showing.transactions(journal.Page(entries, ""), A_WALLET, later) == page


def test_the_headers_are_those_of_the_code() -> None:
    def value(name: str) -> str:
        return str(component("headers", name)["schema"]["const"])

    assert value("NeverStored") == BADGE_HEADERS["Cache-Control"]
    assert value("AnyOrigin") == BADGE_HEADERS["Access-Control-Allow-Origin"]
    assert value("KeptMinutes") == page.get_page().headers["Cache-Control"]
    assert value("KeptMinutes") == openapi.get_description().headers["Cache-Control"]


def test_every_code_of_an_error_is_described_and_nothing_else() -> None:
    codes: set[str] = set()
    for part in within(described()):
        if part.get("$ref") == "#/components/schemas/Error":
            code = part["properties"]["error"]["properties"]["code"]
            codes |= {code["const"]} if "const" in code else set(code["enum"])
    assert codes == answered() | GATEWAYS


def answered() -> set[str]:
    """The code in every `error(status, code, message)` and `(exception, status, code)` there is.

    And those of movements that are refused.
    """
    codes = {str(outcome) for outcome in wallet.Outcome if outcome is not wallet.Outcome.DONE}
    for path in (ROOT / "chalicelib").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Name("error"),
                    args=[ast.Constant(int()), ast.Constant(str(code)), _],
                ):
                    codes.add(code)
                case ast.Tuple(
                    [ast.Attribute() | ast.Name(), ast.Constant(int()), ast.Constant(str(code))]
                ):
                    codes.add(code)
    return codes
