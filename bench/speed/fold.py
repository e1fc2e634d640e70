"""The stream lambda: views per second through `fold_views`, by engine and badges in a batch.

The thousand views of a batch are of one badge, with one update, or of a hundred badges, with a
hundred updates. SQLite commits to the disk. moto simulates DynamoDB in memory for boto's client, on
one thread, because it is not thread-safe.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from moto import mock_aws

from bench import aws_events as events
from bench.aws_events import WINDOWS
from bench.cost.simulate_views import Agenda, view_item
from bench.handlers import handlers_over
from bench.measuring import interleaved, medians, seconds
from chalicelib.aws import clients
from chalicelib.aws.consumers import fold_views
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.counting.summary import read
from chalicelib.storage.ports import Table
from simulation.aws_table import create_table
from simulation.environment import ENVIRONMENT
from simulation.report import Report
from simulation.resources import GivenResources
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable

ROUNDS = 5
VIEWS = 1_000
ONE, MANY = 1, 100
"""Badges in a batch."""


@dataclass(frozen=True, slots=True)
class Side:
    """Windows of this many badges, folded one after another over one engine."""

    engine: GivenResources
    agenda: Agenda
    badges: int

    def fold(self) -> float:
        """Fold the views of the next window; return the views per second."""
        taken_at = int(self.agenda.now * 1000)
        self.engine.table.put_all(
            [view_item(taken_at, self._badge_id(place)) for place in range(VIEWS)]
        )
        self.agenda.now += WINDOWS.window + WINDOWS.grace
        badge_ids = [self._badge_id(place) for place in range(self.badges)]
        batch = events.removals(badge_ids, self.agenda.now)
        with handlers_over(self.engine):
            return VIEWS / seconds(lambda: fold_views(batch, None))

    def counted(self) -> int:
        """Return the sum of the counts of all its badges."""
        table = self.engine.table
        return sum(read(table, self._badge_id(place)).count for place in range(self.badges))

    def _badge_id(self, place: int) -> str:
        return f"{self.badges}-badges/{place % self.badges}"


def measure() -> Report:
    """Fold the same batches over both engines, turn by turn, and check the counts."""
    agenda = Agenda()
    with _engines(agenda) as engines:
        sides = {
            (name, badges): Side(engine, agenda, badges)
            for name, engine in engines.items()
            for badges in (ONE, MANY)
        }
        rates = medians(interleaved(ROUNDS, {key: side.fold for key, side in sides.items()}))
        wrong = {key: side.counted() for key, side in sides.items()}
    wrong = {key: counted for key, counted in wrong.items() if counted != ROUNDS * VIEWS}
    return Report(
        title=f"fold: views per second, in batches of {VIEWS:,}",
        head=("engine", "1 badge", "100 badges", "100 badges / 1 badge"),
        rows=[*(_row(name, rates) for name in engines), _ratios(rates)],
        notes=(f"median of {ROUNDS} batches each, every view counted once",),
        failure=f"{ROUNDS * VIEWS:,} views were counted as {wrong}" if wrong else "",
    )


@contextmanager
def _engines(agenda: Agenda) -> Iterator[Mapping[str, GivenResources]]:
    def clock() -> float:
        return agenda.now

    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Database(Path(folder) / FILE)) as database,
        mock_aws(),
    ):
        given = partial(GivenResources, clock=clock)
        yield {
            "SQLite": given(table=SqliteTable(database), map_parallel=database.map_in_commits),
            "moto": given(table=_moto_table()),
        }


def _moto_table() -> Table:
    dynamodb = clients.aws_client("dynamodb")
    name = ENVIRONMENT["TABLE_NAME"]
    create_table(dynamodb, name)
    return DynamoTable(dynamodb, name)


def _row(engine: str, rates: Mapping[tuple[str, int], float]) -> tuple[str, ...]:
    one, many = rates[engine, ONE], rates[engine, MANY]
    return engine, f"{one:,.0f}", f"{many:,.0f}", f"{many / one:.3f}"


def _ratios(rates: Mapping[tuple[str, int], float]) -> tuple[str, ...]:
    ratios = [rates["SQLite", badges] / rates["moto", badges] for badges in (ONE, MANY)]
    return "SQLite / moto", *(f"{ratio:.2f}" for ratio in ratios), ""
