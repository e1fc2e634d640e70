"""Routes of owners: statuses, bodies, and secrets that no log line has."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from chalicelib import telemetry
from chalicelib.badges.options import MAX_BASE
from chalicelib.http import tokens
from chalicelib.storage.errors import UnavailableError
from simulation.resources import Places
from simulation.storage import raising, store_token
from simulation.views import put_summary, store
from tests.unit.http_requests import Answer, Api
from vumi.server.clients import Rate

BADGES = "/api/v1/badges"
BY_PATH, BY_QUERY = f"{BADGES}/{{}}", f"{BADGES}?id={{}}"
CLIENT = "192.0.2.1"
USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
OFF = "milestones: nothing is sent in this deployment, because events are switched off: EVENTS=off"
GOAL = {"count": 1000, "url": "https://example.com/"}


def post(api: Api, badge_id: str, **fields: Any) -> Answer:
    return api.ask("POST", BADGES, {"id": badge_id, **fields}, client=CLIENT)


def claim(api: Api, badge_id: str = "octocat", **fields: Any) -> str:
    answer = post(api, badge_id, **fields)
    assert answer.status == 201
    secret: str = answer.body["secret"]
    return secret


def get(api: Api, token: str, badge_id: str = "octocat") -> Answer:
    return api.ask("GET", BY_PATH.format(quote(badge_id, safe="")), token=token)


def patch(api: Api, token: str, badge_id: str = "octocat", **fields: Any) -> Answer:
    return api.ask("PATCH", BY_PATH.format(badge_id), fields, token, client=CLIENT)


def delete(api: Api, token: str) -> Answer:
    return api.ask("DELETE", BY_PATH.format("octocat"), token=token, client=CLIENT)


def look(api: Api, badge_id: str = "octocat") -> str:
    return str(api.ask("GET", f"/api/v1/views?id={badge_id}&peek=1").body["message"])


def view(api: Api, badge_id: str = "octocat", times: int = 1) -> None:
    for _ in range(times):
        api.ask("GET", f"/api/v1/views?id={badge_id}")
    assert store(api.table, *api.views) == {}
    api.queue.bodies.clear()


# ---- what is done


def test_a_claim_answers_201_with_the_id_and_the_secret(api: Api) -> None:
    answer = post(api, "owner/name", base=1200)
    assert answer.status == 201
    assert answer.body == {"id": "owner/name", "secret": answer.body["secret"]}
    assert len(answer.body["secret"]) == 32
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert look(api, "owner/name") == "1200"


def test_a_badge_is_changed_and_the_answer_says_its_name(api: Api) -> None:
    secret = claim(api)
    view(api, times=3)
    for fields, name, says in (
        ({"base": 1_000}, "octocat", "1003"),
        ({"frozen": True}, "octocat", "1003"),
        ({"rename": "mona"}, "mona", "1003"),
        ({"reset": False, "base": 7}, "mona", "10"),
        ({"reset": True}, "mona", "0"),
        ({"reset": True, "base": MAX_BASE}, "mona", str(10**15)),
    ):
        answer = patch(api, secret, **fields)
        assert (answer.status, answer.body) == (200, {"id": name})
        assert answer.headers["Cache-Control"] == "no-store"
        assert look(api) == says


def test_a_deletion_answers_204_and_again_until_somebody_else_has_the_badge(api: Api) -> None:
    secret = claim(api, base=7)
    view(api)
    answer = delete(api, secret)
    assert (answer.status, answer.text) == (204, "")
    assert answer.headers["Cache-Control"] == "no-store"
    assert look(api) == "0"
    for late in (patch(api, secret, base=1), get(api, secret)):
        assert (late.refusal, late.says) == ((404, "not_claimed"), "octocat was deleted")
    assert delete(api, secret).status == 204
    assert claim(api) != secret
    assert delete(api, secret).refusal == (403, "wrong_secret")


@pytest.mark.parametrize("badge_id", ["owner/name", "a%2Fb", "日本語", "?&=#+"])
@pytest.mark.parametrize("form", [BY_PATH, BY_QUERY])
def test_a_path_and_a_query_may_have_any_id(api: Api, badge_id: str, form: str) -> None:
    secret, target = claim(api, badge_id), form.format(quote(badge_id, safe=""))
    assert api.ask("PATCH", target, {"base": 5}, secret).body == {"id": badge_id}
    shown = api.ask("GET", target, token=secret).body
    assert (shown["id"], shown["base"]) == (badge_id, 5)
    assert api.ask("DELETE", target, token=secret).status == 204


def test_an_owner_sees_what_is_set_and_no_view_is_counted(api: Api) -> None:
    secret = claim(api, base=7)
    view(api)
    patch(api, secret, rename="mona", frozen=True)
    for name in ("octocat", "mona"):
        answer = get(api, secret, name)
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
    patch(api, secret, rename="octocat", frozen=False, base=0)
    shown = get(api, secret).body
    assert (shown["id"], shown["names"]) == ("octocat", ["mona", "octocat"])
    assert (shown["base"], shown["count"], shown["frozen"]) == (0, 1, False)
    patch(api, secret, reset=True)
    assert get(api, secret).body["reset"] == "2026-03-14T12:00:05.000Z"
    assert api.views == []


def test_an_operator_sees_every_badge_and_changes_none(api: Api) -> None:
    operators, bootstrap, users = (tokens.new_token() for _ in range(3))
    store_token(api.table, operators)
    store_token(api.table, users, USER)
    api.set(api_token_digests=frozenset({tokens.digest(bootstrap)}))
    claim(api, base=7)
    for token in (operators, bootstrap):
        assert get(api, token).body["base"] == 7
        assert get(api, token, "nobody's").refusal == (404, "not_claimed")
        assert patch(api, token, base=8).refusal == (403, "wrong_secret")
        assert delete(api, token).refusal == (403, "wrong_secret")
    assert get(api, users).refusal == (403, "wrong_secret")


def test_the_owner_and_an_operator_remove_views_of_hours(api: Api) -> None:
    secret, operators = claim(api), tokens.new_token()
    store_token(api.table, operators)
    put_summary(api.table, count=5, version=1, today={"day": "2026-03-13", "h08": 3, "h10": 2})
    hours = {"from": "2026-03-13T08:00Z", "to": "2026-03-13T10:00Z"}
    rest = {"from": "2026-03-13T10:00Z", "to": "2026-03-13T11:00Z"}
    assert patch(api, secret, remove=hours).body == {"id": "octocat", "removed": 3}
    assert patch(api, operators, remove=rest).body == {"id": "octocat", "removed": 2}
    assert patch(api, "nobody's", remove=rest).refusal == (403, "wrong_secret")


def test_an_owner_hands_a_badge_over_by_any_of_its_names(api: Api) -> None:
    secret = claim(api, base=7)
    patch(api, secret, rename="mona")
    answer = patch(api, secret, "octocat", digest=tokens.digest("theirs"))
    assert (answer.status, answer.body) == (200, {"id": "mona"})
    assert get(api, secret).refusal == (403, "wrong_secret")
    assert get(api, "theirs").body["base"] == 7


# ---- proofs


def test_a_proof_goes_from_the_challenge_to_the_secret(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a badge with views, which nobody can claim."""
    caplog.set_level(logging.INFO)
    name = "octocat/hello"
    view(api, name)
    asked = post(api, name, proof=True)
    assert asked.status == 202
    assert asked.headers["Cache-Control"] == "no-store"
    key, challenge, url = (asked.body[name] for name in ("proof", "challenge", "url"))
    assert asked.body == {"id": name, "proof": key, "challenge": challenge, "url": url}
    assert url == "https://raw.githubusercontent.com/octocat/hello/HEAD/.vu-mi"
    assert api.host.asked == []
    missing = post(api, name, proof=key)
    assert missing.refusal == (409, "not_proven")
    found = "the file does not have this line"
    assert missing.details == {"challenge": challenge, "url": url, "found": found}
    soon = post(api, name, proof=key)
    assert soon.refusal == (429, "too_many_requests")
    assert soon.headers["Retry-After"] == "10"
    api.host.lines = [challenge]
    api.clock.now += 10
    proven = post(api, name, proof=key)
    assert (proven.status, proven.body.keys()) == (201, {"id", "secret"})
    secret = proven.body["secret"]
    assert post(api, name, proof=key).body == proven.body
    shown = get(api, secret, name).body
    assert (shown["count"], shown["proven"], shown["granted"]) == (1, name, False)
    lines = [telemetry.JsonFormatter().format(record) for record in caplog.records]
    assert [line for line in lines if "claim_badge" in line]
    assert not [line for line in lines if key in line or secret in line]


