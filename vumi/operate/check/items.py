"""The items of a table, collected for the checks across items. Both engines use it.

Items arrive by key: those of a partition one after the other, in the order of their sort keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from chalicelib.counting import keys
from chalicelib.counting.summary import Summary
from chalicelib.history.history import is_finished
from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.items import Item, number, text
from vumi.operate import kinds
from vumi.operate.check.report import Finding, all_wrong, ok
from vumi.operate.check.wallets import Wallets
from vumi.operate.kinds import BADGE, DAY, ItemKind, UnknownItemError, WrongItemError
from vumi.plurals import plural

StoredItem: TypeAlias = tuple[str, Callable[[], Item]]
"""The key of an item, for messages, and a function that decodes it."""


@dataclass(slots=True)
class Badges:
    """The badges of the file. Items arrive by key, so a badge's days come before its summary.

    `wrong` has a message for each badge that is wrong.
    """

    wrong: dict[str, str] = field(default_factory=dict)
    _days: tuple[str, list[Item]] = ("", [])

    def add(self, kind: ItemKind, item: Item) -> None:
        """Add the next item."""
        partition = text(item, "PK")
        if kind is DAY:
            if self._days[0] != partition:
                self._days = (partition, [])
            self._days[1].append(item)
        elif kind is BADGE:
            self._add_badge(item, self._days[1] if self._days[0] == partition else [])

    def _add_badge(self, item: Item, days: Iterable[Item]) -> None:
        """Compare the count with the history: the finished days of this life, and today."""
        summary = Summary.of(text(item, "PK").removeprefix(keys.PARTITION), item)
        finished = sum(number(day, "views") for day in days if is_finished(day, summary))
        if finished + summary.today.views != summary.count:
            self.wrong[summary.badge_id] = (
                f"the badge {summary.badge_id} has {plural(summary.count, 'view')}, but its history"
                f" has {finished + summary.today.views}"
            )


@dataclass(frozen=True, slots=True)
class Items:
    """The badges and wallets among the items, and the number of items of each kind."""

    badges: Badges = field(default_factory=Badges)
    wallets: Wallets = field(default_factory=Wallets)
    kinds: Counter[str] = field(default_factory=Counter)

    def close(self) -> None:
        """Remove what was collected from the disk."""
        self.wallets.close()

    def check(self, stored: Iterable[StoredItem]) -> Iterator[Finding]:
        """Collect the items; report those that are wrong, and the counts of badges."""
        yield from self.collect(stored)
        yield from self.check_badges()

    def collect(self, stored: Iterable[StoredItem]) -> Iterator[Finding]:
        """Collect the items; report those that are wrong, and the number of each kind."""
        yield from all_wrong(self._collect(stored))
        counts = (f"{kind} {count:,}" for kind, count in sorted(self.kinds.items()))
        yield ok(f"items: {', '.join(counts) or 'none'}")

    def check_badges(self) -> Iterator[Finding]:
        """Report the badges whose count differs from their history."""
        yield from all_wrong(self.badges.wrong.values())
        if not self.badges.wrong:
            yield ok("badges: each count equals the sum of its history")

    def _collect(self, stored: Iterable[StoredItem]) -> Iterator[str]:
        """Collect the items, and yield a message for each item that is wrong."""
        for key, decode in stored:
            try:
                item = decode()
                kind = kinds.check(item)
            except UnknownItemError as error:
                yield str(error)
                continue
            except (StorageRefusedError, WrongItemError) as error:
                yield f"{key}: {error}"
                continue
            self.kinds[kind.name] += 1
            self.badges.add(kind, item)
            self.wallets.add(kind, item)
