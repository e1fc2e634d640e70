"""The stream lambda: records per second through `fold_views`, by engine and users in a batch.

One user's batch is two updates, of the badge and of its day, a thousand users' two thousand. SQLite
commits to the disk; moto is DynamoDB in memory behind boto's client, on one thread, for it is not
safe on more.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

from moto import mock_aws

from bench import events
from bench.in_process import Given, handlers_over
from bench.measuring import interleaved, medians, seconds
from bench.report import Report
from bench.stubbed_aws import ENVIRONMENT
from chalicelib import resources
from chalicelib.dynamodb import DynamoTable
from chalicelib.ports import Table, number
from chalicelib.views import keys
from chalicelib.views.fold import fold_views
from local.database import FILE, Database
from local.queue import SqliteQueue
from local.table import SqliteTable
from tests.aws import create_table

ROUNDS = 5
RECORDS = 1_000
ONE, MANY = 1, 1_000
"""Users in a batch."""


@dataclass(frozen=True, slots=True)
class Side:
    """Batches of so many users, folded over one engine."""

    engine: Given
    users: int
    sequence: Iterator[int] = field(default_factory=partial(count, 1, RECORDS))

    def fold(self) -> float:
        """Fold the next batch; returns its records per second."""
        badge_ids = [self._badge_id(place) for place in range(RECORDS)]
        batch = events.removals(badge_ids, next(self.sequence))
        with handlers_over(self.engine):
            return RECORDS / seconds(lambda: fold_views(batch, None))

    def counted(self) -> int:
        """The sum of what all its badges have folded."""
        users = [self.engine.table.get(keys.user(self._badge_id(n))) for n in range(self.users)]
        return sum(number(user or {}, "count") for user in users)

    def _badge_id(self, place: int) -> str:
        return f"{self.users}-users/{place % self.users}"


def measure() -> Report:
    """Fold the same batches over both engines, turn by turn, and check what they counted."""
    with _engines() as engines:
        sides = {
            (name, users): Side(engine, users)
            for name, engine in engines.items()
            for users in (ONE, MANY)
        }
        rates = medians(interleaved(ROUNDS, {key: side.fold for key, side in sides.items()}))
        wrong = {key: side.counted() for key, side in sides.items()}
    wrong = {key: counted for key, counted in wrong.items() if counted != ROUNDS * RECORDS}
    return Report(
        title=f"fold: stream records per second, in batches of {RECORDS:,}",
        head=("engine", "1 user", "1,000 users", "1,000 users / 1 user"),
        rows=[*(_row(name, rates) for name in engines), _ratios(rates)],
        notes=(f"median of {ROUNDS} batches each, every record counted once",),
        failure=f"{ROUNDS * RECORDS:,} records were counted as {wrong}" if wrong else "",
    )


@contextmanager
def _engines() -> Iterator[Mapping[str, Given]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Database(Path(folder) / FILE)) as database,
        mock_aws(),
    ):
        queue = SqliteQueue(database, "nothing-is-sent", time.time)
        yield {
            "SQLite": Given(SqliteTable(database), queue, database.each),
            "moto": Given(_moto_table(), queue, map),
        }


def _moto_table() -> Table:
    dynamodb = resources.aws_client("dynamodb")
    name = ENVIRONMENT["TABLE_NAME"]
    create_table(dynamodb, name)
    return DynamoTable(dynamodb, name)


def _row(engine: str, rates: Mapping[tuple[str, int], float]) -> tuple[str, ...]:
    one, many = rates[engine, ONE], rates[engine, MANY]
    return engine, f"{one:,.0f}", f"{many:,.0f}", f"{many / one:.3f}"


def _ratios(rates: Mapping[tuple[str, int], float]) -> tuple[str, ...]:
    ratios = [rates["SQLite", users] / rates["moto", users] for users in (ONE, MANY)]
    return "SQLite / moto", *(f"{ratio:.2f}" for ratio in ratios), ""
