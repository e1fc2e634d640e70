"""The operator's page at `/admin`, on one machine, and its data. Nothing here changes anything.

The page itself is public and has no data. Its script asks for the data with an operator's token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from heapq import nlargest
from itertools import chain
from pathlib import Path
from typing import Any

from chalicelib import VERSION
from chalicelib.events.event import Event, Status, batches
from chalicelib.history import chart
from chalicelib.history.history import Bucket, History, Interval
from chalicelib.history.routes import LookOptions
from chalicelib.http import page, responses
from chalicelib.http.fields import Field, number
from chalicelib.http.messages import Request, Response
from chalicelib.http.query import among, short_text
from chalicelib.http.routing import ANY_OPTIONS, Authentication, Route
from chalicelib.resources import Resources
from chalicelib.settings import Feature
from chalicelib.storage.items import Due, Key
from chalicelib.units import Seconds, to_iso8601, to_milliseconds
from vumi.operate.admin.overview import By, Periods
from vumi.operate.admin.overview_file import USUAL_LIMIT, Overview, OverviewStamp, read_page
from vumi.server.common_commits import ADMIN_DATA
from vumi.storage.database import Database
from vumi.storage.queue import DEAD_LETTERS, states
from vumi.storage.upkeep import measure, read_sizes

FILE = Path(__file__).with_name("admin.html")
SIZE_DAYS = 90
FAILED_EVENTS = 20
"""The latest failed events, which the page shows."""
MAX_SEARCH = 200
MAX_PAGE = 100
MAX_OFFSET = 10**9
CACHED_SECONDS = 2.0
"""The data of one moment serves all requests of this time."""


class ListOptions(LookOptions):
    """The options of the list of badges, and of the chart above it."""

    search = Field(partial(short_text, MAX_SEARCH), {}, default="")
    sort = Field(lambda given: By(among([*By], given)), {}, default=By.TOTAL)
    offset = number(range(MAX_OFFSET + 1), "", 0)
    limit = number(range(1, MAX_PAGE + 1), "", USUAL_LIMIT)


class Admin:
    """The routes of the page, and their state; the server starts when this is made."""

    def __init__(
        self,
        file: Database,
        overview: Overview,
        clock: Callable[[], Seconds],
        limits_left: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self._file = file
        self._overview = overview
        self._clock, self._limits_left = clock, limits_left
        self._started = clock()
        self._cached: tuple[Seconds, Mapping[str, Any]] | None = None

    @property
    def routes(self) -> tuple[Route, ...]:
        """Return the routes: the page, which has no data, and the data, for operators alone."""
        return (
            Route("GET", "/admin", get_page, with_head=True, options=ANY_OPTIONS),
            Route("GET", ADMIN_DATA, self.get_data, Authentication.OPERATOR),
            Route(
                "GET",
                f"{ADMIN_DATA}/badges",
                self.get_badges,
                Authentication.OPERATOR,
                options=ListOptions,
            ),
        )

    def get_data(self, _: Request, resources: Resources) -> Response:
        """Answer the state of the server: its file, its queues and the failed events."""
        now = self._clock()
        if self._cached is None or not 0 <= now - self._cached[0] < CACHED_SECONDS:
            self._cached = now, self._read_state(resources)
        return responses.json(
            {
                "version": VERSION,
                "started": to_iso8601(to_milliseconds(self._started)),
                "now": to_iso8601(to_milliseconds(now)),
                **self._cached[1],
            }
        )

    def get_badges(self, request: Request, resources: Resources) -> Response:
        """Answer the sums over all badges, their chart, the bursts, and a page of badges."""
        asked = ListOptions(request.query)
        made = self._overview.refresh(resources.view_clock())
        if made is None:
            return responses.json({"overview": _describe(None, self._overview.failure)})
        page = {"offset": asked.offset, "limit": asked.limit}
        found = read_page(self._overview.path, asked.search, asked.sort, **page)
        return responses.json(
            {
                "overview": _describe(made, self._overview.failure),
                "chart": _draw(made, asked.look),
                "bursts": [badge.to_json() for badge in found.bursts],
                "found": found.found,
                "badges": [badge.to_json() for badge in found.badges],
            }
        )

    def _read_state(self, resources: Resources) -> Mapping[str, Any]:
        sizes = read_sizes(self._file.read, SIZE_DAYS)
        return {
            "file": {
                "name": str(self._file.path),
                "bytes": measure(self._file.path),
                "days": [{"day": day, "bytes": size} for day, size in sizes],
            },
            "limits_left": self._limits_left(),
            "queues": self._read_queues(),
            "failed_events": self._read_failed_events(resources),
        }

    def _read_queues(self) -> list[dict[str, Any]]:
        """Return the number of messages and of dead letters in each queue that has some."""
        sizes = {name: state.messages for name, state in states(self._file).items()}
        names = sorted({queue.removesuffix(DEAD_LETTERS) for queue in sizes})
        return [
            {
                "queue": name,
                "messages": sizes.get(name, 0),
                "dead_letters": sizes.get(name + DEAD_LETTERS, 0),
            }
            for name in names
        ]

    def _read_failed_events(self, resources: Resources) -> dict[str, Any] | None:
        """Return the number of failed events and the latest; None if events are switched off."""
        if Feature.EVENTS not in resources.settings.features:
            return None
        shards = batches(Status.ERROR)
        [(failed,)] = self._file.read(
            f"SELECT count(*) FROM items WHERE batch IN ({', '.join('?' * len(shards))})",  # noqa: S608  placeholders
            tuple(shards),
        )
        latest = nlargest(FAILED_EVENTS, chain.from_iterable(map(self._latest, shards)))
        items = resources.table.get_all([due.key for due in latest])
        return {"failed": failed, "latest": [_describe_event(Event.of(item)) for item in items]}

    def _latest(self, shard: str) -> list[Due]:
        rows = self._file.read(
            "SELECT due, pk, sk FROM items WHERE batch = ? ORDER BY due DESC LIMIT ?",
            (shard, FAILED_EVENTS),
        )
        return [Due(due, Key(pk, sk)) for due, pk, sk in rows]


def get_page(_: Request, __: Resources) -> Response:
    """Answer the page."""
    return page.respond(page.load(FILE))


def _describe(made: OverviewStamp | None, failure: str) -> dict[str, Any]:
    """Return when the overview was made, its sums, and why the next one failed."""
    said = {"failure": failure} if failure else {}
    if made is None:
        return {"ready": False, **said}
    return {
        "ready": True,
        "at": to_iso8601(to_milliseconds(made.at)),
        **asdict(made.totals),
        **said,
    }


def _draw(made: OverviewStamp, look: chart.Look) -> Mapping[str, str]:
    days = Periods.of(made.at).days
    starts = [datetime.fromisoformat(day).replace(tzinfo=UTC) for day in days]
    buckets = tuple(map(Bucket, starts, made.totals.days))
    history = History(Interval.DAY, len(days), starts[0].date(), buckets)
    described = chart.describe(history, look)
    headline = chart.write_headline(history)
    return {"svg": chart.draw(history, look), "description": f"{headline}. {described}"}


def _describe_event(event: Event) -> dict[str, Any]:
    """Return a failed event without its payload."""
    ended = max((attempt.ended or attempt.started for attempt in event.attempts), default=event.at)
    return {
        "id": event.event_id,
        "target": event.target.to_json(),
        "at": to_iso8601(event.at),
        "failed": to_iso8601(ended),
        "attempts": event.tries,
        "error": event.last_error,
    }
