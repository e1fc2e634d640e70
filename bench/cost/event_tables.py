"""The tables of `cost` for events: the cost of one event, an empty sweep, a million an hour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from bench.cost.bill import GB, MB_IN_GB, Usage, per_view
from bench.cost.event_usage import (
    A_MINUTE,
    AN_HOUR,
    FAILED_ONCE,
    FAR_LOG,
    LIVES,
    SAMPLE,
    SOON_LOG,
    CountedEvents,
)
from bench.cost.invocations import ACCEPT, DISTRIBUTE, FIRE, Invocation
from bench.cost.metering import Request, Written
from bench.cost.view_tables import MILLION, SERVICES, by_service, dollar
from chalicelib.events.event import SHARDS
from simulation.report import Report

KEPT = "30 days stored"
EVENT_SERVICES = {**SERVICES, KEPT: ("stored_gb_month", "pitr_gb_month")}
RUSH = f"{FAR_LOG}, {AN_HOUR:,} an hour"
PER_SECOND = AN_HOUR / 3_600
KEY_WRITES = 1_000
"""The write units a second of a partition, and so of a partition key, of a table or an index
(DynamoDB developer guide, "Best practices for designing and using partition keys effectively")."""
NEW_TABLE_WRITES = 4_000
"""The write units a second of a new table or index (DynamoDB developer guide, "DynamoDB on-demand
capacity mode")."""


def reports(counted: CountedEvents) -> Iterator[Report]:
    """Yield all tables of events."""
    yield _dollars(counted)
    yield _lives(counted)
    yield _writes(counted)
    yield _idle(counted)
    yield _an_hour(counted)


def _usages(counted: CountedEvents) -> dict[str, Usage]:
    return {life: counted.alone(life) for life in LIVES} | {RUSH: counted.in_a_rush()}


def _dollars(counted: CountedEvents) -> Report:
    return Report(
        title="$ per million events",
        head=("", *EVENT_SERVICES, "together"),
        rows=[
            (what, *(dollar(cost * MILLION) for cost in (*costs.values(), sum(costs.values()))))
            for what, usage in _usages(counted).items()
            if (costs := by_service(usage, counted.bill.prices, EVENT_SERVICES))
        ],
        notes=("an event is alone but in the last row, where its batches are full",),
    )


def _lives(counted: CountedEvents) -> Report:
    return Report(
        title="An event, from its acceptance to its end",
        head=(
            "",
            "write units of the table",
            "of its index",
            "read units",
            "requests to SQS",
            "runs of functions",
            "billed ms",
            "bytes of log",
        ),
        rows=[
            _life_row(what, usage, _index_share(counted, what), counted)
            for what, usage in _usages(counted).items()
        ],
    )


def _life_row(what: str, usage: Usage, index_units: float, counted: CountedEvents) -> Sequence[str]:
    deployed = counted.bill.deployed
    gb_seconds = usage[f"lambda_{deployed.architecture}_gb_second"]
    return (
        what,
        f"{usage['write_unit'] - index_units:.3f}",
        f"{index_units:.3f}",
        f"{usage['read_unit']:.3f}",
        f"{usage['sqs_request']:.3f}",
        f"{usage['lambda_request']:.3f}",
        f"{gb_seconds / deployed.memory_mb * MB_IN_GB * 1000:.1f}",
        f"{usage['log_gb'] * GB:,.0f}",
    )


def _index_share(counted: CountedEvents, what: str) -> float:
    """Return the write units of the index, which only accepting and firing write."""
    if what == RUSH:
        runs = [*counted.rush.accepted, *counted.rush.fired]
        return _index_units(_list_written(runs)) / SAMPLE
    return float(_index_units(_list_written(counted.lives[what])))


def _index_units(written: Iterable[Written]) -> int:
    return sum(write.index_units for write in written)


def _list_written(runs: Iterable[Invocation]) -> list[Written]:
    return [write for run in runs for request in run.requests for write in request.written]


def _steps(counted: CountedEvents) -> Mapping[str, Request]:
    """Return the requests that write an event, by their purpose."""
    first, second = (
        [request for request in run.requests if request.written]
        for run in counted.lives[FAILED_ONCE]
        if run.function == FIRE
    )
    [accept] = next(r.requests for r in counted.lives[SOON_LOG] if r.function == ACCEPT)
    names = ("accepted", "claimed", "put off after an attempt that failed", "claimed again", "done")
    return dict(zip(names, (accept, *first, *second), strict=True))


def _writes(counted: CountedEvents) -> Report:
    return Report(
        title="What the write units of an event are spent on",
        head=("", "in the table", "in the index"),
        rows=[
            (step, f"{sum(w.units for w in request.written)}", f"{_index_units(request.written)}")
            for step, request in _steps(counted).items()
        ],
        notes=("a sweep writes no event, and removal by TTL is free of charge, the index too",),
    )


def _idle(counted: CountedEvents) -> Report:
    """Return a table with one sweep's usage by price, and the cost of a month of sweeps."""
    sweep, month = counted.bill.usage([counted.idle]), counted.idle_month()
    prices = counted.bill.prices
    rows = [
        (name.replace("_", " "), _quantity(sweep[name]), _quantity(month[name]), dollar(cost))
        for name in month
        if (cost := prices.cost({name: month[name]}))
    ]
    total = ("together", "", "", dollar(prices.cost(month)))
    return Report(
        title="A sweep that finds nothing",
        head=("", "a minute", f"a month of {counted.sweeps_a_month:,}", "$ a month"),
        rows=[*rows, total],
    )


def _quantity(quantity: float) -> str:
    return f"{quantity:,.3g}" if quantity < 1 else f"{quantity:,.0f}"


def _an_hour(counted: CountedEvents) -> Report:
    deployed, usage = counted.bill.deployed, counted.in_a_rush()
    of_index = _index_share(counted, RUSH)
    most = deployed.most_at_once
    rows = [
        ("events a second", PER_SECOND, ""),
        ("requests a second to accept as many", PER_SECOND, deployed.most_requests_a_second),
        (
            "write units a second of the table",
            PER_SECOND * (usage["write_unit"] - of_index),
            NEW_TABLE_WRITES,
        ),
        ("write units a second of the index", PER_SECOND * of_index, NEW_TABLE_WRITES),
        ("of these, of the fullest shard", _fullest(counted) * _busiest_key(counted), KEY_WRITES),
        ("of these, if there were but one shard", PER_SECOND * _busiest_key(counted), KEY_WRITES),
        ("read units of the sweep of a minute", _read_units(counted.rush.swept), ""),
        ("seconds that it takes", _seconds(counted, [counted.rush.swept]), _timeout(counted)),
        ("concurrent runs of distribute_timers", _at_once(counted, DISTRIBUTE), most[DISTRIBUTE]),
        ("concurrent runs of fire_timers", _at_once(counted, FIRE), most[FIRE]),
    ]
    told = [(what, f"{value:,.1f}", f"{limit:,}" if limit else "") for what, value, limit in rows]
    return Report(
        title=f"{AN_HOUR:,} events an hour, each far ahead, to the log",
        head=("", "used", "the most there is"),
        rows=[*told, *_headroom(counted)],
        notes=(f"$ an hour: {dollar(counted.bill.prices.cost(usage) * AN_HOUR)}",),
    )


def _headroom(counted: CountedEvents) -> Iterator[Sequence[str]]:
    """Yield what the same limits allow at the least."""
    a_second = SHARDS * KEY_WRITES / _busiest_key(counted)
    yield (f"events an hour that {SHARDS} shards take", "", f"{a_second * 3_600:,.0f}")
    most = counted.bill.deployed.most_at_once[FIRE]
    batch = counted.bill.deployed.fire_batch
    a_batch = _seconds(counted, counted.rush.fired) / len(counted.rush.fired)
    runs = most * batch / a_batch
    yield (f"events an hour that {most} runs of fire_timers take", "", f"{runs * 3_600:,.0f}")
    swept = A_MINUTE * _timeout(counted) / _seconds(counted, [counted.rush.swept])
    yield ("events due in one minute that its sweep sends on in time", "", f"{swept:,.0f}")
    left = most * batch / PER_SECOND - a_batch
    yield ("seconds that the slowest target of a batch may take", "", f"{left:.1f}")


def _busiest_key(counted: CountedEvents) -> int:
    """Return an event's units under the key of active events, where it is put and deleted."""
    steps = _steps(counted)
    gone, new = _index_units(steps["done"].written), _index_units(steps["accepted"].written)
    return new + gone // 2


def _fullest(counted: CountedEvents) -> float:
    """Return the events a second of the fullest shard."""
    return PER_SECOND * max(counted.rush.shards) / A_MINUTE


def _read_units(run: Invocation) -> float:
    return sum(request.read_units for request in run.requests)


def _seconds(counted: CountedEvents, runs: Iterable[Invocation]) -> float:
    gb = counted.bill.deployed.memory_mb / MB_IN_GB
    return sum(counted.bill.gb_seconds(run) for run in runs) / gb


def _timeout(counted: CountedEvents) -> int:
    return counted.bill.deployed.sweep_timeout_seconds


def _at_once(counted: CountedEvents, function: str) -> float:
    """Return the average number of concurrent runs."""
    rush = counted.rush
    runs, events = {
        DISTRIBUTE: (rush.distributed, A_MINUTE),
        FIRE: (rush.fired, SAMPLE),
    }[function]
    return per_view({"s": _seconds(counted, runs)}, events)["s"] * PER_SECOND
