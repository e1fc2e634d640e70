"""`python -m bench.cost`: the tables by which an operator decides where vu-mi runs on AWS.

The real handlers run over a metered table and a simulated time. Their requests, units and bytes of
log are counted, and multiplied by published prices.
"""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench import aws_events as events
from bench.aws_events import WINDOWS
from bench.metered_table import item_bytes
from bench.stack import (
    DAY,
    DAYS_A_MONTH,
    MEMORY_GB,
    PUT_BATCH,
    RECEIVED_AT_ONCE,
    START,
    Run,
    Stack,
    stack_of,
)
from bench.stubbed_aws import BADGE_ID
from chalicelib.api import TABLE
from chalicelib.aws import api_handler, get_views
from chalicelib.aws.attribute_values import encode_item
from chalicelib.aws.consumers import put_views
from chalicelib.counting import keys
from chalicelib.pages.badge_routes import MAX_COUNTED, MAX_READ
from chalicelib.settings import HOT_VIEWS
from chalicelib.storage.items import number
from chalicelib.storage.writes import Delete
from chalicelib.ulids import new_ulid
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.routes import WALLETS
from deploy import http_api
from simulation.environment import isolate
from simulation.report import Report

AS_OF = "us-east-1 as of mid-2025, checked on 2026-11-21 against stored copies of public pages"
MILLION, GB = 1_000_000, 2**30
PRICES = {
    "api": 1.0 / MILLION,  # HTTP API, a request of the first 300 million a month
    "lambda": 0.2 / MILLION,  # a run
    "gb_second": 1.33334e-05,  # arm64; INIT too since 2025-08-01
    "sqs": 0.4 / MILLION,  # a request of a standard queue
    "read": 0.125 / MILLION,  # a unit on demand, since November 2024
    "write": 0.625 / MILLION,
    "log": 0.5 / GB,  # ingestion
    "stored": (0.25 + 0.2) / GB,  # a byte for a month, with point-in-time recovery
}
COLD_START_MS = {"get_views": 218, "put_views": 219, "fold_views": 235}
"""The billed time that a cold start adds; `bench cold_start` measures its processor time."""
IDLE_SECONDS = 600
"""An environment that is idle this long is removed; assumed, as AWS publishes no figure."""
STORED_OVERHEAD_BYTES = 100
RATES = (10, 100, 500)
BURST = 1_000
"""RequestsAtOnce."""
SWITCHED_AFTER = 600
"""Seconds until MaxViewsPerDay has switched the functions off; assumed: 180 for a metric, 300 for
its period, 60 for the evaluation of the alarm and 60 for the switch."""
CONCURRENT_RUNS = 1_000
"""The default quota of an account."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The runs of views, and the views of the stack in a day."""

    runs: Sequence[Run]
    views: int
    views_a_day: int

    def of_a_view(self, what: Callable[[Run], float]) -> float:
        return sum(map(what, self.runs)) / self.views

    def dollars(self) -> dict[str, float]:
        """Return the price of a million views, by service."""
        billed = self.of_a_view(lambda run: run.billed_ms) / 1000 * MEMORY_GB
        kept = self.of_a_view(lambda run: run.messages) * events.WINDOWS.retention
        view = kept / DAY / DAYS_A_MONTH * _view_bytes()
        parts = {
            "API": PRICES["api"],
            "Lambda": self.of_a_view(lambda _: 1) * PRICES["lambda"] + billed * PRICES["gb_second"],
            "cold starts": self._cold_ms() / 1000 * MEMORY_GB * PRICES["gb_second"],
            "SQS": self.of_a_view(_sqs_requests) * PRICES["sqs"],
            "reads": self.of_a_view(lambda run: run.reads) * PRICES["read"],
            "writes": self.of_a_view(lambda run: run.writes) * PRICES["write"],
            "storage": view * PRICES["stored"],
            "logs": self.of_a_view(lambda run: run.log_bytes) * PRICES["log"],
        }
        priced = {name: usd * MILLION for name, usd in parts.items()}
        return priced | {"together": sum(priced.values())}

    def _cold_ms(self) -> float:
        """Return the cold starts of a view: e^-(rate x idle time) of the runs find nothing warm."""
        ran = Counter(run.function for run in self.runs)
        return sum(
            share * math.exp(-share * self.views_a_day / DAY * IDLE_SECONDS) * COLD_START_MS[name]
            for name, share in ((name, times / self.views) for name, times in ran.items())
        )


