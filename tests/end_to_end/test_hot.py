"""A hot badge on DynamoDB: bounded, exact, and as expensive as the metered simulator says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

from moto import mock_aws

from bench.cost.hot import MANY, MOST_LIVE, VISITORS, Hour, lived
from bench.cost.metered_handlers import Machine, Requests, Sent, machine_of
from bench.cost.metering import Meter
from bench.cost.simulate_views import Agenda
from bench.handlers import handlers_over
from chalicelib.aws.clients import aws_client
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.counting import badge_count
from chalicelib.counting.view_queue import ViewMessages
from chalicelib.settings import HOT_VIEWS, Settings
from simulation.aws_table import create_table
from simulation.resources import GivenResources

MachineOn: TypeAlias = Callable[[Callable[[], float], int], AbstractContextManager[Machine]]


def test_a_hot_badge_stays_bounded_and_exact_and_loses_nothing() -> None:
    """The badge becomes hot after 40 s. Earlier views are folded at 900 s, though TTL is late.

    Nobody comes in the long time between, in which each second would be like the one before.
    """
    agenda = Agenda()
    with machine_of(lambda: agenda.now) as machine:
        hour = Hour(machine, agenda)
        hour.live_through(60)
        agenda.now += 825
        hour.live_through(25)
        assert hour.end() == hour.taken == 85 * VISITORS
    assert sum(request.read_units for request in hour.gets[59]) > 1
    assert HOT_VIEWS <= hour.most_live <= MOST_LIVE
    assert hour.inexact == 0
    assert sum(request.read_units for request in hour.gets[-1]) == 1


def test_without_counting_at_once_a_badge_exceeds_its_bound() -> None:
    """At 250 views a second, 8,000 are live after 32 s, so the test above can fail."""
    hour, kept = lived(34, MANY, visitors=10 * VISITORS)
    assert kept == hour.taken == 340 * VISITORS
    assert hour.most_live > badge_count.MAX_LIVE > MOST_LIVE
    assert hour.inexact > 0


@contextmanager
def metered(clock: Callable[[], float], hot_views: int) -> Iterator[Machine]:
    """Return the handlers over DynamoDB's own requests, on moto with a meter."""
    with mock_aws():
        client, weigher = aws_client("dynamodb"), aws_client("dynamodb")
        create_table(weigher, "hot")
        meter, queue = Meter(weigher), Sent()
        settings = Settings(hot_views=hot_views)
        given = GivenResources(
            table=DynamoTable(client, "hot"),
            views_queue=ViewMessages(queue),
            settings=settings,
            clock=clock,
        )
        with meter.watching(client), handlers_over(given):
            yield Machine(DynamoTable(weigher, "hot"), meter, queue.bodies)


def units(runs: Iterable[Requests]) -> list[list[tuple[float, int]]]:
    return [[(request.read_units, request.write_units) for request in run] for run in runs]


def both_ways(machine_on: MachineOn) -> Hour:
    """Simulate an hour of views, stored or counted at once, with a lower threshold."""
    agenda = Agenda()
    with machine_on(lambda: agenda.now, 60) as machine:
        hour = Hour(machine, agenda, visitors=16)
        hour.live_through(5)
        agenda.now += 900
        hour.live_through(3)
        assert hour.end() == hour.taken == 8 * 16
    return hour


def test_it_costs_what_the_metered_simulator_says() -> None:
    simulated, weighed = both_ways(metered), both_ways(machine_of)
    assert units(weighed.gets) == units(simulated.gets)
    assert units(weighed.others) == units(simulated.others)
    assert simulated.most_live == weighed.most_live > 60
