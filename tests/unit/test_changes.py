"""Every request and command that changes something leaves one line in the log, with no secret."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from chalicelib import telemetry
from chalicelib.api import TABLE
from chalicelib.counting import bans
from chalicelib.counting.bans import Ban
from chalicelib.counting.milestones import Milestone
from chalicelib.http import tokens
from chalicelib.http.routing import Authentication, Route
from chalicelib.outgoing.urls import Record
from chalicelib.owners import changing, finding
from chalicelib.owners.changing import BadgeChange
from chalicelib.settings import Settings
from chalicelib.wallets.routes import transfer_money
from simulation.clocks import NOON
from simulation.installation import MemoryInstallation, invoke_on
from simulation.logs import logged_events
from simulation.resources import GivenResources
from simulation.storage import FakeQueue, MemoryTable, store_token
from tests.unit.http_requests import ask
from vumi.cli.program import execute

TOKEN, SECRET, NEXT_SECRET = (tokens.new_token() for _ in range(3))
HIDDEN = "hidden-in-a-url-or-a-payload"
URL = f"https://127.0.0.1/{HIDDEN}"
NEXT_DIGEST = tokens.digest(NEXT_SECRET)
SECRETS = (TOKEN, SECRET, NEXT_SECRET, HIDDEN, NEXT_DIGEST, *map(tokens.digest, (TOKEN, SECRET)))
USERS = [f"6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d1{digit}" for digit in range(3)]
BADGES, BANS, EVENTS, WALLETS = (
    f"/api/v1/{name}" for name in ("badges", "bans", "events", "wallets")
)
EVENT = {"delay": 3_600, "target": {"log": True}, "payload": HIDDEN}
POSTING = {"amount": "5", "nonce": "of-a-test"}
Capture: TypeAlias = pytest.CaptureFixture[str]
CHANGING = [
    route
    for route in TABLE.routes
    if route.writes and not route.from_any_site and route.handler is not transfer_money
]
"""The others count views, which needs no token and no secret, or are in the journal of a wallet."""


@dataclass(frozen=True)
class Play:
    """A request of a route, and what its log line has; any `changed_id` if it is empty."""

    body: object
    changed_id: str = ""
    before: Mapping[str, object] | None = None
    query: str = ""


TRAFFIC = {"views": {"count": 0, "uniques": 0, "views": []}}
PLAYS = {
    ("POST", BADGES): Play({"id": "new", "digest": NEXT_DIGEST}, "new", {"count": 0}),
    ("PATCH", BADGES): Play({"frozen": True}, "mine", {"frozen": False}, "?id=mine"),
    ("PATCH", f"{BADGES}/{{badge_id}}"): Play({"digest": NEXT_DIGEST}, "mine", {"base": 7}),
    ("DELETE", BADGES): Play(b"", "mine", {"count": 7}, "?id=mine"),
    ("DELETE", f"{BADGES}/{{badge_id}}"): Play(b"", "mine", {"milestones": [1000]}),
    ("PUT", f"{BADGES}/traffic"): Play(TRAFFIC, "mine", {"count": 7}, "?id=mine"),
    ("PUT", BANS): Play({}, "spam/*", query="?pattern=spam/*"),
    ("DELETE", BANS): Play(b"", "old", {"reason": "spam"}, "?pattern=old"),
    ("POST", "/timers"): Play({"hours": 0, "minutes": 1, "seconds": 0, "url": URL}),
    ("POST", EVENTS): Play({"id": "new", **EVENT}, "new"),
    ("DELETE", f"{EVENTS}/{{event_id}}"): Play(b"", "e", {"status": "ACTIVE"}),
    ("POST", "/echoAtTime"): Play(HIDDEN.encode()),
    ("POST", WALLETS): Play({"user_id": USERS[2]}),
    ("PATCH", f"{WALLETS}/{{wallet_id}}"): Play({"badge": True}, before={"badge": False}),
    ("PUT", f"{WALLETS}/{{wallet_id}}/deposit"): Play(POSTING, before={}),
}


@pytest.fixture
def resources() -> GivenResources:
    def resolve(_: str, port: int, **__: object) -> list[Record]:
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    settings = Settings(webhook_allow="127.0.0.0/8", has_webhook_secrets=True)
    queue = FakeQueue()
    made = GivenResources(
        MemoryTable(), delivery_queue=queue, settings=settings, clock=lambda: NOON, resolver=resolve
    )
    store_token(made.table, TOKEN)
    claim = {"id": "mine", "base": 7, "digest": tokens.digest(SECRET)}
    assert ask(made, "POST", BADGES, claim).status == 201
    bans.put(made.table, Ban("old", "spam", "", 0))
    owned = finding.find(made.table, "mine")
    changing.change(made.table, owned, BadgeChange(milestones=(Milestone(1000, URL),)), NOON)
    return made


@pytest.mark.parametrize("route", CHANGING, ids=lambda route: f"{route.method} {route.path}")
def test_a_change_is_one_line_without_a_secret(
    route: Route, resources: GivenResources, caplog: pytest.LogCaptureFixture
) -> None:
    operator = f"Bearer {TOKEN}"
    ask(resources, "POST", EVENTS, {"id": "e", **EVENT}, authorization=operator)
    wallets = [
        ask(resources, "POST", WALLETS, {"user_id": user}, authorization=operator).body["id"]
        for user in USERS[:2]
    ]
    money = {"amount": "9", "nonce": "first-money"}
    ask(resources, "PUT", f"{WALLETS}/{wallets[0]}/deposit", money, authorization=operator)
    caplog.set_level(logging.INFO)
    play = PLAYS[route.method, route.path]
    names = dict(zip(("wallet_id", "target_id"), wallets, strict=True))
    path = route.path.format(badge_id="mine", event_id="e", **names) + play.query
    is_owners = route.authentication is Authentication.NONE
    kind = "text/plain" if isinstance(play.body, bytes) else "application/json"
    authorization = f"Bearer {SECRET}" if is_owners else operator
    answer = ask(resources, route.method, path, play.body, kind=kind, authorization=authorization)
    assert answer.status < 300
    [(_, event, given)] = logged_events(caplog)
    fields: dict[str, Any] = given
    assert (event, fields["by"]) == ("changed", "owner" if is_owners else "a-test")
    assert fields["action"] == route.handler.__name__
    assert fields["id"] == play.changed_id or (fields["id"] and not play.changed_id)
    before, wanted = fields["before"], play.before
    assert before in (wanted, {**(before or {}), **(wanted or {})})
    assert not [secret for secret in SECRETS if secret in repr(fields)]


def test_an_operators_removal_of_hours_names_the_token(
    resources: GivenResources, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    remove = {"remove": {"from": "2026-03-13T08:00Z", "to": "2026-03-13T09:00Z"}}
    ask(resources, "PATCH", f"{BADGES}/mine", remove, authorization=f"Bearer {TOKEN}")
    [(_, _, fields)] = logged_events(caplog)
    assert (fields["by"], fields["fields"]) == ("a-test", ["remove"])


@pytest.mark.parametrize(
    ("command", "changed_id"),
    [
        ("set mine --base 1", "mine"),
        ("freeze mine", "mine"),
        ("reset mine --yes", "mine"),
        ("remove-views mine --from 2026-03-13T08:00Z --to 2026-03-13T09:00Z --yes", "mine"),
        ("rename mine new", "mine"),
        ("delete mine --yes", "mine"),
        ("claim mine --digest {digest}", "mine"),
        ("release mine", "mine"),
        ("token create --name new", "new"),
        ("token revoke a-test", "a-test"),
        ("import {counts}", "new"),
        ("ban spam", "spam"),
        ("unban old", "old"),
    ],
)
def test_a_command_that_changes_something_writes_the_same_line(
    command: str, changed_id: str, resources: GivenResources, tmp_path: Path, capsys: Capture
) -> None:
    counts = tmp_path / "counts.csv"
    counts.write_text("new,5\n")
    assert isinstance(resources.table, MemoryTable)
    installation = MemoryInstallation(resources.table, clock=lambda: NOON)
    telemetry.write_to(sys.stderr, with_metrics=False)
    assert (
        execute(command.format(counts=counts, digest=NEXT_DIGEST).split(), invoke_on(installation))
        == 0
    )
    [line] = map(json.loads, capsys.readouterr().err.splitlines())
    words = command.split()
    action = " ".join(words[:2]) if words[0] == "token" else words[0]
    assert (line["by"], line["action"], line["id"]) == ("command", action, changed_id)
    assert not [secret for secret in SECRETS if secret in str(line)]
