"""The examples of the calls, which the documents have, each sent to a real server."""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from chalicelib import description
from chalicelib.api import TABLE
from chalicelib.wallets.description import A_USER, A_WALLET, ANOTHER
from tests import checkers
from tests.http_calls import HOST, Example, calls, examples
from tests.processes.programs import TOKEN, WITH_TOKEN, Server, create_token, running

DOCUMENT = description.document(TABLE.routes)
CALLS = calls(DOCUMENT)
FIRST = ("claimBadge", "openWallet", "depositMoney", "transferMoney", "changeWallet", "makeEvent")
"""Calls that make what others show."""
SETTINGS = WITH_TOKEN | {"WEBHOOK_ALLOW": "127.0.0.0/8", "PUBLIC_TOP": "me.example/*"}
"""They allow webhooks to this machine alone, where nothing receives them."""
LAST = ("cancelEvent", "deleteBadge")
AGAIN = "deleteBadgeByQuery"
"""Deletes the same badge again, which has the same answer."""


CURL = ArgumentParser()
"""The arguments of curl, as far as examples have them."""
CURL.add_argument("url")
CURL.add_argument("-H", action="append", default=[])
for option in ("-X", "-d"):
    CURL.add_argument(option)


def in_order(example: Example) -> int:
    """Return the step at which an example can be sent."""
    name = example.call.name
    if name in FIRST:
        return FIRST.index(name) - len(FIRST)
    return 1 + [*LAST, AGAIN].index(name) if name in (*LAST, AGAIN) else 0


@dataclass
class Reader:
    """A person who sends the examples with their own host, tokens and ids."""

    server: Server
    users_token: str
    own: dict[str, str] = field(default_factory=dict)

    def send(self, example: Example) -> tuple[int, str, Any]:
        """Send an example; return the status, the type and the JSON."""
        line = example.curl
        for theirs, own in self.own.items():
            line = line.replace(theirs, own)
        given = CURL.parse_args(shlex.split(line)[1:])
        method = given.X or ("POST" if given.d is not None else "GET")
        headers = dict(one.split(": ", 1) for one in given.H)
        path = given.url.removeprefix(HOST)
        status, answered, content = self.server.request(path, method, given.d, headers)
        kind = (answered.get("Content-Type") or "").partition(";")[0]
        return status, kind, json.loads(content) if kind == "application/json" else None


IN_PART = {"getDescription", "getLogos"}
"""The operations whose examples are a part of an answer."""


def keys(part: Any) -> Any:
    """Return the fields of JSON and of the objects inside, without values and without lists."""
    return {name: keys(inner) for name, inner in part.items()} if isinstance(part, dict) else None


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with running(tmp_path, **SETTINGS) as server:
        reader = Reader(server, create_token(tmp_path, "user", A_USER))
        reader.own["https://example.com/hook"] = "https://127.0.0.1:1/hook"
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        reader.own["2026-12-24T18:00:00Z"] = tomorrow.isoformat()
        reader.own["1767225600.5"] = str(tomorrow.timestamp())
        user = {"user_id": "8a3d4c1e-0f52-4f0e-9d0b-1c7e5a2b9f60"}
        _, wallet = server.ask("POST", "/api/v1/wallets", user, TOKEN)
        reader.own[ANOTHER] = wallet["id"]
        yield reader


def ask(reader: Reader, example: Example) -> Any:
    """Send an example; return the JSON of its answer, checked by the description."""
    token = reader.users_token if example.call.name == "getMyWallet" else TOKEN
    reader.own["Bearer TOKEN"] = f"Bearer {token}"
    status, kind, answer = reader.send(example)
    assert (example.curl, status, kind) == (example.curl, example.status, example.kind), answer
    if example.answer is not None:
        check(answer, example)
    return answer


def test_each_example_has_the_answer_of_a_real_server(reader: Reader) -> None:
    for example in sorted((one for call in CALLS for one in examples(call)), key=in_order):
        answer = ask(reader, example)
        if example.answer is not None and example.call.name not in IN_PART:
            assert keys(answer) == keys(example.answer), example.curl
        learn(reader, example, answer)


def check(answer: Any, example: Example) -> None:
    """Check an answer by the schema of its call."""
    [content] = [one for status, *_, one in example.call.successes if status == example.status]
    schema = content["schema"] | {"components": DOCUMENT["components"]}
    checkers.schema_validator(schema).validate(answer)


def learn(reader: Reader, example: Example, answer: Any) -> None:
    """Keep the ids and the secret of an answer for the next examples."""
    if example.call.name == "claimBadge" and "secret" in answer:
        reader.own["Bearer SECRET"] = f"Bearer {answer['secret']}"
    if example.call.name == "openWallet":
        reader.own[A_WALLET] = answer["id"]
    if example.call.name == "startTimer":
        reader.own[example.answer["id"]] = answer["id"]
