"""The owner's routes as API Gateway calls them: statuses, bodies, and what no log line holds."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app import app
from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.badges.options import MAX_BASE
from chalicelib.http import tokens
from chalicelib.storage.ports import Item, Refused, StorageError, Table, Unavailable
from chalicelib.views import keys
from chalicelib.views.consumers import store_views
from simulation import aws_events as events
from simulation.clocks import NOON
from simulation.queues import FakeViewQueue
from simulation.resources import GivenResources
from simulation.tables import FaultyTable, raising, sqlite_table
from simulation.views import put_summary

BADGES = "/api/v1/badges"
JSON = {"Content-Type": "application/json"}


@dataclass
class Use(GivenResources):
    """The resources of the routes, at a time that a test sets."""

    views_queue: FakeViewQueue = field(default_factory=FakeViewQueue)
    now: float = NOON

    def __post_init__(self) -> None:
        self.clock = lambda: self.now


@dataclass(frozen=True)
class Answer:
    """What the caller gets."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def code(self) -> str:
        """The code of an error, whose message is not empty."""
        error = self.body["error"]
        assert set(self.body) == {"error"}
        assert set(error) == {"code", "message"}
        assert error["message"]
        return str(error["code"])

    @property
    def says(self) -> str:
        return str(self.body["error"]["message"])


@pytest.fixture
def use(tmp_path: Path) -> Iterator[Use]:
    with sqlite_table(tmp_path) as table:
        used = Use(table=table)
        resources.use(used)
        yield used
        resources.use(None)


def call(event: dict[str, Any]) -> Answer:
    """Call the app in a context of its own: it names its function for every log line to come."""
    answer = copy_context().run(app, event, None)
    headers = {**answer["headers"], **{k: v[0] for k, v in answer["multiValueHeaders"].items()}}
    return Answer(answer["statusCode"], headers, answer["body"])


def event(
    method: str,
    badge_id: str | None,
    body: str | None,
    headers: Mapping[str, str],
    *,
    in_base64: bool = False,
) -> dict[str, Any]:
    path = BADGES if badge_id is None else f"{BADGES}/{{badge_id}}"
    made = events.http_event(method=method, path=path)
    encoded = body is not None and in_base64
    return {
        **made,
        "pathParameters": None if badge_id is None else {"badge_id": quote(badge_id, safe="")},
        "headers": {**made["headers"], **headers},
        "multiValueHeaders": {
            **made["multiValueHeaders"],
            **{name: [value] for name, value in headers.items()},
        },
        "body": base64.b64encode((body or "").encode()).decode() if encoded else body,
        "isBase64Encoded": encoded,
    }


def post(body: str | None, headers: Mapping[str, str] = JSON) -> Answer:
    return call(event("POST", None, body, headers))


def claim(badge_id: str = "octocat", **fields: Any) -> str:
    answer = post(json.dumps({"id": badge_id, **fields}))
    assert answer.status == 201
    secret: str = answer.body["secret"]
    return secret


def bearer(secret: str) -> dict[str, str]:
    return {**JSON, "Authorization": f"Bearer {secret}"}


def patch(secret: str, badge_id: str = "octocat", **fields: Any) -> Answer:
    return call(event("PATCH", badge_id, json.dumps(fields), bearer(secret)))


def delete(secret: str, badge_id: str = "octocat") -> Answer:
    return call(event("DELETE", badge_id, None, bearer(secret)))


def look(badge_id: str = "octocat", method: str = "GET", **query: str) -> str:
    parameters = {"id": [badge_id], **{name: [value] for name, value in query.items()}}
    return str(call(events.http_event(parameters, method=method)).body["message"])


def deliver(use: Use) -> None:
    """Every view in the queue arrives."""
    assert store_views(use.views_queue.views, use) == set()
    use.views_queue.views.clear()


def owner_item(use: Use, badge_id: str = "octocat") -> Item | None:
    return use.table.get(keys.owner(badge_id))


# what is done


@pytest.mark.usefixtures("use")
def test_a_claim_answers_201_with_the_id_and_the_secret() -> None:
    answer = post('{"id": "owner/name", "base": 1200}')
    assert answer.status == 201
    assert set(answer.body) == {"id", "secret"}
    assert answer.body["id"] == "owner/name"
    assert len(answer.body["secret"]) == 32
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert look("owner/name", peek="1") == "1200"


