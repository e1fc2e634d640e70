"""The badge's routes: which view is taken, and what happens when storage fails."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from app import app
from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.settings import HOT_VIEWS, Settings
from chalicelib.storage.ports import Table, Unavailable
from chalicelib.views import keys
from chalicelib.views.view import View
from simulation import aws_events as events
from simulation.clocks import NOON
from simulation.logs import told
from simulation.queues import FakeViewQueue
from simulation.resources import GivenResources
from simulation.tables import FaultyTable, raising, sqlite_table
from simulation.views import AT_NOON, BADGE, put_summary, put_views, shown


@dataclass
class Use(GivenResources):
    """The resources of the routes at noon."""

    views_queue: FakeViewQueue = field(default_factory=FakeViewQueue)
    clock: Callable[[], float] = lambda: NOON

    @property
    def taken(self) -> View:
        """The one view that is in the queue."""
        [view] = self.views_queue.views
        return view


def unreadable(table: Table) -> FaultyTable:
    """Return a table whose counts can't be read."""

    def fail(_: str) -> None:
        raise Unavailable("no answer")

    return FaultyTable(table, before_read=fail)


@pytest.fixture
def use(tmp_path: Path) -> Iterator[Use]:
    with sqlite_table(tmp_path) as table:
        used = Use(table=table)
        resources.use(used)
        yield used
        resources.use(None)


def ask(method: str = "GET", path: str = "/api/v1/views", **query: str) -> str:
    parameters = {"id": [BADGE], **{name: [value] for name, value in query.items()}}
    answer = copy_context().run(app, events.http_event(parameters, method, path), None)
    assert answer["statusCode"] == 200
    return str(json.loads(answer["body"])["message"])


@pytest.mark.parametrize("path", ["/api/v1/views", "/v1/api/views"])
def test_head_is_answered_by_both_paths_and_counts_nothing(use: Use, path: str) -> None:
    assert ask("HEAD", path) == "0"
    assert use.views_queue.views == []


def test_the_first_view_of_a_badge_asks_for_a_marker(use: Use) -> None:
    assert ask() == "0"
    one = use.taken
    assert one == View(BADGE, one.ulid, first=True, hot=False, fold=False)
    assert one.milliseconds == AT_NOON


def test_a_view_is_taken_by_what_its_visitor_read(use: Use) -> None:
    """Later than the watermark, not the first of its window, and hot."""
    put_summary(use.table, count=5, watermark=AT_NOON + 4_000, hot=int(NOON) + 1)
    put_views(use.table, AT_NOON + 4_001)
    assert ask() == "6"
    one = use.taken
    assert one == View(BADGE, one.ulid, first=False, hot=True)
    assert one.milliseconds == AT_NOON + 4_001


def test_a_view_asks_for_a_fold_that_is_overdue(use: Use) -> None:
    put_views(use.table, *range(AT_NOON - 1_000_000, AT_NOON - 1_000_000 + HOT_VIEWS))
    assert ask() == str(HOT_VIEWS)
    assert (use.taken.fold, use.taken.hot, use.taken.first) == (True, True, True)


def test_the_settings_say_how_long_a_window_is(use: Use) -> None:
    use.settings = Settings(view_window_seconds=1, grace_seconds=2)
    put_views(use.table, AT_NOON - 1)
    ask()
    assert use.taken.first


@pytest.mark.parametrize(("live", "hot"), [(69, False), (70, True)])
def test_the_settings_say_from_how_many_live_views_on_a_badge_is_hot(
    use: Use, live: int, *, hot: bool
) -> None:
    use.settings = Settings(hot_views=70)
    put_views(use.table, *range(AT_NOON - live, AT_NOON))
    ask()
    assert (use.taken.hot, use.taken.fold) == (hot, hot)


def test_a_frozen_badge_takes_no_view_and_shows_its_live_ones(use: Use) -> None:
    put_summary(use.table, count=5, frozen=1)
    put_views(use.table, AT_NOON)
    assert ask() == "6"
    assert use.views_queue.views == []


def test_a_peek_that_cannot_read_the_count_takes_no_view(use: Use) -> None:
    use.table = unreadable(use.table)
    assert ask(peek="1") == ask("HEAD") == "count unavailable: try again"
    assert use.views_queue.views == []


def test_a_view_whose_count_cannot_be_read_is_taken_by_the_clock_with_its_marker(
    use: Use, caplog: pytest.LogCaptureFixture
) -> None:
    use.table = unreadable(use.table)
    assert ask() == "count unavailable, view taken"
    assert use.taken == View(BADGE, use.taken.ulid, first=True)
    assert use.taken.milliseconds == AT_NOON
    assert told(caplog) == [(logging.ERROR, "count_not_read", {"badge": BADGE})]


def counts(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    [counted] = [r.__dict__["fields"] for r in caplog.records if r.name == telemetry.metrics.name]
    assert counted["function"] == "api_handler"
    return {name: counted[name] for name in ("views_taken", "stored_directly")}


@pytest.mark.parametrize("queue_fails", [False, True])
@pytest.mark.parametrize("is_readable", [False, True])
def test_a_view_that_no_queue_takes_is_stored_directly_and_told_to_the_operator(
    use: Use, caplog: pytest.LogCaptureFixture, *, queue_fails: bool, is_readable: bool
) -> None:
    use.views_queue.failure = Unavailable("the queue") if queue_fails else None
    table, use.table = use.table, use.table if is_readable else unreadable(use.table)
    with caplog.at_level(logging.INFO, telemetry.metrics.name):
        assert ask() == ("0" if is_readable else "count unavailable, view taken")
    assert counts(caplog) == {"views_taken": 1, "stored_directly": int(queue_fails)}
    assert ("view_stored_directly" in caplog.messages) == queue_fails
    assert shown(table) == int(queue_fails)
    marker = table.get(keys.marker(BADGE, int(NOON) + 300))
    assert (marker is not None) == queue_fails


@pytest.mark.parametrize("place", [0, 1], ids=["marker", "view"])
def test_a_visitor_whose_view_is_not_taken_is_told_so(use: Use, place: int) -> None:
    use.views_queue.failure = Unavailable("the queue")
    failure = Unavailable("the table")
    table = use.table
    use.table = FaultyTable(table, before_put=raising(*[None] * place, failure))
    assert ask() == "out of order, not counted: try again"
    assert shown(table) == 0
