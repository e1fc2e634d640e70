"""Routes of owners: statuses, bodies, and secrets that no log line has."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from chalicelib import telemetry
from chalicelib.badges.options import MAX_BASE
from chalicelib.counting import keys
from chalicelib.counting.resources import Counting
from chalicelib.counting.storing import store
from chalicelib.counting.view import View, ViewMessages
from chalicelib.counting.windows import Windows
from chalicelib.http import tokens
from chalicelib.limits import Action
from chalicelib.settings import Settings
from chalicelib.storage.errors import StorageError, StorageRefusedError, UnavailableError
from chalicelib.storage.items import Item
from chalicelib.storage.ports import Table
from simulation.clocks import NOON
from simulation.hosts import Host
from simulation.memory_table import MemoryTable
from simulation.queues import FakeQueue
from simulation.resources import GivenResources
from simulation.tables import FaultyTable, raising
from simulation.tokens import store_token
from simulation.views import put_summary
from tests.unit import http_requests
from tests.unit.http_requests import Answer
from vumi.server.client_limits import ClientLimits, Rate

BADGES = "/api/v1/badges"
BY_PATH, BY_QUERY = f"{BADGES}/{{}}", f"{BADGES}?id={{}}"
JSON = "application/json"
CHANGES = "base, digest, frozen, milestones, remove, rename, reset"
GOAL = {"count": 1000, "url": "https://example.com/"}
MILESTONE = 'milestones: give each as {"count": 1000, "url": "https://…"}'
REMOVED = {"from": "2026-03-13T08:00Z", "to": "2026-03-13T10:00Z"}
NO_HOUR = "remove: give a whole hour in UTC like 2026-11-21T08:00Z, not 'now'"
HOURS = 'remove: give {"from": "2026-11-21T08:00Z", "to": "2026-11-21T10:00Z"}'
MILESTONE_COUNT = f"milestones: count: give a whole number from 1 to {MAX_BASE}"
OFF = "milestones: nothing is sent in this deployment, because events are switched off: EVENTS=off"


@dataclass
class Api:
    """The routes, over a table in memory at noon."""

    queue: FakeQueue = field(default_factory=FakeQueue)
    host: Host = field(default_factory=Host)
    resources: GivenResources = field(init=False)

    def __post_init__(self) -> None:
        self.resources = GivenResources(
            table=MemoryTable(),
            views_queue=ViewMessages(self.queue),
            clock=lambda: NOON,
            fetcher=self.host,
        )

    @property
    def table(self) -> Table:
        return self.resources.table

    @table.setter
    def table(self, table: Table) -> None:
        self.resources.table = table

    def call(  # noqa: PLR0913, PLR0917  what a request has
        self,
        method: str,
        badge_id: str | None,
        body: bytes,
        authorization: str = "",
        kind: str = JSON,
        form: str = BY_PATH,
    ) -> Answer:
        path = BADGES if badge_id is None else form.format(quote(badge_id, safe=""))
        return http_requests.ask(
            self.resources, method, path, body, kind=kind, authorization=authorization
        )

    def get(self, token: str, badge_id: str = "octocat", form: str = BY_PATH) -> Answer:
        return self.call("GET", badge_id, b"", f"Bearer {token}", form=form)

    def post(self, body: str, kind: str = JSON) -> Answer:
        return self.call("POST", None, body.encode(), kind=kind)

    def claim(self, badge_id: str = "octocat", **fields: Any) -> str:
        answer = self.post(json.dumps({"id": badge_id, **fields}))
        assert answer.status == 201
        secret: str = answer.body["secret"]
        return secret

    def patch(self, secret: str, badge_id: str = "octocat", **fields: Any) -> Answer:
        return self.call("PATCH", badge_id, json.dumps(fields).encode(), f"Bearer {secret}")

    def delete(self, secret: str, badge_id: str = "octocat") -> Answer:
        return self.call("DELETE", badge_id, b"", f"Bearer {secret}")

    def look(self, badge_id: str = "octocat", **options: str) -> str:
        query = urlencode({"id": badge_id, **options})
        return str(
            http_requests.ask(self.resources, "GET", f"/api/v1/views?{query}").body["message"]
        )

    def deliver(self) -> None:
        """Store every view of the queue."""
        views = [View.from_message(body) for body in self.queue.bodies]
        self.queue.bodies.clear()
        assert store(Counting(self.table, Windows(), lambda: NOON), views) == {}

    def owner_item(self) -> Item | None:
        return self.table.get(keys.owner("octocat"))


@pytest.fixture
def api() -> Api:
    return Api()


# what is done


def test_a_claim_answers_201_with_the_id_and_the_secret(api: Api) -> None:
    answer = api.post('{"id": "owner/name", "base": 1200}')
    assert answer.status == 201
    assert set(answer.body) == {"id", "secret"}
    assert answer.body["id"] == "owner/name"
    assert len(answer.body["secret"]) == 32
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert api.look("owner/name", peek="1") == "1200"


def test_a_badge_is_changed_and_the_answer_says_its_name(api: Api) -> None:
    secret = api.claim()
    assert [api.look() for _ in range(3)] == ["0", "0", "0"]
    api.deliver()
    for fields, name, says in (
        ({"base": 1_000}, "octocat", "1003"),
        ({"frozen": True}, "octocat", "1003"),
        ({"rename": "mona"}, "mona", "1003"),
        ({"reset": False, "base": 7}, "mona", "10"),
        ({"reset": True}, "mona", "0"),
        ({"reset": True, "base": MAX_BASE}, "mona", str(10**15)),
    ):
        answer = api.patch(secret, **fields)
        assert (answer.status, answer.body) == (200, {"id": name})
        assert answer.headers["Cache-Control"] == "no-store"
        assert api.look(peek="1") == says


def test_a_deletion_answers_204_and_again_until_somebody_else_has_the_badge(api: Api) -> None:
    secret = api.claim(base=7)
    api.look()
    api.deliver()
    answer = api.delete(secret)
    assert (answer.status, answer.text) == (204, "")
    assert answer.headers["Cache-Control"] == "no-store"
    assert api.look(peek="1") == "0"
    assert api.owner_item() is None
    late = api.patch(secret, base=1)
    assert late.refusal == (404, "not_claimed")
    assert api.delete(secret).status == 204
    assert api.claim() != secret
    late = api.delete(secret)
    assert late.refusal == (403, "wrong_secret")


@pytest.mark.parametrize("badge_id", ["owner/name", "a%2Fb", "日本語", "?&=#+"])
@pytest.mark.parametrize("form", [BY_PATH, BY_QUERY])
def test_a_path_and_a_query_may_have_any_id(api: Api, badge_id: str, form: str) -> None:
    authorization = f"Bearer {api.claim(badge_id)}"
    changed = api.call("PATCH", badge_id, b'{"base": 5}', authorization, form=form)
    assert changed.body == {"id": badge_id}
    shown = api.call("GET", badge_id, b"", authorization, form=form)
    assert (shown.body["id"], shown.body["base"]) == (badge_id, 5)
    assert api.call("DELETE", badge_id, b"", authorization, form=form).status == 204


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_change_names_its_badge(api: Api, method: str) -> None:
    answer = http_requests.ask(
        api.resources, method, BADGES, b'{"base": 5}', authorization=f"Bearer {api.claim()}"
    )
    assert (answer.refusal, answer.says) == ((400, "bad_request"), "give an id: ?id=owner/name")


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    ("target", "says"),
    [
        (f"{BADGES}?id=", "the id is empty: give one like owner/name"),
        (f"{BADGES}?id=octocat&id=octocat", "id: give one, not 2"),
        (f"{BADGES}/octocat?id=octocat", "unknown option 'id': leave it out"),
    ],
)
def test_a_request_has_one_id(api: Api, method: str, target: str, says: str) -> None:
    authorization = f"Bearer {api.claim()}"
    answer = http_requests.ask(
        api.resources, method, target, b'{"base": 5}', authorization=authorization
    )
    assert (answer.refusal, answer.says) == ((400, "bad_request"), says)
    assert api.look(peek="1") == "0"


def test_an_owner_sees_what_is_set_and_no_view_is_counted(api: Api) -> None:
    secret = api.claim(base=7)
    api.look()
    api.deliver()
    api.patch(secret, rename="mona", frozen=True)
    for name in ("octocat", "mona"):
        answer = api.get(secret, name)
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.body == {
            "id": "mona",
            "names": ["mona", "octocat"],
            "aliases": ["octocat"],
            "base": 7,
            "count": 8,
            "frozen": True,
            "created": "2026-03-14T12:00:00.000Z",
            "reset": None,
            "proven": None,
            "granted": False,
            "milestones": [],
        }
    api.patch(secret, rename="octocat", frozen=False, base=0)
    shown = api.get(secret).body
    assert (shown["id"], shown["names"]) == ("octocat", ["mona", "octocat"])
    assert (shown["base"], shown["count"], shown["frozen"]) == (0, 1, False)
    api.patch(secret, reset=True)
    assert api.get(secret).body["reset"] == "2026-03-14T12:00:05.000Z"
    assert api.queue.bodies == []


def test_an_operator_sees_every_badge_and_changes_none(api: Api) -> None:
    operators, bootstrap, users = (tokens.new_token() for _ in range(3))
    store_token(api.resources.table, operators)
    store_token(api.resources.table, users, "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11")
    api.resources.settings = Settings(api_token_digests=frozenset({tokens.digest(bootstrap)}))
    api.claim(base=7)
    for token in (operators, bootstrap):
        assert api.get(token).body["base"] == 7
        assert api.get(token, "nobody's").refusal == (404, "not_claimed")
        assert api.patch(token, base=8).refusal == (403, "wrong_secret")
        assert api.delete(token).refusal == (403, "wrong_secret")
    assert api.get(users).refusal == (403, "wrong_secret")


def test_the_owner_and_an_operator_remove_views_of_hours(api: Api) -> None:
    secret, operators = api.claim(), tokens.new_token()
    store_token(api.resources.table, operators)
    put_summary(api.table, count=5, version=1, today={"day": "2026-03-13", "h08": 3, "h10": 2})
    assert api.patch(secret, remove=REMOVED).body == {"id": "octocat", "removed": 3}
    rest = {"from": "2026-03-13T10:00Z", "to": "2026-03-13T11:00Z"}
    assert api.patch(operators, remove=rest).body == {"id": "octocat", "removed": 2}
    assert api.patch("nobody's", remove=rest).refusal == (403, "wrong_secret")


def test_a_deleted_badge_is_not_shown(api: Api) -> None:
    secret = api.claim()
    assert api.delete(secret).status == 204
    answer = api.get(secret)
    assert (answer.refusal, answer.says) == ((404, "not_claimed"), "octocat was deleted")
    assert api.patch(secret, base=1).says == "octocat was deleted"


def test_the_scheme_bearer_may_be_in_any_case_before_any_spaces(api: Api) -> None:
    secret = api.claim()
    for authorization in (f"bearer {secret}", f"BEARER   {secret} "):
        assert api.call("PATCH", "octocat", b'{"base": 1}', authorization).status == 200


# what is refused

ID = "id: give an id, a text of 1 to 200 characters"
DIGEST = "digest: give the SHA-256 digest of a secret of yours, 64 hex digits in lower case"
BASE = f"base: give a whole number from 0 to {MAX_BASE}"


def test_a_body_of_more_than_16_kib_is_refused_before_it_is_read(api: Api) -> None:
    """Anybody may send one, and JSON of a few hundred KB stops all others for a tenth of a second.

    The longest id with each character escaped fits.
    """
    escaped = "\\u00e9" * 200
    assert api.post(f'{{"id": "{escaped}"}}'.ljust(16_384)).status == 201
    secret = api.claim()
    for answer in (
        api.post('{"id": "other"}'.ljust(16_385)),
        api.call("PATCH", "octocat", b'{"base": 1}'.ljust(16_385), f"Bearer {secret}"),
    ):
        assert answer.refusal == (413, "too_large")
        assert answer.says == "the body has 16385 bytes: give at most 16384"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, ID),
        ({"id": ""}, "the id is empty: give one like owner/name"),
        ({"id": "x" * 201}, "the id has 201 characters and 201 bytes: give at most 200 and 400"),
        ({"id": "octocat", "base": -1}, BASE),
        ({"id": "octocat", "base": MAX_BASE + 1}, BASE),
        ({"id": "octocat", "base": 1.5}, BASE),
        ({"id": "octocat", "base": 1e15 + 1}, BASE),
        ({"id": "octocat", "base": float("inf")}, BASE),
        ({"id": "octocat", "base": "1"}, BASE),
        ({"id": "octocat", "base": True}, BASE),
        ({"id": "octocat", "digest": 5}, DIGEST),
        ({"id": "octocat", "digest": "a" * 63}, DIGEST),
        ({"id": "octocat", "digest": "a" * 65}, DIGEST),
        ({"id": "octocat", "digest": "A" * 64}, DIGEST),
        ({"id": "octocat", "reset": True}, "no field 'reset': there are base, digest, id, proof"),
        ({"id": "octocat", "\ud800": 1}, "no field '\\ud800': there are base, digest, id, proof"),
    ],
)
def test_a_malformed_claim_is_refused_with_the_fix(
    api: Api, fields: dict[str, Any], says: str
) -> None:
    answer = api.post(json.dumps(fields))
    assert (answer.refusal, answer.says) == ((400, "bad_request"), says)
    assert api.owner_item() is None
    assert api.claim()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, f"give at least one of {CHANGES}"),
        ({"reset": False}, f"give at least one of {CHANGES}"),
        ({"base": 10**40}, BASE),
        ({"reset": 1}, "reset: give true or false"),
        ({"frozen": 0}, "frozen: give true or false"),
        ({"remove": {"from": "2026-11-20T08:00Z"}}, HOURS),
        ({"remove": {"from": "2026-11-21T08:00Z", "to": "now"}}, NO_HOUR),
        ({"remove": REMOVED, "base": 1}, "remove: give it alone, and the other changes before it"),
        ({"rename": None}, "rename: give an id, a text of 1 to 200 characters"),
        ({"rename": 5}, "rename: give an id, a text of 1 to 200 characters"),
        ({"id": "mona"}, f"no field 'id': there are {CHANGES}"),
        ({"milestones": None}, "milestones: give a list of at most 5, or []"),
        ({"milestones": [GOAL] * 6}, "milestones: give a list of at most 5, or []"),
        ({"milestones": [GOAL] * 2}, "milestones: give each count once"),
        ({"milestones": [GOAL | {"at": 1}]}, MILESTONE),
        ({"milestones": [{"count": 1000}]}, MILESTONE),
        ({"milestones": [GOAL | {"count": 0}]}, MILESTONE_COUNT),
        ({"milestones": [GOAL | {"count": MAX_BASE + 1}]}, MILESTONE_COUNT),
        ({"milestones": [GOAL]}, OFF),
    ],
)
def test_a_malformed_change_is_refused_with_the_fix_and_changes_nothing(
    api: Api, fields: dict[str, Any], says: str
) -> None:
    secret = api.claim(base=1)
    before = api.table.query("USER#octocat", limit=9)
    answer = api.patch(secret, **fields)
    assert (answer.refusal, answer.says) == ((400, "bad_request"), says)
    assert api.table.query("USER#octocat", limit=9) == before


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
@pytest.mark.parametrize("authorization", ["", "Bearer   ", "Basic {}", "{}"])
def test_without_a_secret_the_answer_is_401_and_says_how_to_give_it(
    api: Api, method: str, authorization: str
) -> None:
    secret = api.claim()
    answer = api.call(method, "octocat", b'{"base": 5}', authorization.format(secret))
    assert answer.refusal == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert "Authorization: Bearer" in answer.says
    assert api.owner_item() is not None
    assert api.look(peek="1") == "0"


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
@pytest.mark.parametrize("wrong", [lambda secret: secret[:-1], lambda _: "\ud800"])
def test_with_another_secret_the_answer_is_403(
    api: Api, method: str, wrong: Callable[[str], str]
) -> None:
    secret = api.claim()
    answer = api.call(method, "octocat", b'{"base": 5}', f"Bearer {wrong(secret)}")
    assert answer.refusal == (403, "wrong_secret")
    assert "WWW-Authenticate" not in answer.headers
    assert secret not in answer.text
    assert api.owner_item() is not None
    assert api.look(peek="1") == "0"


def test_a_client_that_claims_too_much_must_wait_and_a_malformed_claim_is_not_counted(
    api: Api,
) -> None:
    api.resources.limits = ClientLimits({Action.CLAIM: Rate(1, 90)}, lambda: NOON)

    def claim(body: object) -> Answer:
        return http_requests.ask(api.resources, "POST", BADGES, body, client="192.0.2.1")

    assert claim({"id": ""}).refusal == (400, "bad_request")
    assert claim({"id": "octocat"}).status == 201
    refused = claim({"id": "mona"})
    assert refused.refusal == (429, "too_many_requests")
    assert refused.headers["Retry-After"] == "90"
    assert (
        refused.says
        == "too many claims, renames and milestones from your address: try again in 90 s"
    )
    assert api.table.get(keys.owner("mona")) is None


def test_renames_are_limited_like_claims_and_other_changes_are_not(api: Api) -> None:
    secret = api.claim()
    api.resources.limits = ClientLimits({Action.CLAIM: Rate(1, 90)}, lambda: NOON)

    def patch(**fields: Any) -> Answer:
        path = BY_PATH.format("octocat")
        return http_requests.ask(
            api.resources,
            "PATCH",
            path,
            fields,
            authorization=f"Bearer {secret}",
            client="192.0.2.1",
        )

    assert patch(rename="mona").status == 200
    assert patch(rename="lisa").refusal == (429, "too_many_requests")
    assert patch(base=5).status == 200
    assert api.get(secret).body["names"] == ["mona", "octocat"]


def test_changes_are_limited_because_each_is_a_line_in_the_log(api: Api) -> None:
    badge = {"authorization": f"Bearer {api.claim()}", "client": "192.0.2.1"}
    api.resources.limits = ClientLimits({Action.CHANGE: Rate(1, 90)}, lambda: NOON)
    path = BY_PATH.format("octocat")
    assert http_requests.ask(api.resources, "PATCH", path, {"base": 7}, **badge).status == 200
    for method, body in (("PATCH", {"base": 8}), ("DELETE", b"")):
        refused = http_requests.ask(api.resources, method, path, body, **badge)
        assert refused.says == "too many changes from your address: try again in 90 s"
    assert http_requests.ask(api.resources, "GET", path, **badge).body["base"] == 7


def test_an_id_that_the_operator_does_not_count_is_not_claimed(api: Api) -> None:
    """Also not by a rename. The owner of a badge that was counted before can still delete it."""
    secret = api.claim()
    api.resources.settings = Settings(ids=("owner/*",))
    assert api.post('{"id": "mona"}').refusal == (403, "not_counted")
    assert api.patch(secret, rename="mona").refusal == (403, "not_counted")
    assert api.table.get(keys.owner("mona")) is None
    assert api.patch(secret, rename="owner/x").status == 200
    assert api.look("owner/x") == "0"
    assert api.delete(secret).status == 204


# proofs and hand-overs


def prove(api: Api, badge_id: str, **fields: Any) -> Answer:
    return api.post(json.dumps({"id": badge_id, **fields}))


def test_a_proof_goes_from_the_challenge_to_the_secret(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a badge with views, which nobody can claim."""
    caplog.set_level(logging.INFO)
    api.look("octocat/hello")
    api.deliver()
    asked = prove(api, "octocat/hello", proof=True)
    assert asked.status == 202
    assert asked.headers["Cache-Control"] == "no-store"
    key, challenge, url = (asked.body[name] for name in ("proof", "challenge", "url"))
    assert asked.body == {"id": "octocat/hello", "proof": key, "challenge": challenge, "url": url}
    assert url == "https://raw.githubusercontent.com/octocat/hello/HEAD/.vu-mi"
    assert api.host.asked == []
    missing = prove(api, "octocat/hello", proof=key)
    assert missing.refusal == (409, "not_proven")
    assert missing.details == {
        "challenge": challenge,
        "url": url,
        "found": "the file does not have this line",
    }
    soon = prove(api, "octocat/hello", proof=key)
    assert soon.refusal == (429, "too_many_requests")
    assert soon.headers["Retry-After"] == "10"
    api.host.lines = [challenge]
    api.resources.clock = lambda: NOON + 10
    found = prove(api, "octocat/hello", proof=key)
    assert (found.status, found.body.keys()) == (201, {"id", "secret"})
    secret = found.body["secret"]
    assert prove(api, "octocat/hello", proof=key).body == found.body
    shown = api.get(secret, "octocat/hello").body
    assert (shown["count"], shown["proven"], shown["granted"]) == (1, "octocat/hello", False)
    lines = [telemetry.JsonFormatter().format(record) for record in caplog.records]
    assert [line for line in lines if "claim_badge" in line]
    assert not [line for line in lines if key in line or secret in line]


