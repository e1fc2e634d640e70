"""A model of the stages of a view at any size: each stage's demand a second, and its limits.

The inputs are the traffic, the counted units of the handlers, the deployed settings, and the
assumptions. The model has no capacity units or batch sizes of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.aws_events import WINDOWS
from bench.cost.bill import Bill, Prices, interpolated
from bench.cost.deployed import Deployed
from bench.cost.invocations import FOLD, FOLD_EACH, GET, PUT, PUT_EACH, Invocation
from bench.cost.metering import Request
from bench.cost.view_usage import DAY
from bench.scale.contention import Latency
from bench.scale.one_id import Badge, Wallet, simulate
from bench.scale.usage import Units, transactions
from chalicelib.concurrency import THREADS
from chalicelib.counting.badge_count import MAX_LIVE
from chalicelib.counting.count_at_once import AT_ONCE, HOT_SECONDS
from chalicelib.settings import HOT_VIEWS

QUOTAS = Path(__file__).parent / "quotas.json"
EXACT_RANKS = 100
RANK_STEP = 1.05
"""Badges after the first hundred are in groups; the last rank of each is 5% above its first."""
TRANSACTION_ROUNDS = 2
"""A transaction is prepared, then committed, so it takes as long as two requests."""
SIMULATED = (1, 10, AT_ONCE)
"""The views of a batch for which the simulation gives the highest rate of a hot badge."""
RATE_STEP = 5
"""The difference between the rates of a search for the highest one that is carried."""
GUESSED_STEPS = {Badge: 9, Wallet: 14}
"""The steps with which the search begins; they change only its time."""
PUT_AT_ONCE = 25
"""The items of one BatchWriteItem (DynamoDB API reference)."""
STREAM_RECORDS_OF_AN_ITEM = 2
"""Each item is put and removed: a view, a marker of a window, a marker of a counted view."""
FOLD_ROUNDS = 3
"""A fold reads the summary, then the views, and writes the summary."""


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota of AWS for an account or a resource, with its source."""

    service: str
    name: str
    default: float
    most: str
    source: str

    @property
    def label(self) -> str:
        return f"{self.service}: {self.name}"


def quotas() -> dict[str, Quota]:
    """Return the quotas by their names in the model."""
    content = json.loads(QUOTAS.read_text())["quotas"]
    return {name: Quota(**quota) for name, quota in content.items()}


def tiers(price: str) -> list[tuple[float, float]]:
    """Return the tiers of a price: the first request of a month, and dollars per request."""
    content = json.loads(QUOTAS.read_text())["tiers"]
    return [(millions * 1e6, usd / 1e6) for millions, usd in content[price]]


