"""The list of the badges of a secret follows every change of an owner."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chalicelib.counting import keys
from chalicelib.http.tokens import digest
from chalicelib.owners import claiming, proving
from chalicelib.owners.finding import look_up
from chalicelib.pages.owned_badges import PAGE
from chalicelib.storage.items import Value
from simulation.clocks import NOON
from simulation.views import AT_NOON, put_summary, put_views
from tests.unit.http_requests import Api

BADGES = "/api/v1/badges"
MINE, OTHER = "s" * 32, "t" * 32


def claim(api: Api, badge_id: str, secret: str = MINE) -> None:
    assert api.ask("POST", BADGES, {"id": badge_id, "digest": digest(secret)}).status == 201


def change(api: Api, badge_id: str, method: str = "PATCH", **fields: str) -> None:
    target = f"{BADGES}?id={badge_id}"
    assert api.ask(method, target, fields or b"", MINE).status in {200, 204}


def listed(api: Api, secret: str = MINE) -> list[str]:
    found = api.ask("GET", BADGES, token=secret)
    return [badge["id"] for badge in found.body["badges"]] if found.status == 200 else []


def test_a_badge_is_listed_with_its_count_and_the_views_of_today(api: Api) -> None:
    claim(api, "a/b")
    today: Value = {"day": "2026-03-14", "h11": 3}
    put_summary(api.table, "a/b", count=5, base=100, version=1, today=today)
    put_views(api.table, AT_NOON - 1, badge_id="a/b")
    found = api.ask("GET", BADGES, token=MINE)
    assert found.status == 200
    assert found.body == {"badges": [{"id": "a/b", "count": 106, "today": 4}]}


@pytest.mark.parametrize("owned", [1, PAGE, PAGE + 1, 2 * PAGE])
def test_pages_have_each_badge_once_in_the_order_of_the_ids(api: Api, owned: int) -> None:
    wanted = [f"me/{place:03}" for place in range(owned)]
    for badge_id in reversed(wanted):
        claim(api, badge_id)
    found: list[str] = []
    query, pages = "", 0
    while pages == 0 or query:
        body = api.ask("GET", BADGES + query, token=MINE).body
        found += [badge["id"] for badge in body["badges"]]
        query, pages = (f"?cursor={body['next']}" if "next" in body else ""), pages + 1
    assert (found, pages) == (wanted, max(1, -(-owned // PAGE)))


def test_a_secret_is_needed_and_one_without_badges_is_refused(api: Api) -> None:
    claim(api, "a/b")
    assert api.ask("GET", BADGES).status == 401
    refused = api.ask("GET", BADGES, token=OTHER)
    assert (refused.refusal, refused.says) == ((403, "wrong_secret"), "no badge has this secret")


def test_a_renamed_badge_has_its_present_name(api: Api) -> None:
    claim(api, "old")
    change(api, "old", rename="new")
    assert listed(api) == ["new"]


def delete_and_claim(api: Api) -> None:
    change(api, "a/b", "DELETE")
    claim(api, "a/b", OTHER)


def claim_later(api: Api) -> None:
    claiming.claim(api.table, "a/b", 0, NOON + claiming.CLAIM_SECONDS, digest(OTHER))


@pytest.mark.parametrize(
    "give",
    [
        lambda api: change(api, "a/b", digest=digest(OTHER)),
        lambda api: claiming.grant(api.table, "a/b", NOON, digest(OTHER)),
        delete_and_claim,
        claim_later,
    ],
    ids=["handed over", "granted", "deleted", "a void claim"],
)
def test_a_badge_leaves_the_list_of_its_secret_for_that_of_its_next_owner(
    api: Api, give: Callable[[Api], object]
) -> None:
    claim(api, "a/b")
    give(api)
    assert (listed(api), listed(api, OTHER)) == ([], ["a/b"])
    assert claiming.release(api.table, "a/b")
    assert listed(api, OTHER) == []


@pytest.mark.parametrize(("name", "left"), [("squatter", []), ("victim", ["squatter"])])
def test_a_proof_moves_what_it_takes(api: Api, name: str, left: list[str]) -> None:
    """The name leaves the badge, or the badge that is stored under it changes its owner."""
    claim(api, "squatter")
    change(api, "squatter", rename="victim")
    taken = look_up(api.table, name)
    api.table.write(*proving.prepare_taking(api.table, taken, name, digest(OTHER), NOON))
    assert (listed(api), listed(api, OTHER)) == (left, ["victim"])
    assert all(keys.owned(digest(MINE), one) in api.items for one in left)
