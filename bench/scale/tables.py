"""The tables of `scale`: the first limit at each size, the hottest id, dollars, quotas."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from bench.cost.bill import GB, HTTP, MB_IN_GB, RECEIVED_AT_ONCE, REST, Usage
from bench.cost.invocations import GET
from bench.scale import one_id_tables
from bench.scale.figures import DAY_SECONDS, figure
from bench.scale.model import (
    HOTTEST,
    Model,
    Stage,
    Traffic,
    fold_batches,
    folds_of_a_shard,
    in_tiers,
    most_of_one_id,
    quotas,
    seconds_of_functions,
    shards,
    stages,
    tiers,
)
from simulation.report import Report

SIZES = (1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
"""Views a day."""
VIEWS_OF_A_BADGE = 100
"""The average views a day of a badge, which gives the number of badges."""
FLATTER = 0.8
"""The second exponent of Zipf; the first is 1."""
BUSY = 0.7
"""The share of a limit that should not be exceeded."""


def traffic_of(views_a_day: int, exponent: float = 1.0) -> Traffic:
    """Return the traffic of a size, by the assumptions of all tables."""
    return Traffic(views_a_day, views_a_day // VIEWS_OF_A_BADGE, exponent)


def reports(model: Model) -> Iterator[Report]:
    """Yield all tables."""
    yield _first(model)
    yield _stages(model)
    yield _to_raise(model)
    yield _hottest(model)
    yield from one_id_tables.reports(model)
    yield _dollars(model)
    yield _alternatives(model)
    yield _of_a_view(model)
    yield _quotas()
    yield _inputs(model)


def _first(model: Model) -> Report:
    return Report(
        title="The first limit at each size",
        head=(
            "views a day",
            "a second",
            "at peak",
            "first limit as deployed",
            "first limit by the default quotas",
            "the hottest id",
        ),
        rows=[_first_row(model, size) for size in SIZES],
        notes=(
            "each figure is the load at peak, divided by the limit",
            "as deployed: the settings of the stack, and a new table",
            "the hottest id: its load, divided by the rate of one id, which no quota raises",
        ),
    )


def _first_row(model: Model, size: int) -> Sequence[str]:
    traffic = traffic_of(size)
    *of_aws, hottest = stages(model, traffic)
    first = max(of_aws, key=lambda stage: stage.over)
    by_quota = max(of_aws, key=lambda stage: stage.over_quota)
    return (
        f"{size:,}",
        f"{traffic.mean:,.1f}",
        f"{traffic.at_peak:,.1f}",
        f"{first.name}: {_times(first.over)}",
        f"{by_quota.name}: {_times(by_quota.over_quota)}",
        _times(hottest.over),
    )


def _times(number: float) -> str:
    return f"{number:,.2f}" if number > 0.1 else f"{number:,.3f}"  # noqa: PLR2004


def _stages(model: Model) -> Report:
    columns = [stages(model, traffic_of(size)) for size in SIZES]
    rows = [_stage_row(of_all) for of_all in zip(*columns, strict=True)]
    loads = [model.load(traffic_of(size), traffic_of(size).at_peak) for size in SIZES]
    more: Mapping[str, Sequence[float]] = {
        "batches of put_views a second": [load.batches for load in loads],
        "views of a batch": [load.batch for load in loads],
        "batches of fold_views a second": [fold_batches(model, load) for load in loads],
        "shards of the stream, as many as partitions": [float(shards(load)) for load in loads],
        "records a second of a shard": [load.records / shards(load) for load in loads],
        "markers removed a second of a shard": [folds_of_a_shard(load) for load in loads],
    }
    rows += [(what, *map(figure, figures), "", "") for what, figures in more.items()]
    return Report(
        title="The load of each stage at peak",
        head=("", *(f"{size:,}" for size in SIZES), "as deployed", "default quota"),
        rows=rows,
        notes=("by views a day; a load above the limit as deployed is in bold",),
    )


def _stage_row(of_all: Sequence[Stage]) -> Sequence[str]:
    cells = [_bold(figure(stage.need), bold=stage.over > 1) for stage in of_all]
    if of_all[0].name == HOTTEST:
        return (HOTTEST, *cells, "varies", "varies")
    return (of_all[0].name, *cells, figure(of_all[0].deployed), figure(of_all[0].quota))


def _bold(text: str, *, bold: bool) -> str:
    return f"**{text}**" if bold else text


def _to_raise(model: Model) -> Report:
    """List settings of the stack, then quotas of AWS, each with the value that it needs."""
    columns = [stages(model, traffic_of(size)) for size in SIZES]
    of_stack: dict[str, list[float]] = {}
    of_aws: dict[str, list[float]] = {}
    for place, column in enumerate(columns):
        for stage in column:
            if stage.setting and stage.over > BUSY:
                of_stack.setdefault(stage.setting, [0.0] * len(SIZES))[place] = stage.need / BUSY
            if stage.asks and stage.over_quota > BUSY:
                values = of_aws.setdefault(stage.asks, [0.0] * len(SIZES))
                values[place] = max(values[place], stage.need / BUSY)
    return Report(
        title="Values to request",
        head=("", *(f"{size:,}" for size in SIZES)),
        rows=[
            (name, *(_rounded_up(value) for value in values))
            for name, values in (of_stack | of_aws).items()
        ],
        notes=(
            f"where the peak uses more than {BUSY} of a limit: the value of which it uses {BUSY}",
            "a new account may have fewer concurrent executions than the default",
        ),
    )


def _rounded_up(value: float) -> str:
    """Round up to two digits."""
    if not value:
        return ""
    step = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / step) * step:,}"


def _quotas() -> Report:
    return Report(
        title="Quotas of AWS",
        head=("", "default", "can be raised"),
        rows=[(quota.label, f"{quota.default:,.0f}", quota.most) for quota in quotas().values()],
        notes=[f"{quota.name}: {quota.source}" for quota in quotas().values()],
    )


def _hottest(model: Model) -> Report:
    rows = []
    for size in SIZES:
        cells = [f"{size:,}"]
        for exponent in (1.0, FLATTER):
            traffic = traffic_of(size, exponent)
            cells += [
                f"{traffic.hottest:.2%}",
                figure(traffic.hottest * traffic.at_peak),
            ]
        carried = most_of_one_id(model, traffic_of(size).at_peak)
        rows.append((*cells, figure(carried), _share(carried / traffic_of(size).at_peak)))
    return Report(
        title="The hottest id",
        head=(
            "views a day",
            "its share",
            "a second at peak",
            f"share by exponent {FLATTER}",
            "a second at peak then",
            "one id carries",
            "its share of all views",
        ),
        rows=rows,
        notes=("shares by Zipf, with exponent 1 unless the column says otherwise",),
    )


def _share(of_all: float) -> str:
    return f"{of_all:.2%}" if of_all < 1 else "all"


SERVICES = ("API Gateway", "Lambda", "SQS", "reads", "writes", "logs")


def _dollars(model: Model) -> Report:
    rows = []
    for size in SIZES:
        costs = dollars(model, traffic_of(size))
        total = sum(costs.values())
        month = size * _days(model)
        cells = (*(f"{costs[name]:,.0f}" for name in SERVICES), f"{total:,.0f}")
        rows.append((f"{size:,}", *cells, f"{total / month * 1e6:,.2f}"))
    return Report(
        title="$ a month",
        head=("views a day", *SERVICES, "together", "$ per million views"),
        rows=rows,
        notes=("reads and writes are those of DynamoDB; API Gateway has a price for each tier",),
    )


def _days(model: Model) -> float:
    return float(model.prices.assumed["hours_a_month"]) / 24


def dollars(model: Model, traffic: Traffic, api: str = HTTP) -> dict[str, float]:
    """Return the dollars of a month of average traffic, by service."""
    seconds = _days(model) * DAY_SECONDS
    usage = {name: much * seconds for name, much in used(model, traffic).items()}
    prices, gb_seconds = model.prices, f"lambda_{model.deployed.architecture}_gb_second"
    return {
        "API Gateway": in_tiers(traffic.mean * seconds, tiers(api)),
        "Lambda": prices.cost({name: usage[name] for name in ("lambda_request", gb_seconds)}),
        "SQS": prices.cost({"sqs_request": usage["sqs_request"]}),
        "reads": prices.cost({"read_unit": usage["read_unit"]}),
        "writes": prices.cost({"write_unit": usage["write_unit"]}),
        "logs": prices.cost({"log_gb": usage["log_gb"]}),
    }


def used(model: Model, traffic: Traffic) -> Usage:
    """Return the usage of a second of average traffic, without the requests to the API."""
    load, units = model.load(traffic, traffic.mean), model.units
    folds = fold_batches(model, load)
    polls = 2 * max(1.0, load.batch / RECEIVED_AT_ONCE)
    memory = model.deployed.memory_mb / MB_IN_GB
    log = load.batches * units.put_log + folds * units.fold_log
    return {
        "lambda_request": load.rate + load.batches + folds,
        f"lambda_{model.deployed.architecture}_gb_second": memory
        * sum(seconds_of_functions(model, load).values()),
        "sqs_request": load.rate + load.batches * polls,
        "read_unit": load.reads,
        "write_unit": load.writes,
        "log_gb": log / GB,
    }


def _alternatives(model: Model) -> Report:
    rows: dict[str, list[float]] = {
        "as deployed": [],
        "with a REST API": [],
        f"as deployed, the exponent of Zipf {FLATTER}": [],
    }
    for size in SIZES:
        traffic = traffic_of(size)
        figures = (
            sum(dollars(model, traffic).values()),
            sum(dollars(model, traffic, REST).values()),
            sum(dollars(model, traffic_of(size, FLATTER)).values()),
        )
        for name, dollar in zip(rows, figures, strict=True):
            rows[name].append(dollar)
    return Report(
        title="$ a month, with alternatives",
        head=("", *(f"{size:,}" for size in SIZES)),
        rows=[(name, *(f"{figure:,.0f}" for figure in row)) for name, row in rows.items()],
    )


def _of_a_view(model: Model) -> Report:
    """Return the average of a view, which determines the cost."""
    loads = {size: model.load(traffic_of(size), traffic_of(size).mean) for size in SIZES}
    rows = {
        "write units": [load.writes / load.rate for load in loads.values()],
        "read units": [load.reads / load.rate for load in loads.values()],
        "views of a batch": [load.batch for load in loads.values()],
        "folds of a view that is stored": [load.folds / load.stored for load in loads.values()],
        "share of views that are stored": [load.stored / load.rate for load in loads.values()],
    }
    return Report(
        title="A view, on average",
        head=("", *(f"{size:,}" for size in SIZES)),
        rows=[(what, *(f"{figure:,.3f}" for figure in row)) for what, row in rows.items()],
    )


def _inputs(model: Model) -> Report:
    assumed, deployed = model.prices.assumed, model.deployed
    batch, full = deployed.put_batch, deployed.fold_batch
    rows = {
        "views of a badge a day": VIEWS_OF_A_BADGE,
        "times the average at peak": traffic_of(SIZES[0]).peak,
        "exponent of Zipf": traffic_of(SIZES[0]).exponent,
        "seconds that TTL is late": assumed["ttl_delay_seconds"],
        "seconds that a view is live": model.life,
        "pollers of the queue": assumed["pollers"],
        "ms of a request to DynamoDB": assumed["waiting_ms"]["dynamodb"],
        "ms of a transaction": model.transaction_ms,
        "ms of processor time of a run with a write": 1000 * model.latency.with_more(1).fixed,
        "ms of processor time for each further write": 1000 * model.latency.each,
        "seconds from a GET to its view in the table": model.lag,
        "ms of a GET": seconds_of_functions(model, model.load(traffic_of(SIZES[0]), 1))[GET] * 1000,
        f"ms of put_views, {batch} views of one badge": model.put_ms(batch, 1),
        f"ms of put_views, {batch} badges": model.put_ms(batch, batch),
        f"ms of fold_views, {full:,} views of one badge": model.fold_ms(full, 1),
        f"ms of fold_views, {full:,} badges with a view each": model.fold_ms(full, full),
        "folds a second of a shard, of a view each": model.fold_a_second(1.0),
        "folds a second of a shard, of ten views each": model.fold_a_second(10.0),
        "$ per million of the first tier, REST API": tiers(REST)[0][1] * 1e6,
        "$ per million of the first tier, HTTP API": tiers(HTTP)[0][1] * 1e6,
    }
    return Report(
        title="Inputs of the model",
        head=("", ""),
        rows=[(what, figure(float(value))) for what, value in rows.items()],
    )
