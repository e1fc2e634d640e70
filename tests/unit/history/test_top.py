"""The route of the most viewed ids; `tests/unit/vumi/operate/admin` has their numbers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from chalicelib.history.top import TopBadge, TopQuery
from simulation.clocks import NOON
from simulation.resources import GivenResources
from tests.unit.http_requests import Answer, ask

PREFIX = "prefix=me.example/"


class GivenTop:
    """A top that has one badge, and the queries for it."""

    def __init__(self) -> None:
        self.queries: list[tuple[TopQuery, float]] = []

    def is_public(self, prefix: str) -> bool:
        return prefix.startswith("me.example/")

    def read(self, query: TopQuery, now: float) -> Sequence[TopBadge]:
        self.queries.append((query, now))
        return [TopBadge("me.example/post/", 41, 7)]


def request(options: str, top: GivenTop | None) -> Answer:
    return ask(GivenResources(top=top, clock=lambda: NOON), "GET", f"/api/v1/views/top?{options}")


@pytest.mark.parametrize(
    ("options", "days", "limit"), [("", 30, 10), ("&days=366&limit=100", 366, 100)]
)
def test_the_most_viewed_ids_of_a_public_prefix_are_for_every_site(
    options: str, days: int, limit: int
) -> None:
    top = GivenTop()
    answer = request(PREFIX + options, top)
    assert answer.body == {"top": [{"id": "me.example/post/", "count": 41, "views": 7}]}
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert top.queries == [(TopQuery("me.example/", days, limit), NOON)]


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ("prefix=other", (403, "not_public")),
        ("", (400, "bad_request")),
        ("prefix=", (400, "bad_request")),
        (f"{PREFIX}&days=367", (400, "bad_request")),
        (f"{PREFIX}&limit=101", (400, "bad_request")),
    ],
)
def test_nothing_is_read_for_another_request(options: str, refusal: tuple[int, str]) -> None:
    top = GivenTop()
    assert request(options, top).refusal == refusal
    assert top.queries == []


def test_where_nothing_reads_them_the_route_says_why() -> None:
    answer = request(PREFIX, None)
    assert answer.refusal == (404, "one_machine_only")
    assert "on AWS" in answer.says
