"""Days of a badge with their hours, as folds leave them, and a table that counts its reads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from chalicelib.counting import keys
from chalicelib.storage.items import Item, Value
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put
from chalicelib.units import to_milliseconds
from simulation.storage import MemoryTable
from simulation.views import BADGE, put_summary


def milliseconds(moment: datetime) -> int:
    return to_milliseconds(moment.timestamp())


def put_days(
    table: Table,
    days: Mapping[str, Mapping[str, int]],
    badge_id: str = BADGE,
    reset: int = 0,
    **summary: Value,
) -> None:
    """Put finished days, and the last one and the sum of all in the summary."""
    *finished, last = sorted(days)
    for day in finished:
        views, own = sum(days[day].values()), {"reset": reset} if reset else {}
        table.write(Put(keys.day(badge_id, day).item(views=views, **days[day], **own)))
    today: Value = {"day": last, **days[last]}
    count = sum(sum(hours.values()) for hours in days.values())
    more: dict[str, Value] = {"watermark": reset, "reset": reset, **summary}
    put_summary(table, badge_id, count=count, today=today, **more)


class MeteredTable(MemoryTable):
    """A table that counts its reads, and the items that its queries return."""

    reads = queried = 0

    def query(self, partition: str, **how: Any) -> list[Item]:
        found = super().query(partition, **how)
        self.reads += 1
        self.queried += len(found)
        return found

    def count(self, partition: str, **how: Any) -> int:
        self.reads += 1
        return super().count(partition, **how)
