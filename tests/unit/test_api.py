"""The badge's routes where storage fails: what is taken, and what is counted as stored directly."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from app import app
from chalicelib import resources, telemetry
from chalicelib.concurrency import Each
from chalicelib.ports import Item, Put, Table, Unavailable
from chalicelib.settings import Settings
from chalicelib.views import keys
from chalicelib.views.counting import HOT, HOT_SECONDS
from chalicelib.views.view import View
from tests import events
from tests.unit.fakes import NOON, FakeQueue, FaultyTable, raising, sqlite_table, ulid_of


@dataclass
class Use:
    """A `resources.Resources`."""

    table: Table
    views_queue: FakeQueue = field(default_factory=FakeQueue)
    settings: Settings = field(default_factory=Settings)
    each: Each = map
    ttl_lags = True

    def clock(self) -> float:
        return NOON


class Unreadable(FaultyTable):
    """A table whose counts can't be read."""

    def query(self, partition: str, **_: Any) -> list[Item]:
        raise Unavailable(f"no answer for {partition}")


@pytest.fixture
def use(tmp_path: Path) -> Iterator[Use]:
    with sqlite_table(tmp_path) as table:
        used = Use(table)
        resources.use(used)
        yield used
        resources.use(None)


def ask(method: str = "GET", path: str = "/api/v1/views", **query: str) -> str:
    parameters = {"id": ["octocat"], **{name: [value] for name, value in query.items()}}
    answer = copy_context().run(app, events.http_event(parameters, method, path), None)
    assert answer["statusCode"] == 200
    return str(json.loads(answer["body"])["message"])


@pytest.mark.parametrize("path", ["/api/v1/views", "/v1/api/views"])
def test_head_is_answered_by_both_paths_and_counts_nothing(use: Use, path: str) -> None:
    assert ask("HEAD", path) == "0"
    assert use.views_queue.bodies == []


@pytest.mark.parametrize(
    ("live", "was_hot", "hot"),
    [
        (HOT - 1, 0, 0),
        (HOT, 0, HOT_SECONDS),
        (HOT, 9, HOT_SECONDS),
        (0, 9, 9),
        (HOT - 1, 9, 9),
        (HOT - 1, 0.5, 0),
        (HOT - 1, -9, 0),
    ],
)
def test_a_message_says_until_when_its_badge_is_hot(
    use: Use, live: int, was_hot: float, hot: int
) -> None:
    """From a thousand live views on, for an hour; `was_hot` and `hot` are seconds from now."""
    if was_hot:
        until = int(NOON + was_hot)
        use.table.write(Put({"PK": "USER#octocat", "SK": "USER", "hot": until}))
    ulids = [ulid_of(NOON - 1 + place / 10_000, f"{place:016}") for place in range(live)]
    places = [keys.view("octocat", ulid) for ulid in ulids]
    use.table.put_all([{"PK": place.pk, "SK": place.sk, "ttl": 1} for place in places])
    assert ask() == str(live)
    [body] = use.views_queue.bodies
    assert View.from_message(body).hot == (int(NOON) + hot if hot else 0)


def test_a_peek_that_cannot_read_the_count_takes_no_view(use: Use) -> None:
    use.table = Unreadable(use.table)
    assert ask(peek="1") == ask("HEAD") == "count unavailable: try again"
    assert use.views_queue.bodies == []
    assert ask() == "count unavailable, view taken"
    assert len(use.views_queue.bodies) == 1


@pytest.mark.parametrize(
    ("queue_fails", "floor_fails", "message"),
    [
        (False, False, "0"),
        (True, False, "0"),
        (True, True, "count unavailable, view taken"),
    ],
)
def test_a_view_stored_directly_is_told_to_the_operator_though_its_floor_fails(
    use: Use,
    caplog: pytest.LogCaptureFixture,
    message: str,
    *,
    queue_fails: bool,
    floor_fails: bool,
) -> None:
    use.views_queue.failure = Unavailable("the queue") if queue_fails else None
    floor = Unavailable("the floor") if floor_fails else None
    use.table = FaultyTable(use.table, before_write=raising(floor))
    with caplog.at_level(logging.INFO, telemetry.metrics.name):
        assert ask() == message
    [counted] = [r.__dict__["fields"] for r in caplog.records if r.name == telemetry.metrics.name]
    assert (counted["views_taken"], counted["stored_directly"]) == (1, int(queue_fails))
    assert counted["function"] == "api_handler"
    warned = "the queue failed, the view is stored directly" in caplog.messages
    assert warned == queue_fails