def _sqs_requests(run: Run) -> float:
    return run.sends + 2 * math.ceil(run.messages / RECEIVED_AT_ONCE)


def _view_bytes() -> int:
    pk, sk = keys.view(BADGE_ID, new_ulid(int(START * 1000)))
    return item_bytes(encode_item({"PK": pk, "SK": sk, "ttl": int(START)})) + STORED_OVERHEAD_BYTES


def spread(views: int, seconds: float, badges: int = 1, *, of_a_page: bool = False) -> Counted:
    """Simulate views of each badge at even times, after a day with one view.

    The badges `of_a_page` are counted by one request, and their views are counted as one.
    """
    ids = [BADGE_ID] if badges == 1 else [f"{BADGE_ID}/{place}" for place in range(badges)]
    with stack_of() as stack:
        for count, pause in ((1, DAY), (views, seconds / views)):
            stack.runs.clear()
            for _ in range(count):
                if of_a_page:
                    stack.post(ids)
                for badge_id in () if of_a_page else ids:
                    stack.get(badge_id)
                stack.move(1)
                stack.deliver()
                stack.move(pause - 1)
        stack.move(DAY)
        _check(stack, ids, views + 1)
    number = views if of_a_page else views * badges
    return Counted(stack.runs, number, round(number * DAY / seconds))


def _check(stack: Stack, ids: Sequence[str], views: int) -> None:
    for badge_id in ids:
        count = number(stack.table.get(keys.summary(badge_id)) or {}, "count")
        if count != views:
            raise RuntimeError(f"{views:,} views were counted as {count:,}")


def units() -> dict[str, tuple[float, int]]:
    """Return the read units and the write units of each request."""
    with stack_of() as stack:
        stack.get()
        stack.deliver()
        stack.move(2 * DAY)
        get, put, fold = stack.runs
        page = _visit_page(stack)
        hot = {}
        for views in (1, 1, PUT_BATCH):
            batch = events.views([BADGE_ID] * views, stack.now, hot=True)
            stack.run("put_views", put_views, batch, 1, views)
            hot[views] = stack.runs[-1]
        live = {views: _get_with(stack, views) for views in (HOT_VIEWS, HOT_VIEWS + 155)}
        first, second = (wallets.open_wallet(stack.table, user, 0).wallet_id for user in "ab")
        postings = []
        for place, path in enumerate(("deposit", f"transfer/{second}")):
            stack.now += 1.0  # two entries of a journal in one second may need a second try
            posting = {"amount": "1", "nonce": f"posting-{place}"}
            event = events.put_posting(f"{WALLETS}/{first}/{path}", posting)
            stack.run("api_handler", api_handler.handler, event)
            postings.append(stack.runs[-1])
    runs = {
        "GET": get,
        "POST of a page and its site": page[0],
        "put of these two views": page[1],
        f"GET of {MAX_READ} counts": page[2],
        "put of a view that begins a window": put,
        "fold": fold,
        "hot view": hot[1],
        f"{PUT_BATCH} hot views of one badge": hot[PUT_BATCH],
        **{f"GET with {views:,} live views": run for views, run in live.items()},
        "deposit": postings[0],
        "transfer": postings[1],
    }
    return {name: (run.reads, run.writes) for name, run in runs.items()}


def _visit_page(stack: Stack) -> tuple[Run, Run, Run]:
    """Count a page and its site, and read a list of pages."""
    ids = [f"{BADGE_ID}/{place}" for place in range(MAX_READ)]
    stack.post(ids[:2])
    stack.deliver()
    counts = events.ask(ids, path=f"{events.PATH}/counts")
    stack.run("get_views", get_views.handler, counts, MAX_READ)
    post, put, read = stack.runs[-3:]
    return post, put, read


