"""The OpenAPI description is valid and says of each route what the code does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chalicelib import description
from chalicelib.api import TABLE
from chalicelib.counting import ids
from chalicelib.events import requests, serializers
from chalicelib.http.description import NO_CONTROL_CHARACTERS
from chalicelib.http.dispatch import dispatch
from chalicelib.http.errors import ClientError, MethodNotAllowedError
from chalicelib.http.guards import SwitchedOffError
from chalicelib.http.messages import Request, Response
from chalicelib.http.query import check_characters
from chalicelib.http.times import to_iso8601
from chalicelib.pages.description import ID_CHARACTERS
from chalicelib.settings import Settings
from chalicelib.wallets import requests as wallet_requests
from chalicelib.wallets import wallet
from simulation.resources import GivenResources
from tests import checkers

ROOT = Path(__file__).parents[2]
METHODS = {"get", "post", "put", "patch", "delete"}
SERVER_CODES = {"too_large", "too_many_requests", "internal", "unavailable"}
"""Codes of errors that no feature raises."""
TOKEN_OPERATIONS = {
    "startTimer", "getTimer", "listEvents", "makeEvent", "getEvent", "cancelEvent", "echoAtTime",
    "openWallet", "getMyWallet", "changeWallet", "getBalance", "listTransactions", "depositMoney",
    "transferMoney",
}  # fmt: skip
DOCUMENT: dict[str, Any] = json.loads(description.text(TABLE.routes))


def resolve(part: Any) -> Any:
    """Return a part of the document with the components in place of the references."""
    if isinstance(part, list):
        return [resolve(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    resolved = {name: resolve(inner) for name, inner in part.items() if name != "$ref"}
    if "$ref" not in part:
        return resolved
    _, _, kind, name = part["$ref"].split("/")
    return merge(resolve(DOCUMENT["components"][kind][name]), resolved)


def merge(below: Any, above: Any) -> Any:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return below | {
        name: merge(below[name], part) if name in below else part for name, part in above.items()
    }


PATHS: dict[str, Any] = resolve(DOCUMENT["paths"])
SCHEMAS: dict[str, Any] = resolve(DOCUMENT["components"]["schemas"])


OPERATIONS: dict[str, Any] = {
    item[method]["operationId"]: item[method] | {"path": item.get("parameters", [])}
    for item in PATHS.values()
    for method in METHODS & item.keys()
}
"""Each operation by its name, with the parameters of its path."""


def get(path: str) -> Response:
    return dispatch(TABLE, Request("GET", path), GivenResources())


def find(name: str, part: Any) -> Iterator[Any]:
    """Return every value under this key, however deep."""
    if isinstance(part, dict):
        yield from (part[name],) if name in part else ()
    for inner in part.values() if isinstance(part, dict) else part if type(part) is list else ():
        yield from find(name, inner)


# ---- the response


def test_every_page_may_read_it_and_a_cache_keeps_it_for_minutes() -> None:
    response = get("/openapi.json")
    assert response.status == 200
    assert json.loads(response.body) == DOCUMENT
    assert response.headers == {
        "Content-Type": "application/json",
        "Cache-Control": "public, max-age=300",
        "Access-Control-Allow-Origin": "*",
        "X-Content-Type-Options": "nosniff",
    }


def test_it_is_generated_at_the_first_request() -> None:
    """Lambda pays for imports at each cold start, which mostly is for a badge."""
    program = (
        "import sys\n"
        "from chalicelib import api\n"
        "from simulation.resources import GivenResources\n"
        "assert not [name for name in sys.modules if name.endswith('description')]\n"
        "first = api.get_description(None, GivenResources()).body\n"
        "assert api.get_description(None, GivenResources()).body is first\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)  # noqa: S603  our own


# ---- the document


def test_it_is_valid() -> None:
    assert checkers.find_errors_of_description(DOCUMENT) == []


def test_every_route_is_described() -> None:
    described = {(method, path) for path, item in PATHS.items() for method in METHODS & item.keys()}
    assert described == {(route.method.lower(), route.path) for route in TABLE.routes}
    for routes in (TABLE.routes[1:], (*TABLE.routes, replace(TABLE.routes[0], path="/new"))):
        with pytest.raises(ValueError, match="no route or no description"):
            description.document(routes)


@pytest.mark.parametrize(
    ("settings", "left_out"),
    [
        (Settings(wallets=False), {"wallet"}),
        (Settings(events=False), {"event", "timer", "echo"}),
        (Settings(events=False, wallets=False), {"wallet", "event", "timer", "echo"}),
    ],
)
def test_a_feature_that_is_switched_off_is_not_described(
    settings: Settings, left_out: set[str]
) -> None:
    resources = GivenResources(settings=settings)
    document = json.loads(dispatch(TABLE, Request("GET", "/openapi.json"), resources).body)
    assert checkers.find_errors_of_description(document) == []
    gone = DOCUMENT["paths"].keys() - document["paths"].keys()
    assert gone == {path for path in PATHS if any(word in path.lower() for word in left_out)}
    assert {tag["name"] for tag in document["tags"]} == {
        tag
        for item in document["paths"].values()
        for method in METHODS & item.keys()
        for tag in item[method]["tags"]
    }


def test_every_link_gives_parameters_of_an_operation() -> None:
    parameters = {
        name: {one["name"] for one in (*operation["path"], *operation.get("parameters", ()))}
        for name, operation in OPERATIONS.items()
    }
    links = [link for named in find("links", PATHS) for link in named.values()]
    assert links
    for link in links:
        assert link["parameters"].keys() <= parameters[link["operationId"]]


def test_every_example_conforms_to_its_schema() -> None:
    examples = 0
    for holder in (*find("application/json", PATHS), *find("parameters", PATHS)):
        for part in holder if isinstance(holder, list) else [holder]:
            named = [one["value"] for one in part.get("examples", {}).values()]
            for example in (*named, *([part["example"]] if "example" in part else [])):
                checkers.schema_validator(part["schema"]).validate(example)
                examples += 1
    assert examples > 20


# ---- the code


def test_routes_with_a_token_say_so_and_return_its_errors() -> None:
    token = {
        name: operation["responses"]
        for name, operation in OPERATIONS.items()
        if operation.get("security") == [{"token": []}]
    }
    assert token.keys() == TOKEN_OPERATIONS
    for answers in token.values():
        assert {"401", "403", "429", "500", "503"} < answers.keys()
        assert answers["401"]["headers"]["WWW-Authenticate"]["schema"] == {"const": "Bearer"}


def test_every_code_of_an_error_is_described_and_no_other() -> None:
    schemas = [
        code
        for operation in OPERATIONS.values()
        for status, response in operation["responses"].items()
        if int(status) >= 400
        for code in find("code", response)
    ]
    described = {code for schema in schemas for code in schema.get("enum") or [schema["const"]]}
    of_no_operation: set[type[ClientError]] = {MethodNotAllowedError, SwitchedOffError}
    raised = {error.code for error in {*subclasses(ClientError)} - of_no_operation}
    assert all(f"`{error.code}`" in DOCUMENT["info"]["description"] for error in of_no_operation)
    refused = {
        str(outcome)
        for outcome in wallet.PostingOutcome
        if outcome is not wallet.PostingOutcome.DONE
    }
    assert described == raised | refused | SERVER_CODES


def subclasses(kind: type[ClientError]) -> Iterator[type[ClientError]]:
    """Return all classes of the code that derive from this one."""
    for derived in kind.__subclasses__():
        if derived.__module__.startswith("chalicelib."):
            yield derived
            yield from subclasses(derived)


def test_every_option_of_a_route_is_described_and_no_other() -> None:
    first = TABLE.routes[0]
    for other, name in (
        ((*(first.options or ()), "new"), "new"),
        ((first.options or ())[1:], "id"),
    ):
        says = f"/api/v1/views: only the route or only its description has {name}$"
        with pytest.raises(ValueError, match=says):
            description.document((replace(first, options=other), *TABLE.routes[1:]))


def test_the_examples_of_requests_are_accepted() -> None:
    def example(name: str, kind: str = "application/json") -> Any:
        content = OPERATIONS[name]["requestBody"]["content"][kind]
        return content.get("example") or [one["value"] for one in content["examples"].values()]

    def body(name: str) -> bytes:
        return json.dumps(example(name)).encode()

    now = 1_790_000_000_000
    for one in example("makeEvent"):
        assert requests.read_event(json.dumps(one).encode(), (), now).digest
    assert requests.read_timer(body("startTimer"), now).at == now + 330_000
    assert requests.read_echo(example("echoAtTime", "text/plain").encode(), "0", now).digest
    assert wallet_requests.read_user(body("openWallet")) == example("openWallet")["user_id"]
    for name, amount in (("depositMoney", 12_500_000), ("transferMoney", 2_500_000)):
        assert wallet_requests.read_posting(body(name), "b").amount == amount
    assert wallet_requests.read_publicity(body("changeWallet"))


def test_the_patterns_are_those_of_the_code() -> None:
    pattern = re.compile(SCHEMAS["Badge"]["properties"]["color"]["pattern"])
    waiting = (serializers.WAITING_COLOR, serializers.WARNING_COLOR)
    done = [color for _, color in serializers.OUTCOMES.values()]
    assert all(map(pattern.match, [*done, *waiting]))
    assert re.match(SCHEMAS["Moment"]["pattern"], to_iso8601(1_790_000_000_000))
    for character in map(chr, range(0x300)):
        is_allowed = NO_CONTROL_CHARACTERS.fullmatch(character) is not None
        assert is_allowed == can_be_shown(character)


def test_the_pattern_of_an_id_refuses_what_the_code_refuses() -> None:
    """Above U+FFFF it refuses nothing. Newer versions of Unicode may have more characters."""
    assert SCHEMAS["Id"]["pattern"] == f"^{ID_CHARACTERS.pattern}$"
    assert ID_CHARACTERS.fullmatch("caf\u00e9 \u65e5\u672c \U0001f440")
    for character in map(chr, range(0xD800)):
        allowed = can_be_shown(character) and unicodedata.category(character) != ids.FORMAT
        assert (ID_CHARACTERS.fullmatch(character) is not None) == allowed


def test_every_response_that_a_script_of_any_site_may_read_says_so() -> None:
    for item in PATHS.values():
        for method in METHODS & item.keys():
            operation = item[method]
            for status, response in operation["responses"].items():
                if int(status) < 400:
                    origin = response.get("headers", {}).get("Access-Control-Allow-Origin")
                    is_public = method == "get" and not operation.get("security")
                    is_public |= operation["operationId"] == "countView"
                    is_page = "text/html" in response.get("content", {})
                    assert bool(origin) == (is_public and not is_page)


def can_be_shown(character: str) -> bool:
    try:
        check_characters(character, "it")
    except ValueError:
        return False
    return True