def test_a_proof_with_a_digest_answers_no_secret(api: Api) -> None:
    asked = prove(api, "octocat/hello", proof=True).body
    api.host.lines = [asked["challenge"]]
    fields = {"proof": asked["proof"], "digest": tokens.digest("own")}
    assert prove(api, "octocat/hello", **fields).body == {"id": "octocat/hello"}
    assert api.get("own", "octocat/hello").status == 200


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"proof": False}, "proof: give true for a challenge, then the key"),
        ({"proof": "x" * 42}, "proof: give true for a challenge, then the key"),
        ({"proof": "x" * 44}, "proof: give true for a challenge, then the key"),
        ({"proof": True, "base": 5}, "base: leave it out of a proof"),
        ({"proof": True, "digest": "0" * 64}, "digest: give it in the second request"),
        ({"proof": "x" * 43, "digest": "0"}, "digest: give the SHA-256 digest"),
    ],
)
def test_a_malformed_proof_is_refused_with_the_fix(
    api: Api, fields: dict[str, Any], says: str
) -> None:
    answer = prove(api, "octocat/hello", **fields)
    assert answer.refusal == (400, "bad_request")
    assert answer.says.startswith(says)
    assert api.host.asked == []


def test_an_id_without_a_place_can_not_be_proven(api: Api) -> None:
    for fields in ({"proof": True}, {"proof": "x" * 43}):
        assert prove(api, "octocat", **fields).refusal == (400, "not_provable")
    api.resources.settings = Settings(proofs="off")
    assert prove(api, "octocat/hello", proof=True).refusal == (400, "not_provable")
    api.resources.settings = Settings(ids=("a/*",))
    assert prove(api, "octocat/hello", proof=True).refusal == (403, "not_counted")
    assert api.host.asked == []