def test_a_claim_with_a_digest_answers_the_id_alone_and_alike_again(use: Use) -> None:
    """So an owner whose answer is lost asks again, with a secret that nobody else knows."""
    secret = "of the owner's own"  # noqa: S105  opens nothing but what is made here
    body = json.dumps({"id": "octocat", "base": 7, "digest": tokens.digest(secret)})
    table = use.table
    use.table = FaultyTable(table, after_write=raising(Unavailable("no answer")))
    assert (post(body).status, post(body).status) == (503, 201)
    answer = post(body)
    assert (answer.status, answer.body) == (201, {"id": "octocat"})
    assert secret not in json.dumps(table.query("USER#octocat", limit=9))
    assert patch(secret, base=8).status == 200
    other = post(json.dumps({"id": "octocat", "digest": tokens.digest("another")}))
    assert (other.status, other.code) == (409, "taken")
    assert look(peek="1") == "8"


@pytest.mark.parametrize("done", [200, 204])
def test_a_request_whose_answer_is_lost_has_the_answer_it_would_have_had(
    use: Use, done: int
) -> None:
    secret, table = claim(), use.table
    use.table = FaultyTable(table, after_write=raising(Unavailable("no answer")))
    answers = [patch(secret, rename="mona") if done == 200 else delete(secret) for _ in range(3)]
    assert [answer.status for answer in answers] == [503, done, done]


@pytest.mark.usefixtures("use")
@pytest.mark.parametrize("written", ["1200", "1200.0", "1.2e3"])
def test_a_base_is_a_whole_number_however_it_is_written(written: str) -> None:
    assert post(f'{{"id": "octocat", "base": {written}}}').status == 201
    assert look(peek="1") == "1200"


@pytest.mark.usefixtures("use")
def test_an_id_is_claimed_as_it_is_stored() -> None:
    answer = post(json.dumps({"id": "U\u0308ber"}))
    assert answer.body["id"] == "\u00dcber"
    assert patch(answer.body["secret"], "U\u0308ber", base=5).status == 200
    assert look("\u00dcber", peek="1") == "5"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "application/json; charset=utf-8"},
        {"content-type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "no type at all"},
        {"Content-Type": ""},
    ],
)
@pytest.mark.usefixtures("use")
def test_a_body_is_json_whatever_its_type_says(headers: dict[str, str]) -> None:
    answer = post('{"id": "octocat"}', headers)
    assert answer.status == 201
    authorised = {**headers, "Authorization": f"Bearer {answer.body['secret']}"}
    assert call(event("PATCH", "octocat", '{"base": 5}', authorised)).status == 200
    assert call(event("DELETE", "octocat", None, authorised)).status == 204


@pytest.mark.usefixtures("use")
def test_a_body_may_come_in_base64() -> None:
    made = event("POST", None, '{"id": "日本語"}', {}, in_base64=True)
    assert call(made).body["id"] == "日本語"


def test_a_badge_is_changed_and_the_answer_says_its_name(use: Use) -> None:
    secret = claim()
    assert [look() for _ in range(3)] == ["0", "0", "0"]
    deliver(use)
    for fields, name, says in (
        ({"base": 1_000}, "octocat", "1003"),
        ({"frozen": True}, "octocat", "1003"),
        ({"rename": "mona"}, "mona", "1003"),
        ({"reset": False, "base": 7}, "mona", "10"),
        ({"reset": True}, "mona", "0"),
        ({"reset": True, "base": MAX_BASE}, "mona", str(10**15)),
    ):
        answer = patch(secret, **fields)
        assert (answer.status, answer.body) == (200, {"id": name})
        assert answer.headers["Cache-Control"] == "no-store"
        assert look(peek="1") == says


def test_a_frozen_badge_counts_nothing_until_it_thaws(use: Use) -> None:
    secret = claim()
    look()
    deliver(use)
    assert patch(secret, frozen=True).status == 200
    assert [look() for _ in range(5)] == ["1"] * 5
    assert use.views_queue.views == []
    assert patch(secret, frozen=False).status == 200
    look()
    deliver(use)
    assert look(peek="1") == "2"