def test_a_proof_with_a_digest_answers_no_secret(api: Api) -> None:
    asked = post(api, "octocat/hello", proof=True).body
    api.host.lines = [asked["challenge"]]
    fields = {"proof": asked["proof"], "digest": tokens.digest("own")}
    assert post(api, "octocat/hello", **fields).body == {"id": "octocat/hello"}
    assert get(api, "own", "octocat/hello").status == 200


def test_an_id_without_a_place_can_not_be_proven(api: Api) -> None:
    for proof in (True, "x" * 43):
        assert post(api, "octocat", proof=proof).refusal == (400, "not_provable")
    api.set(proofs="off")
    assert post(api, "octocat/hello", proof=True).refusal == (400, "not_provable")
    assert api.host.asked == []


# ---- what is refused


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (f"{BADGES}?id=", "the id is empty: give one like owner/name"),
        (f"{BADGES}?id=octocat&id=octocat", "id: give one, not 2"),
        (f"{BADGES}/octocat?id=octocat", "unknown option 'id': leave it out"),
        (BADGES, "give an id: ?id=owner/name"),
    ],
)
def test_a_request_has_one_id(api: Api, target: str, says: str) -> None:
    """Without one, GET lists the badges of a secret."""
    secret = claim(api)
    for method in ("PATCH", "DELETE", *(["GET"] if target != BADGES else [])):
        answer = api.ask(method, target, {"base": 5}, secret)
        assert (answer.refusal, answer.says) == ((400, "bad_request"), says)
    assert look(api) == "0"


