"""The tables of `cost` for wallets: the cost of a request, and 20,000 postings a second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bench.cost.bill import GB, HTTP, Bill
from bench.cost.event_tables import KEY_WRITES
from bench.cost.event_usage import STORED_OVERHEAD_BYTES
from bench.cost.invocations import Invocation
from bench.cost.view_tables import MILLION, dollar
from bench.cost.wallet_usage import DEPOSIT, TRANSFER, CountedWallets
from chalicelib.wallets.wallet import HOT_SECONDS
from simulation.report import Report

DAY_SECONDS = 86_400
A_SECOND = 20_000
"""Requested postings."""
TABLE_WRITES = 40_000
"""The write units a second of an on-demand table by default (DynamoDB developer guide, "Quotas in
Amazon DynamoDB")."""


def reports(counted: CountedWallets) -> Iterator[Report]:
    """Yield all tables of wallets."""
    yield _requests(counted)
    yield _a_second(counted)
    yield _one_wallet(counted)
    yield _stored(counted)
    yield _archive(counted)


def _requests(counted: CountedWallets) -> Report:
    return Report(
        title="What is asked of wallets, and its units",
        head=(
            "",
            "requests to DynamoDB",
            "write units",
            "read units",
            "$ per million",
            "with API Gateway",
        ),
        rows=[_request_row(counted, what, run) for what, run in counted.runs.items()],
        notes=("without the time of the function, its requests and its log",),
    )


def _request_row(counted: CountedWallets, what: str, run: Invocation) -> Sequence[str]:
    units = _write_units(run)
    read = sum(request.read_units for request in run.requests)
    usage = {"write_unit": units, "read_unit": read}
    asked = counted.prices.cost({HTTP: 1})
    stored = counted.prices.cost(usage)
    return (
        what,
        f"{len(run.requests)}",
        f"{units}",
        f"{read:g}",
        dollar(stored * MILLION),
        dollar((stored + asked) * MILLION),
    )


def _write_units(run: Invocation) -> int:
    return sum(request.write_units for request in run.requests)


def _a_second(counted: CountedWallets) -> Report:
    deposits, transfers = (
        A_SECOND * _write_units(counted.runs[what]) for what in (DEPOSIT, TRANSFER)
    )
    of_api = A_SECOND * counted.prices.cost({HTTP: 1})
    write = counted.prices.cost({"write_unit": 1})
    rows = [
        ("requests a second", A_SECOND, A_SECOND, counted.deployed.most_requests_a_second),
        ("write units a second", deposits, transfers, TABLE_WRITES),
        ("partitions, each full", deposits / KEY_WRITES, transfers / KEY_WRITES, ""),
    ]
    dollars = [
        ("$ an hour of write units", deposits * write, transfers * write),
        ("$ an hour of API Gateway", of_api, of_api),
        ("together", deposits * write + of_api, transfers * write + of_api),
    ]
    told = [
        (what, f"{one:,.0f}", f"{other:,.0f}", f"{most:,}" if most else "")
        for what, one, other, most in rows
    ]
    told += [(what, dollar(one * 3_600), dollar(other * 3_600), "") for what, one, other in dollars]
    return Report(
        title=f"{A_SECOND:,} postings a second",
        head=("", "all deposits", "all transfers", "the most there is"),
        rows=told,
    )


def _one_wallet(counted: CountedWallets) -> Report:
    """Return the limits of one wallet; a transfer costs its source more, because of the nonce."""
    source, target = _of_each_wallet(counted.runs[TRANSFER])
    rows = [
        ("write units of a transfer that are its own", f"{source}", f"{target}"),
        ("write units a second that its partition takes", f"{KEY_WRITES:,}", f"{KEY_WRITES:,}"),
        ("transfers a second", f"{KEY_WRITES / source:,.1f}", f"{KEY_WRITES / target:,.1f}"),
    ]
    return Report(
        title="The most that one wallet moves",
        head=("", "as the source", "as the target"),
        rows=rows,
    )


def _stored(counted: CountedWallets) -> Report:
    """Return the stored bytes: a nonce forever, an entry of each wallet until TTL removes it."""
    prices = counted.prices
    nonces = (counted.nonce_bytes + STORED_OVERHEAD_BYTES) * MILLION / GB
    entries = 2 * (counted.entry_bytes + STORED_OVERHEAD_BYTES) * MILLION / GB
    days = (HOT_SECONDS + prices.assumed["ttl_delay_seconds"]) / DAY_SECONDS
    month = prices.cost({"stored_gb_month": 1, "pitr_gb_month": 1})
    rows = [
        ("bytes of a nonce", f"{counted.nonce_bytes}"),
        ("bytes of an entry", f"{counted.entry_bytes}"),
        ("GB of nonces, for good", f"{nonces:.3f}"),
        ("$ a month of them, with point-in-time recovery", f"{nonces * month:.4f}"),
        ("GB of entries", f"{entries:.3f}"),
        ("days that they are there", f"{days:.2f}"),
    ]
    return Report(title="What 1,000,000 transfers store", head=("", ""), rows=rows)


def _archive(counted: CountedWallets) -> Report:
    """Return the archive's cost; each transfer has two lines, and batches may not be full."""
    batches = 2 * MILLION / counted.deployed.archive_batch
    stored = sum(counted.archived.objects) * batches / GB
    prices, hours = counted.prices, counted.prices.assumed["hours_a_month"]
    bill = Bill(prices, counted.deployed, "vu-mi")
    of_batch, of_one = (
        prices.cost(bill.usage([run])) for run in (counted.archived, counted.archived_alone)
    )
    most = hours * 3_600 / counted.deployed.archive_window_seconds
    rows = [
        ("lines", f"{2 * MILLION:,}"),
        ("bytes of a line, compressed", f"{_line_bytes(counted):.0f}"),
        ("objects, where batches are full", f"{batches:,.0f}"),
        ("ms that a full batch is billed", f"{bill.billed_ms(counted.archived):,}"),
        ("$ of the runs and the objects", f"{of_batch * batches:.4f}"),
        ("GB stored", f"{stored:.3f}"),
        ("$ a month of them", f"{stored * prices.cost({'s3_gb_month': 1}):.4f}"),
        ("objects a month and shard, where few things move", f"{most:,.0f}"),
        ("$ of these and of their runs", f"{most * of_one:.4f}"),
    ]
    return Report(title="The archive of 1,000,000 transfers", head=("", ""), rows=rows)


def _line_bytes(counted: CountedWallets) -> float:
    return sum(counted.archived.objects) / counted.archived.records


def _of_each_wallet(run: Invocation) -> list[int]:
    """Return the write units by partition key, the most first."""
    units = Counter[str]()
    for write in (write for request in run.requests for write in request.written):
        units[write.key.pk] += write.units
    return sorted(units.values(), reverse=True)
