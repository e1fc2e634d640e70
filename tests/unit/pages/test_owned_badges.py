"""The list of the badges of a secret follows every change of an owner."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.counting import keys
from chalicelib.http.tokens import digest
from chalicelib.owners import claiming, proving
from chalicelib.owners.finding import look_up
from chalicelib.pages.owned_badges import PAGE
from simulation.clocks import NOON
from simulation.memory_table import MemoryTable
from simulation.resources import GivenResources
from simulation.views import AT_NOON, put_summary, put_views
from tests.unit import http_requests

BADGES = "/api/v1/badges"
MINE, OTHER = "s" * 32, "t" * 32


@dataclass
class Owner:
    """Whoever has some secrets, and the routes over a table in memory."""

    table: MemoryTable = field(default_factory=MemoryTable)

    def ask(
        self, method: str, secret: str, body: dict[str, Any] | None = None, **query: str
    ) -> Any:
        resources = GivenResources(table=self.table, clock=lambda: NOON)
        return http_requests.ask(
            resources,
            method,
            f"{BADGES}?{urlencode(query)}",
            json.dumps(body).encode() if body else b"",
            kind="application/json",
            authorization=f"Bearer {secret}" if secret else "",
        )

    def claim(self, badge_id: str, secret: str = MINE) -> None:
        assert self.ask("POST", "", {"id": badge_id, "digest": digest(secret)}).status == 201

    def ids(self, secret: str = MINE) -> list[str]:
        found = self.ask("GET", secret)
        return [badge["id"] for badge in found.body["badges"]] if found.status == 200 else []


@pytest.fixture
def owner() -> Owner:
    return Owner()


def test_a_badge_is_listed_with_its_count_and_the_views_of_today(owner: Owner) -> None:
    owner.claim("a/b")
    put_summary(
        owner.table, "a/b", count=5, base=100, version=1, today={"day": "2026-03-14", "h11": 3}
    )
    put_views(owner.table, AT_NOON - 1, badge_id="a/b")
    listed = owner.ask("GET", MINE)
    assert (listed.status, listed.body) == (
        200,
        {"badges": [{"id": "a/b", "count": 106, "today": 4}]},
    )


@pytest.mark.parametrize("owned", [1, PAGE, PAGE + 1, 2 * PAGE])
def test_pages_have_each_badge_once_in_the_order_of_the_ids(owner: Owner, owned: int) -> None:
    wanted = [f"me/{place:03}" for place in range(owned)]
    for badge_id in reversed(wanted):
        owner.claim(badge_id)
    found: list[str] = []
    query, pages = dict[str, str](), 0
    while pages == 0 or query:
        body = owner.ask("GET", MINE, None, **query).body
        found += [badge["id"] for badge in body["badges"]]
        query, pages = ({"cursor": body["next"]} if "next" in body else {}), pages + 1
    assert (found, pages) == (wanted, max(1, -(-owned // PAGE)))


def test_an_id_in_the_query_asks_for_one_badge(owner: Owner) -> None:
    owner.claim("a/b")
    assert owner.ask("GET", MINE, id="a/b").body["names"] == ["a/b"]
    assert owner.ask("GET", MINE, id="").status == 400


def test_a_secret_is_needed_and_one_without_badges_is_refused(owner: Owner) -> None:
    owner.claim("a/b")
    assert owner.ask("GET", "").status == 401
    refused = owner.ask("GET", OTHER)
    assert (refused.refusal, refused.says) == ((403, "wrong_secret"), "no badge has this secret")


def test_a_renamed_badge_has_its_present_name(owner: Owner) -> None:
    owner.claim("old")
    assert owner.ask("PATCH", MINE, {"rename": "new"}, id="old").status == 200
    assert owner.ids() == ["new"]


def test_a_badge_goes_to_the_secret_to_which_it_is_handed_over(owner: Owner) -> None:
    owner.claim("a/b")
    assert owner.ask("PATCH", MINE, {"digest": digest(OTHER)}, id="a/b").status == 200
    assert (owner.ids(), owner.ids(OTHER)) == ([], ["a/b"])


def test_a_deleted_badge_is_listed_no_more_and_nobody_inherits_it(owner: Owner) -> None:
    owner.claim("a/b")
    assert owner.ask("DELETE", MINE, id="a/b").status == 204
    owner.claim("a/b", OTHER)
    assert (owner.ids(), owner.ids(OTHER)) == ([], ["a/b"])


def test_the_operator_gives_a_badge_and_takes_it(owner: Owner) -> None:
    owner.claim("a/b")
    claiming.grant(owner.table, "a/b", NOON, digest(OTHER))
    assert (owner.ids(), owner.ids(OTHER)) == ([], ["a/b"])
    assert claiming.release(owner.table, "a/b")
    assert owner.ids(OTHER) == []


def test_a_void_claim_leaves_the_list_of_its_secret(owner: Owner) -> None:
    owner.claim("a/b")
    later = NOON + claiming.CLAIM_SECONDS
    claiming.claim(owner.table, "a/b", 0, later, digest(OTHER))
    assert (owner.ids(), owner.ids(OTHER)) == ([], ["a/b"])


@pytest.mark.parametrize("name", ["squatter", "victim"])
def test_a_proof_moves_what_it_takes(owner: Owner, name: str) -> None:
    """The name leaves the badge, or the badge that is stored under it changes its owner."""
    owner.claim("squatter")
    assert owner.ask("PATCH", MINE, {"rename": "victim"}, id="squatter").status == 200
    taken = look_up(owner.table, name)
    owner.table.write(*proving.prepare_taking(owner.table, taken, name, digest(OTHER), NOON))
    left = {"squatter": [], "victim": ["squatter"]}[name]
    assert owner.ids() == left
    assert owner.ids(OTHER) == ["victim"]
    assert all(keys.owned(digest(MINE), one) in owner.table.items for one in left)