def test_what_is_refused_stores_nothing(api: Api) -> None:
    assert post(api, "octocat", base=-1).refusal == (400, "bad_request")
    assert api.items == {}
    secret = claim(api, base=1)
    before = api.items
    assert patch(api, secret, base=5, frozen=1).refusal == (400, "bad_request")
    assert patch(api, secret, base=5, milestones=[GOAL]).says == OFF
    assert api.items == before


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        ("", 401),
        ("Bearer   ", 401),
        ("Basic {}", 401),
        ("{}", 401),
        ("Bearer {}x", 403),
        ("Bearer \ud800", 403),
        ("bearer {}", 200),
        ("BEARER   {} ", 200),
    ],
)
def test_only_the_secret_after_bearer_opens_the_badge(
    api: Api, method: str, authorization: str, status: int
) -> None:
    secret = claim(api)
    before, body = api.items, json.dumps({"base": 5}).encode()
    header = {"authorization": authorization.format(secret)}
    answer = api.ask(method, BY_PATH.format("octocat"), body, **header)
    assert answer.status == (204 if (method, status) == ("DELETE", 200) else status)
    if status == 401:
        assert answer.refusal == (401, "unauthorized")
        assert "Authorization: Bearer" in answer.says
    if status == 403:
        assert answer.refusal == (403, "wrong_secret")
        assert secret not in answer.text
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    assert (api.items == before) == (status != 200 or method == "GET")


def claim_two(api: Api, _: str) -> list[Answer]:
    assert post(api, "").refusal == (400, "bad_request"), "is not counted"
    return [post(api, one) for one in ("hubot", "lisa")]


def rename_twice(api: Api, secret: str) -> list[Answer]:
    answers = [patch(api, secret, rename=one) for one in ("mona", "lisa")]
    assert patch(api, secret, base=5).status == 200, "is not limited so"
    return answers


def change_twice(api: Api, secret: str) -> list[Answer]:
    return [patch(api, secret, base=7), delete(api, secret)]


def prove_twice(api: Api, _: str) -> list[Answer]:
    answers = [post(api, "octocat/hello", proof=one) for one in (True, "x" * 43)]
    assert api.host.asked == []
    return answers


@pytest.mark.parametrize(
    ("action", "act", "said"),
    [
        ("CLAIM", claim_two, "claims, renames and milestones"),
        ("CLAIM", rename_twice, "claims, renames and milestones"),
        ("CHANGE", change_twice, "changes"),
        ("PROOF", prove_twice, "proofs"),
    ],
)
def test_a_client_that_does_too_much_must_wait(
    api: Api, action: str, act: Callable[[Api, str], list[Answer]], said: str
) -> None:
    secret = claim(api)
    api.limit(**{action: Rate(1, 90)})
    done, refused = act(api, secret)
    assert done.status < 300
    assert refused.refusal == (429, "too_many_requests")
    assert refused.headers["Retry-After"] == "90"
    assert refused.says == f"too many {said} from your address: try again in 90 s"
    assert get(api, secret).body["names"][-1] == "octocat"
    assert get(api, secret, "lisa").refusal == (404, "not_claimed")


def test_without_a_place_no_new_id_is_claimed(api: Api) -> None:
    put_summary(api.table, "known", version=1)
    api.resources.quota = Places(1)
    assert [post(api, one).status for one in ("a", "b", "known")] == [201, 403, 201]
    assert post(api, "b").refusal == (403, "no_new_badges")


def test_the_owner_of_an_id_that_is_not_listed_any_more_may_rename_and_delete_it(api: Api) -> None:
    secret = claim(api)
    api.set(ids=("owner/*",))
    assert patch(api, secret, rename="owner/x").status == 200
    assert delete(api, secret).status == 204


# ---- what fails


def test_no_log_line_has_a_secret_or_a_digest(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    """Neither of what is done, nor of what is refused, nor of what fails."""
    caplog.set_level(logging.DEBUG)
    secret, failure = claim(api), UnavailableError("throttled")
    patch(api, secret, base=5, reset=True, frozen=False, rename="mona")
    assert get(api, secret).status == 200
    patch(api, secret, base="wrong")
    patch(api, secret + "x", base=5)
    patch(api, secret, rename="octocat", base=1)
    requests: list[Callable[[], Answer]] = [
        lambda: patch(api, secret, base=5),
        lambda: delete(api, secret),
    ]
    for request in requests:
        api.table.before_write = raising(failure)
        assert request().status == 503
        api.table.before_read = raising(failure)
        assert request().status == 503
    assert delete(api, secret).status == 204
    assert patch(api, secret, base=5).status == get(api, secret).status == 404
    lines = [telemetry.JsonFormatter().format(record) for record in caplog.records]
    assert sum("request_failed" in line for line in lines) == 4
    for told in (secret, tokens.digest(secret)):
        assert not [line for line in lines if told in line]