def test_views_count_by_every_name_and_from_0_after_a_reset(use: Use) -> None:
    secret = claim("old")
    patch(secret, "old", rename="new")
    for name in ("old", "new", "new"):
        look(name)
    deliver(use)
    assert [look(name, peek="1") for name in ("old", "new")] == ["3", "3"]
    look("new")
    assert patch(secret, "new", reset=True).status == 200
    deliver(use)  # the view of before the reset
    assert [look(name, peek="1") for name in ("old", "new")] == ["0", "0"]
    assert look("new") == "0"
    deliver(use)
    assert [look(name, peek="1") for name in ("old", "new")] == ["1", "1"]


def test_a_deletion_answers_204_and_again_until_somebody_else_has_the_badge(use: Use) -> None:
    secret = claim(base=7)
    look()
    deliver(use)
    answer = delete(secret)
    assert (answer.status, answer.text) == (204, "")
    assert answer.headers["Cache-Control"] == "no-store"
    assert look(peek="1") == "0"
    assert owner_item(use) is None
    late = patch(secret, base=1)
    assert (late.status, late.code) == (404, "not_claimed")
    assert delete(secret).status == 204
    assert claim() != secret
    late = delete(secret)
    assert (late.status, late.code) == (403, "wrong_secret")


@pytest.mark.parametrize(
    "badge_id", ["owner/name", "a b", "100%", "a%2Fb", "日本語", "?&=#+", "x" * 200]
)
@pytest.mark.usefixtures("use")
def test_a_path_holds_any_id(badge_id: str) -> None:
    secret = claim(badge_id)
    assert patch(secret, badge_id, base=5).body == {"id": badge_id}
    assert look(badge_id, peek="1") == "5"
    assert delete(secret, badge_id).status == 204


@pytest.mark.usefixtures("use")
def test_how_the_header_writes_bearer_is_all_one() -> None:
    secret = claim()
    for header, value in (
        ("authorization", f"bearer {secret}"),
        ("AUTHORIZATION", f"BEARER   {secret} "),
    ):
        assert call(event("PATCH", "octocat", '{"base": 1}', {header: value})).status == 200


# what is refused

NO_OBJECT = [
    None,
    "",
    " ",
    "{",
    "nonsense",
    "null",
    "[]",
    '"id"',
    "5",
    "NaN",
    "[" * 100_000,
    "\ud800",
]
OBJECT = "the body must be a JSON object"
ID = "id: give an id, a text of 1 to 200 characters"
DIGEST = "digest: give the SHA-256 digest of a secret of yours, 64 hex digits in lower case"
BASE = f"base: give a whole number from 0 to {MAX_BASE}"


@pytest.mark.parametrize("body", NO_OBJECT, ids=lambda body: repr(body)[:20])
def test_a_body_that_is_no_object_is_refused(use: Use, body: str | None) -> None:
    answer = post(body)
    assert (answer.status, answer.code, answer.says) == (400, "bad_request", OBJECT)
    secret = claim()
    before = owner_item(use)
    answer = call(event("PATCH", "octocat", body, bearer(secret)))
    assert (answer.status, answer.code, answer.says) == (400, "bad_request", OBJECT)
    assert owner_item(use) == before