def test_a_client_that_proves_too_much_must_wait(api: Api) -> None:
    api.resources.limits = ClientLimits({Action.PROOF: Rate(2, 60)}, lambda: NOON)

    def ask(proof: str, client: str = "192.0.2.1") -> Answer:
        body = {"id": "octocat/hello", "proof": proof or True}
        return http_requests.ask(api.resources, "POST", BADGES, body, client=client)

    assert (ask("").status, ask("x" * 43).status) == (202, 409)
    refused = ask("x" * 43)
    assert refused.says == "too many proofs from your address: try again in 30 s"
    assert ask("").refusal == (429, "too_many_requests")
    assert ask("", "192.0.2.2").status == 202
    assert len(api.host.asked) == 1


def test_an_owner_hands_a_badge_over_and_may_ask_again(api: Api) -> None:
    secret = api.claim(base=7)
    api.patch(secret, rename="mona")
    for name in ("octocat", "mona"):
        answer = api.patch(secret, name, digest=tokens.digest("theirs"))
        assert (answer.status, answer.body) == (200, {"id": "mona"})
    assert api.get(secret).refusal == (403, "wrong_secret")
    assert api.get("theirs").body["base"] == 7
    assert api.patch(secret, digest=tokens.digest("mine")).refusal == (403, "wrong_secret")
    assert api.patch("theirs", digest=tokens.digest("theirs")).status == 200