def in_tiers(requests: float, steps: Sequence[tuple[float, float]]) -> float:
    """Return the dollars for requests, each tier by its own price."""
    ends = [*(start for start, _ in steps[1:]), math.inf]
    return sum(
        max(0.0, min(requests, end) - start) * usd
        for (start, usd), end in zip(steps, ends, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Group:
    """Badges with the same number of views: each has this share of all views."""

    share: float
    badges: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """Views, and their distribution by Zipf: the badge of rank k has k^-exponent of the first's.

    `peak` is the ratio of the busiest rate to the average rate.
    """

    views_a_day: int
    badges: int
    exponent: float = 1.0
    peak: float = 3.0

    @property
    def mean(self) -> float:
        """The average views a second."""
        return self.views_a_day / DAY

    @property
    def at_peak(self) -> float:
        return self.mean * self.peak

    def groups(self) -> tuple[Group, ...]:
        """Return all badges, from the hottest on."""
        return _groups(self.badges, self.exponent)

    @property
    def hottest(self) -> float:
        """The share of the hottest badge."""
        return self.groups()[0].share


@cache
def _groups(badges: int, exponent: float) -> tuple[Group, ...]:
    parts = [(rank**-exponent, 1.0) for rank in range(1, min(badges, EXACT_RANKS) + 1)]
    first = EXACT_RANKS + 1
    while first <= badges:
        last = min(badges, max(first, int(first * RANK_STEP)))
        parts.append((((first + last) / 2) ** -exponent, last - first + 1.0))
        first = last + 1
    total = sum(weight * number for weight, number in parts)
    return tuple(Group(weight / total, number) for weight, number in parts)


@dataclass(frozen=True, slots=True)
class Cycle:
    """The phases of a hot badge in seconds, and the read units of a GET in each.

    The badge is warming while its views are stored. These views stand until their grace is over and
    they are folded. Then the badge is quiet: a GET reads only its summary, until the hot hour ends.
    """

    warming: float
    standing: float
    quiet: float
    warming_reads: float
    standing_reads: float
    quiet_reads: float

    @property
    def seconds(self) -> float:
        return self.warming + self.standing + self.quiet

    @property
    def stored(self) -> float:
        """The share of its views that are stored."""
        return self.warming / self.seconds

    def read_of_get(self, seconds: float = math.inf) -> float:
        """Return the average read units of a GET, over the first seconds of the cycle."""
        spans = (
            (self.warming, self.warming_reads),
            (self.standing, self.standing_reads),
            (self.quiet, self.quiet_reads),
        )
        left, total, most = min(seconds, self.seconds), 0.0, min(seconds, self.seconds)
        for span, units in spans:
            total += min(left, span) * units
            left -= min(left, span)
        return total / most


@dataclass(frozen=True, slots=True)
class Load:
    """The demand of a rate of views, a second; `batch` is the views in a batch of `put_views`.

    `badges` are the badges of all batches, `stored` the views that are stored, `folds` the markers
    that TTL removes, each of which causes the fold of a badge.
    """

    rate: float
    batch: float
    badges: float
    writes: float
    reads: float
    stored: float
    folds: float
    records: float
    hot_batches: float

    @property
    def batches(self) -> float:
        return self.rate / self.batch


@dataclass(frozen=True, slots=True)
class Model:
    """The counted `units`, and the `bill` with the deployed, measured and assumed values."""

    units: Units
    bill: Bill

    @property
    def deployed(self) -> Deployed:
        return self.bill.deployed

    @property
    def prices(self) -> Prices:
        return self.bill.prices

    @property
    def life(self) -> float:
        """The seconds until a view is folded: until its grace is over, and the delay of TTL."""
        return self.until_over + float(self.prices.assumed["ttl_delay_seconds"])

    @property
    def until_over(self) -> float:
        """The average seconds until the grace of a view is over: half a window, and the grace."""
        return WINDOWS.window / 2 + WINDOWS.grace

    # ---- batches and badges

    def batch(self, rate: float) -> float:
        """Return the views in a batch, which each poller collects for a window, up to the limit."""
        pollers = float(self.prices.assumed["pollers"])
        collected = rate * self.deployed.put_window_seconds / pollers
        return min(float(self.deployed.put_batch), max(1.0, collected))

    def load(self, traffic: Traffic, rate: float) -> Load:
        """Return the load of all badges together, at this many views a second."""
        batch = self.batch(rate)
        parts = [(group, self._of_badge(rate, group.share, batch)) for group in traffic.groups()]
        sums = {
            name: sum(getattr(load, name) * group.badges for group, load in parts)
            for name in Load.__dataclass_fields__
            if name not in ("rate", "batch")
        }
        return Load(rate=rate, batch=batch, **sums)

    def _of_badge(self, all_rate: float, share: float, batch: float) -> Load:
        """Return the load of one badge, which is hot if it has enough views."""
        rate = all_rate * share
        batches = all_rate / batch * in_a_batch(share, batch)
        if rate * self.life >= HOT_VIEWS:
            return self._of_hot(rate, batches)
        units, folds = self.units, occupied(rate, WINDOWS.window)
        writes = rate * units.view + folds * (units.marker + units.count)
        writes += occupied(rate, DAY) * units.day
        return Load(
            rate=rate,
            batch=batch,
            badges=batches,
            writes=writes,
            reads=rate * units.read_of_get(rate * self.life)
            + folds * units.read_of_fold(rate / folds),
            stored=rate,
            folds=folds,
            records=(rate + folds) * STREAM_RECORDS_OF_AN_ITEM + folds,
            hot_batches=0.0,
        )

    def _of_hot(self, rate: float, batches: float) -> Load:
        units, cycle = self.units, self.cycle(rate)
        stored = rate * cycle.stored
        at_once = batches * (1 - cycle.stored)
        of_a_batch = rate / batches
        folds = (cycle.warming / WINDOWS.window + 1) / cycle.seconds
        writes = stored * units.view + folds * (units.marker + units.count) + units.day / DAY
        writes += at_once * units.hot_batch(of_a_batch)
        reads = (
            rate * cycle.read_of_get()
            + folds * units.read_of_fold(stored / folds)
            + at_once * units.look * transactions(of_a_batch)
        )
        reads += batches * cycle.standing / cycle.seconds * units.overdue
        return Load(
            rate=rate,
            batch=of_a_batch,
            badges=batches,
            writes=writes,
            reads=reads,
            stored=stored,
            folds=folds,
            records=(rate + folds) * STREAM_RECORDS_OF_AN_ITEM + at_once,
            hot_batches=at_once,
        )

    def cycle(self, rate: float, standing: float = 0.0) -> Cycle:
        """Return the cycle of a badge with this rate; `standing` overrides the average."""
        read = self.units.read_of_get
        standing = standing or self.until_over
        return Cycle(
            warming=HOT_VIEWS / rate,
            standing=standing,
            quiet=HOT_SECONDS - standing,
            warming_reads=self.units.read_while_warming,
            standing_reads=read(min(HOT_VIEWS, rate * self.until_over)),
            quiet_reads=read(0),
        )

    # ---- the functions

    def get_ms(self, live: int = 0) -> float:
        """Return the milliseconds of a GET with this many live views."""
        return self.bill.billed_ms(Invocation(GET, live, (Request("Query"),), sends=1))

    def put_ms(self, views: float, badges: float, hot: float = 0.0) -> float:
        """Return the milliseconds of a batch; hot badges run concurrently, items are put by 25.

        The model assumes that each badge that is not hot puts a marker too, which is the maximum.
        """
        waiting = self._rounds(hot) * (TRANSACTION_ROUNDS + 1)
        if badges > hot:
            waiting += math.ceil(views / PUT_AT_ONCE) + math.ceil((badges - hot) / PUT_AT_ONCE)
        return self._ms(PUT, PUT_EACH, views, badges, waiting)

    def fold_ms(self, views: float, badges: float) -> float:
        """Return the milliseconds of a batch with a marker per badge; badges fold concurrently."""
        return self._ms(FOLD, FOLD_EACH, views, badges, self._rounds(badges) * FOLD_ROUNDS)

    def fold_a_second(self, views_of_a_fold: float) -> float:
        """Return the markers a second in successive full batches, at `ParallelizationFactor` 1."""
        full = self.deployed.fold_batch
        return full * 1000 / self.fold_ms(full * views_of_a_fold, full)

    def _rounds(self, badges: float) -> int:
        return math.ceil(badges / THREADS)

    def _ms(
        self, function: str, of_each: str, records: float, badges: float, waiting: float
    ) -> float:
        """Return whole milliseconds; the cost per badge comes from batches of 1 and 100 badges."""
        one, each = (_cpu_ms(self.prices, name) for name in (function, of_each))
        cpu = interpolated(one, math.ceil(records))
        cpu += (max(badges, 1) - 1) * (each[100] - one[100]) / 99
        return math.ceil(cpu / self.vcpus + waiting * self.request_ms)

    @property
    def request_ms(self) -> float:
        return float(self.prices.assumed["waiting_ms"]["dynamodb"])

    @property
    def transaction_ms(self) -> float:
        return TRANSACTION_ROUNDS * self.request_ms

    @property
    def latency(self) -> Latency:
        """Return the latency of a request, and the CPU time of `put_views` by its views."""
        cpu = _cpu_ms(self.prices, PUT)
        each = (cpu[100] - cpu[1]) / 99
        second = 1000 * self.vcpus
        return Latency(self.request_ms / 1000, (cpu[1] - each) / second, each / second)

    @property
    def vcpus(self) -> float:
        """The share of a processor that a function has."""
        return self.deployed.memory_mb / float(self.prices.assumed["vcpu_mb"])

    # ---- one id

    @property
    def lag(self) -> float:
        """The seconds from a GET until its view is in the table."""
        batch = self.deployed.put_batch
        return self.deployed.put_window_seconds + self.put_ms(batch, 1) / 1000

    def live_when_hot(self, rate: float) -> float:
        """Return the live views when a hot badge's first message that says so is put."""
        return HOT_VIEWS + rate * self.lag

    def becoming_hot(self, most_reads: float) -> int:
        """Return the views a second whose GETs one partition can serve while old views stand."""
        return highest(
            lambda rate: rate * self.units.read_of_get(self.live_when_hot(rate)) <= most_reads
        )

    def badge(self, views: int) -> Badge:
        """Return the simulation of a hot badge; one view stands for all of its transaction."""
        return Badge(
            self.latency.with_more(views - 1),
            self.deployed.most_at_once[PUT],
            self.deployed.put_visibility_seconds,
        )

    def batches_carried(self, views: float) -> float:
        """Return the batches a second of a hot badge that are carried, by the simulation."""
        carried = {size: float(highest_carried(self.badge(size))) for size in SIMULATED}
        return interpolated(carried, math.ceil(views))

    def among_others(self, rate: float) -> float:
        """Return the most views a second of one hot id among `rate`, by the simulation."""
        batch = self.batch(rate)

        def fits(share: float) -> bool:
            batches = rate / batch * in_a_batch(share, batch)
            return batches <= self.batches_carried(share * rate / batches)

        low, high = 0.0, 1.0
        if fits(high):
            return rate
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low * rate

    def exact_if_stored(self) -> float:
        """Return the views a second whose live views a GET can still count."""
        return MAX_LIVE / self.life


def occupied(rate: float, seconds: float) -> float:
    """Return how many spans of time a second have a view, if views come by chance."""
    return (1 - math.exp(-rate * seconds)) / seconds


def in_a_batch(share: float, batch: float) -> float:
    """Return the probability that a badge with this share is in a batch of this many views."""
    return 1.0 - (1.0 - share) ** batch if share < 1 else 1.0


def highest(fits: Callable[[int], bool], guess: int = 1) -> int:
    """Return the largest whole number that fits, if every smaller one does.

    The search begins at a guess. It takes few steps if the guess is near.
    """
    low, high = _bounds(fits, guess)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _bounds(fits: Callable[[int], bool], guess: int) -> tuple[int, int]:
    """Return a number that fits, or 0, and one that does not, in longer and longer steps."""
    step = 1
    if fits(guess):
        while fits(guess + step):
            guess, step = guess + step, 2 * step
        return guess, guess + step
    while guess > step and not fits(guess - step):
        guess, step = guess - step, 2 * step
    return max(0, guess - step), guess


@cache
def highest_carried(writers: Badge | Wallet) -> int:
    """Return the highest multiple of `RATE_STEP` a second that the simulation carries."""

    def carries(steps: int) -> bool:
        return simulate(writers, steps * RATE_STEP).is_carried

    return RATE_STEP * highest(carries, GUESSED_STEPS[type(writers)])


def _cpu_ms(prices: Prices, function: str) -> dict[int, float]:
    of_size: Mapping[str, float] = prices.measured["cpu_ms"][function]["vu-mi"]
    return {int(size): ms for size, ms in of_size.items()}


@dataclass(frozen=True, slots=True)
class Stage:
    """The demand on one stage at peak, its limit as deployed, and its default quota.

    `setting` names the setting of the stack or its table to raise if `deployed` is not enough,
    `asks` the quota of AWS to raise if `quota` is not enough.
    """

    name: str
    need: float
    deployed: float
    quota: float
    setting: str
    asks: str

    @property
    def over(self) -> float:
        """The ratio of the demand to the deployed limit."""
        return self.need / self.deployed

    @property
    def over_quota(self) -> float:
        return self.need / self.quota


HOTTEST = "views a second of the hottest id"
NEW_TABLE = "warm throughput of the table, "


def stages(model: Model, traffic: Traffic) -> list[Stage]:
    """Return every stage of a view, at the peak of traffic; the last is the hottest id."""
    return list(_stages(model, traffic))


def _stages(model: Model, traffic: Traffic) -> Iterator[Stage]:
    known = quotas()
    rate, load, deployed = traffic.at_peak, model.load(traffic, traffic.at_peak), model.deployed
    at_once = seconds_of_functions(model, load)

    def stage(name: str, need: float, quota: str, now: float = 0.0, setting: str = "") -> Stage:
        of_aws = known[quota]
        return Stage(name, need, now or of_aws.default, of_aws.default, setting, of_aws.label)

    requests = deployed.most_requests_a_second
    yield stage("requests a second to the API", rate, "api_requests", requests, "RequestsPerSecond")
    yield stage("concurrent functions", sum(at_once.values()), "concurrent_executions")
    each = known["invocations_of_each"].default
    yield stage(
        "concurrent functions, ten requests a second each", rate / each, "concurrent_executions"
    )
    most, put = deployed.most_at_once[PUT], "MaximumConcurrency of PutViews"
    yield stage("concurrent put_views", at_once[PUT], "put_views_at_once", most, put)
    waiting = load.rate * deployed.put_window_seconds + at_once[PUT] * load.batch
    yield stage("messages in flight", waiting, "in_flight")
    new = {what: known[f"new_table_{what}"].default for what in ("writes", "reads")}
    write, read = (NEW_TABLE + what for what in new)
    yield stage("write units a second", load.writes, "table_writes", new["writes"], write)
    yield stage("read units a second", load.reads, "table_reads", new["reads"], read)
    yield stage(
        "concurrent fold_views of a shard",
        folds_of_a_shard(load) / model.fold_a_second(load.stored / load.folds),
        "fold_at_once",
        deployed.fold_batches_of_a_shard,
        "ParallelizationFactor of FoldViews",
    )
    carried = most_of_one_id(model, rate)
    yield Stage(HOTTEST, traffic.hottest * rate, carried, carried, "", "")


def most_of_one_id(model: Model, rate: float) -> float:
    """Return the most views a second of one id with exact counts, the least of its bounds."""
    most = quotas()
    reading = model.becoming_hot(most["partition_reads"].default)
    others = model.among_others(max(rate, reading))
    return min(float(reading), others)


def shards(load: Load) -> int:
    """Return the shards, one per partition: those of a new table, or those its units need."""
    most = {name: quota.default for name, quota in quotas().items()}
    return max(
        math.ceil(most["new_table_writes"] / most["partition_writes"]),
        math.ceil(load.writes / most["partition_writes"]),
        math.ceil(load.reads / most["partition_reads"]),
    )


def folds_of_a_shard(load: Load) -> float:
    """Return the folds a second of a shard; markers are spread evenly."""
    return load.folds / shards(load)


def fold_batches(model: Model, load: Load) -> float:
    """Return the fold batches a second; a shard's window collects up to a full batch."""
    of_a_shard = folds_of_a_shard(load)
    by_window = min(of_a_shard, 1 / model.deployed.fold_window_seconds)
    return shards(load) * max(by_window, of_a_shard / model.deployed.fold_batch)


def seconds_of_functions(model: Model, load: Load) -> dict[str, float]:
    """Return the seconds of each function per second, which is also its concurrency."""
    folds = fold_batches(model, load)
    fold_ms = model.fold_ms(load.stored / folds, max(1.0, load.folds / folds))
    badges, hot = load.badges / load.batches, load.hot_batches / load.batches
    return {
        GET: load.rate * model.get_ms() / 1000,
        PUT: load.batches * model.put_ms(load.batch, badges, hot) / 1000,
        FOLD: folds * fold_ms / 1000,
    }