@pytest.mark.usefixtures("use")
def test_what_is_not_base64_is_no_object() -> None:
    made = {**event("POST", None, "%%%", {}), "isBase64Encoded": True}
    assert call(made).says == OBJECT


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, ID),
        ({"id": None}, ID),
        ({"id": 5}, ID),
        ({"id": ["octocat"]}, ID),
        ({"id": True}, ID),
        ({"id": ""}, "the id is empty: give one like owner/name"),
        ({"id": "x" * 201}, "the id has 201 characters: give at most 200"),
        ({"id": "a\nb"}, "the id has a control character: leave it out"),
        ({"id": "\ud800"}, "the id has half a surrogate pair: leave it out"),
        ({"id": "octocat", "base": -1}, BASE),
        ({"id": "octocat", "base": MAX_BASE + 1}, BASE),
        ({"id": "octocat", "base": 1.5}, BASE),
        ({"id": "octocat", "base": 1e15 + 1}, BASE),
        ({"id": "octocat", "base": float("nan")}, BASE),
        ({"id": "octocat", "base": float("inf")}, BASE),
        ({"id": "octocat", "base": "1"}, BASE),
        ({"id": "octocat", "base": True}, BASE),
        ({"id": "octocat", "base": None}, BASE),
        ({"id": "octocat", "digest": ""}, DIGEST),
        ({"id": "octocat", "digest": None}, DIGEST),
        ({"id": "octocat", "digest": 5}, DIGEST),
        ({"id": "octocat", "digest": "a" * 63}, DIGEST),
        ({"id": "octocat", "digest": "a" * 65}, DIGEST),
        ({"id": "octocat", "digest": "A" * 64}, DIGEST),
        ({"id": "octocat", "digest": "g" * 64}, DIGEST),
        ({"id": "octocat", "digest": "\u0661" * 64}, DIGEST),
        ({"id": "octocat", "reset": True}, "no field 'reset': there are base, digest, id"),
        ({"id": "octocat", "\ud800": 1}, "no field '\\ud800': there are base, digest, id"),
    ],
)
def test_a_claim_says_what_is_wrong_with_it(use: Use, fields: dict[str, Any], says: str) -> None:
    answer = post(json.dumps(fields))
    assert (answer.status, answer.code, answer.says) == (400, "bad_request", says)
    assert owner_item(use) is None
    assert claim()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "give at least one of base, frozen, rename, reset"),
        ({"reset": False}, "give at least one of base, frozen, rename, reset"),
        ({"base": True}, BASE),
        ({"base": False}, BASE),
        ({"base": None}, BASE),
        ({"base": "5"}, BASE),
        ({"base": 5.5}, BASE),
        ({"base": -5}, BASE),
        ({"base": 10**40}, BASE),
        ({"reset": 1}, "reset: give true or false"),
        ({"reset": None}, "reset: give true or false"),
        ({"reset": "true"}, "reset: give true or false"),
        ({"frozen": 0}, "frozen: give true or false"),
        ({"frozen": None}, "frozen: give true or false"),
        ({"frozen": []}, "frozen: give true or false"),
        ({"rename": None}, "rename: give an id, a text of 1 to 200 characters"),
        ({"rename": 5}, "rename: give an id, a text of 1 to 200 characters"),
        ({"rename": "x" * 201}, "the id has 201 characters: give at most 200"),
        ({"rename": "a\x00"}, "the id has a control character: leave it out"),
        ({"id": "mona"}, "no field 'id': there are base, frozen, rename, reset"),
        ({"base": 5, "reset": "yes"}, "reset: give true or false"),
    ],
)
def test_a_change_says_what_is_wrong_with_it_and_changes_nothing(
    use: Use, fields: dict[str, Any], says: str
) -> None:
    secret = claim(base=1)
    before = use.table.query("USER#octocat", limit=9)
    answer = patch(secret, **fields)
    assert (answer.status, answer.code, answer.says) == (400, "bad_request", says)
    assert use.table.query("USER#octocat", limit=9) == before


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
@pytest.mark.parametrize("badge_id", ["x" * 201, "a\nb"])
@pytest.mark.usefixtures("use")
def test_an_id_in_the_path_that_is_none_is_refused(method: str, badge_id: str) -> None:
    answer = call(event(method, badge_id, "{}", bearer("any")))
    assert (answer.status, answer.code) == (400, "bad_request")


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer ", "Bearer   ", "Basic {}", "{}", "Token {}"]
)
def test_without_a_secret_the_answer_is_401_and_says_how_to_give_it(
    use: Use, method: str, authorization: str | None
) -> None:
    secret = claim()
    headers = {} if authorization is None else {"Authorization": authorization.format(secret)}
    answer = call(event(method, "octocat", '{"base": 5}', headers))
    assert (answer.status, answer.code) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert "Authorization: Bearer" in answer.says
    assert owner_item(use) is not None
    assert look(peek="1") == "0"


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
@pytest.mark.parametrize(
    "wrong", [lambda secret: secret[:-1], tokens.digest, lambda _: "ü", lambda _: "\ud800"]
)
def test_with_another_secret_the_answer_is_403(
    use: Use, method: str, wrong: Callable[[str], str]
) -> None:
    secret = claim()
    answer = call(event(method, "octocat", '{"base": 5}', bearer(wrong(secret))))
    assert (answer.status, answer.code) == (403, "wrong_secret")
    assert "WWW-Authenticate" not in answer.headers
    assert secret not in answer.text
    assert owner_item(use) is not None
    assert look(peek="1") == "0"


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
@pytest.mark.usefixtures("use")
def test_a_badge_that_nobody_claimed_is_404(method: str) -> None:
    answer = call(event(method, "octocat", '{"base": 5}', bearer("any")))
    assert (answer.status, answer.code) == (404, "not_claimed")
    assert "POST /api/v1/badges" in answer.says