# what fails


def unreadable(table: Table, failure: StorageError) -> FaultyTable:
    """Return a table that answers no read."""

    def fail(_: str) -> None:
        raise failure

    return FaultyTable(table, before_read=fail)


def test_no_log_line_has_a_secret_or_a_digest(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    """Neither of what is done, nor of what is refused, nor of what fails."""
    caplog.set_level(logging.DEBUG)
    whole = api.table
    secret = api.claim()
    api.patch(secret, base=5, reset=True, frozen=False, rename="mona")
    assert api.get(secret).status == 200
    api.patch(secret, base="wrong")
    api.patch(secret + "x", base=5)
    api.patch(secret, rename="octocat", base=1)
    for failure in (UnavailableError("throttled"), StorageRefusedError("no right")):
        api.table = FaultyTable(whole, before_write=raising(*[failure] * 3))
        assert api.patch(secret, base=5).status == api.delete(secret).status == 503
        api.table = unreadable(whole, failure)
        assert api.patch(secret, base=5).status == 503
        api.table = whole
    assert api.delete(secret).status == 204
    assert api.patch(secret, base=5).status == api.get(secret).status == 404
    lines = [telemetry.JsonFormatter().format(record) for record in caplog.records]
    assert sum("request_failed" in line for line in lines) == 2 * 3
    for told in (secret, tokens.digest(secret)):
        assert not [line for line in lines if told in line]