def _get_with(stack: Stack, live: int) -> Run:
    at = int(stack.now - WINDOWS.grace) * 1000
    places = [keys.view(BADGE_ID, new_ulid(at + place)) for place in range(live)]
    stack.table.put_all([{"PK": pk, "SK": sk, "ttl": WINDOWS.view_ttl(at)} for pk, sk in places])
    stack.get()
    run = stack.runs[-1]
    for key in places:
        stack.table.write(Delete(key))
    return run


def tables() -> Iterator[Report]:
    """Count, and yield the tables."""
    quiet, usual = spread(3, 3 * DAY), spread(125, DAY / 8)
    full = spread(125, DAY / 8, PUT_BATCH)
    named = {
        "a stack with one view a day": quiet,
        "one badge with 1,000 views a day": usual,
        "a page and its site, the same": spread(125, DAY / 8, 2, of_a_page=True),
        "98 such badges, full batches": full,
    }
    dollars = {name: counted.dollars() for name, counted in named.items()}
    yield Report(
        "$ per million views",
        ("", *dollars["98 such badges, full batches"]),
        [(name, *(f"{usd:.2f}" for usd in parts.values())) for name, parts in dollars.items()],
        (AS_OF,),
    )
    prices = [counted.dollars()["together"] for counted in (usual, usual, full)]
    sizes = {"small": 10_000, "medium": 1_000_000, "large": 100_000_000}
    yield Report(
        "$ a month",
        ("installation", "views a day", "$"),
        [
            (name, f"{views:,}", f"{views * DAYS_A_MONTH * usd / MILLION:,.2f}")
            for (name, views), usd in zip(sizes.items(), prices, strict=True)
        ],
        ("1,000 views a day for each badge; no free tier, and no tier of lower prices",),
    )
    usd, routes = quiet.dollars(), len(http_api.routes(TABLE.routes)) + 1
    view = usd["together"] - usd["cold starts"]
    dearest = usd["API"] + MAX_COUNTED * (view - usd["API"])
    prices = [dearest, dearest + (routes - 1) * view]
    yield Report(
        "$ a day, if strangers view new ids at the limit",
        ("RequestsPerSecond", f"{MAX_COUNTED} ids a request", f"all {routes} routes"),
        [
            (f"{rate}", *(f"{rate * DAY * of_one / MILLION:,.2f}" for of_one in prices))
            for rate in RATES
        ],
    )
    yield _until_switched(prices, routes, view)
    yield Report(
        "Units of a request",
        ("", "read", "write"),
        [(name, f"{read:g}", f"{write}") for name, (read, write) in units().items()],
    )


def _until_switched(prices: Sequence[float], routes: int, view: float) -> Report:
    """Return what strangers cost after MaxViewsPerDay is passed."""
    with stack_of() as stack:
        stack.get()
        unthrottled = CONCURRENT_RUNS / (stack.runs[-1].billed_ms / 1000) * SWITCHED_AFTER
    of_all = f"{unthrottled:,.0f} views, ${unthrottled * view / MILLION:,.0f}"
    refused = [PRICES["api"] * DAY * routes_of for routes_of in (1, routes)]
    return Report(
        "$ after MaxViewsPerDay is passed",
        (
            "RequestsPerSecond",
            "10 ids a request, until off",
            f"all {routes} routes, until off",
            "one route, a day off",
            f"all {routes} routes, a day off",
        ),
        [
            (
                f"{rate}",
                *(
                    f"{(rate * SWITCHED_AFTER + BURST) * of_one / MILLION:,.2f}"
                    for of_one in prices
                ),
                *(f"{rate * of_one:,.2f}" for of_one in refused),
            )
            for rate in RATES
        ],
        (
            f"off after {SWITCHED_AFTER // 60} minutes",
            f"{CONCURRENT_RUNS:,} runs at once, if AWS throttled nothing: {of_all}",
        ),
    )


def main() -> int:
    """Print the tables."""
    isolate(os.environ)
    print("\n\n".join(str(report).strip() for report in tables()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