def test_what_is_taken_is_409(use: Use) -> None:
    """By an owner, by views, by a base, and as another badge's name."""
    secret = claim()
    look("viewed")
    deliver(use)
    put_summary(use.table, "imported", base=5)
    patch(claim("other"), "other", rename="alias")
    for name in ("octocat", "viewed", "imported", "alias"):
        answer = post(json.dumps({"id": name}))
        assert (answer.status, answer.code) == (409, "taken")
    for name in ("viewed", "imported", "other", "alias"):
        answer = patch(secret, rename=name, base=9)
        assert (answer.status, answer.code) == (409, "taken")
    assert look(peek="1") == "0"


# what fails


def unreadable(table: Table, failure: StorageError) -> FaultyTable:
    """Return a table that answers no read."""

    def fail(_: str) -> None:
        raise failure

    return FaultyTable(table, before_read=fail)


@pytest.mark.parametrize("failure", [Unavailable("throttled"), Refused("no right")])
@pytest.mark.parametrize("is_readable", [False, True])
def test_while_the_table_is_down_the_answer_is_503_and_nothing_is_done(
    use: Use, failure: StorageError, *, is_readable: bool
) -> None:
    secret = claim()
    whole = use.table
    before = whole.query("USER#octocat", limit=9)
    broken = FaultyTable(whole, before_write=raising(*[failure] * 3))
    use.table = broken if is_readable else unreadable(whole, failure)
    for answer in (post('{"id": "new"}'), patch(secret, base=5), delete(secret)):
        assert (answer.status, answer.code) == (503, "unavailable")
        assert answer.headers["Retry-After"] == "1"
    use.table = whole
    assert whole.query("USER#octocat", limit=9) == before
    assert patch(secret, base=5).status == 200
    assert claim("new")


def test_an_error_of_ours_is_500_in_the_form_of_every_other(use: Use) -> None:
    secret = claim()
    use.table = FaultyTable(use.table, before_write=raising(RuntimeError("a bug")))
    answer = patch(secret, base=5)
    assert (answer.status, answer.code) == (500, "internal")
    assert "a bug" not in answer.text


def test_no_line_holds_a_secret_or_a_digest(use: Use, caplog: pytest.LogCaptureFixture) -> None:
    """Neither of what is done, nor of what is refused, nor of what fails."""
    caplog.set_level(logging.DEBUG)
    whole = use.table
    secret = claim()
    patch(secret, base=5, reset=True, frozen=False, rename="mona")
    patch(secret, base="wrong")
    patch(secret + "x", base=5)
    patch(secret, rename="octocat", base=1)
    for failure in (Unavailable("throttled"), Refused("no right")):
        use.table = FaultyTable(whole, before_write=raising(*[failure] * 3))
        assert patch(secret, base=5).status == delete(secret).status == 503
        use.table = unreadable(whole, failure)
        assert patch(secret, base=5).status == 503
        use.table = whole
    assert delete(secret).status == 204
    assert patch(secret, base=5).status == 404
    lines = [telemetry.JsonFormatter().format(record) for record in caplog.records]
    assert sum("an owner's request failed" in line for line in lines) == 2 * 3
    for told in (secret, tokens.digest(secret)):
        assert not [line for line in lines if told in line]


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(), parts, max_size=3),
    max_leaves=5,
)
FIELDS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("id", "base", "digest", "reset", "frozen", "rename"), ANY_JSON)
)


@settings(max_examples=150)
@given(FIELDS | ANY_JSON)
def test_any_json_is_done_or_refused_and_never_an_error_of_ours(body: Any) -> None:
    with sqlite_table() as table:
        resources.use(Use(table=table))
        secret = claim()
        answers = post(json.dumps(body)), patch_with(json.dumps(body), secret)
        resources.use(None)
    for answer in answers:
        assert answer.status in {200, 201} or (answer.status, answer.code) in {
            (400, "bad_request"),
            (409, "taken"),
        }


def patch_with(body: str, secret: str) -> Answer:
    return call(event("PATCH", "octocat", body, bearer(secret)))
