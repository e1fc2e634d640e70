"""The items of a table, collected for the checks across items. Both engines use it.

Items arrive by key: those of a partition one after the other, in the order of their sort keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from chalicelib.storage.errors import Refused
from chalicelib.storage.items import Item
from vumi.operate.check import rows
from vumi.operate.check.consistency import Badges
from vumi.operate.check.report import Finding, all_wrong, ok
from vumi.operate.check.rows import WrongItemError
from vumi.operate.check.wallets import Wallets

StoredItem: TypeAlias = tuple[str, Callable[[], Item]]
"""The key of an item, for messages, and a function that decodes it."""


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
        yield ok(f"items: {rows.format_counts(self.kinds)}")

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
                kind = rows.kind_of(item)
            except (Refused, WrongItemError) as error:
                yield f"{key}: {error}"
                continue
            self.kinds[kind] += 1
            self.badges.add(kind, item)
            self.wallets.add(kind, item)
