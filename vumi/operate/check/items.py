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
from vumi.errors import plural
from vumi.operate import kinds
from vumi.operate.check.report import Finding, all_wrong, ok
from vumi.operate.check.wallets import Wallets
from vumi.operate.kinds import (
    BADGE,
    BADGE_OF_A_SECRET,
    DAY,
    OWNER,
    ItemKind,
    UnknownItemError,
    WrongItemError,
)

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


@dataclass(slots=True)
class Owners:
    """The digests of owners' secrets by badge, and the badges that are found by a digest."""

    digests: dict[str, str] = field(default_factory=dict)
    found: set[tuple[str, str]] = field(default_factory=set)

    def add(self, kind: ItemKind, item: Item) -> None:
        """Add an item, if it is about an owner."""
        pk, sk = text(item, "PK"), text(item, "SK")
        if kind is OWNER and (digest := text(item, "digest")):
            self.digests[pk.removeprefix(keys.PARTITION)] = digest
        elif kind is BADGE_OF_A_SECRET:
            self.found.add((pk.removeprefix(keys.KEY), sk.removeprefix(keys.OWNED)))

    def differing(self) -> list[str]:
        """Return the badges that are not found by the secret of their owner alone."""
        wanted = {(digest, badge_id) for badge_id, digest in self.digests.items()}
        return sorted({badge_id for _, badge_id in wanted ^ self.found})

    def forget(self, badge_id: str) -> set[str]:
        """Forget what was added about a badge, and return the digests that it was found by."""
        self.digests.pop(badge_id, None)
        found = {(digest, one) for digest, one in self.found if one == badge_id}
        self.found -= found
        return {digest for digest, _ in found}

    def check(self) -> Iterator[Finding]:
        """Report the badges of the owners that can't be listed, or that others can list."""
        yield from all_wrong(
            f"the badge {badge_id} is not among the badges of its owner's secret, or is among"
            " another one's"
            for badge_id in self.differing()
        )
        if self.digests and not self.differing():
            yield ok(f"owners: {plural(len(self.digests), 'badge')} can be listed by their secrets")


@dataclass(frozen=True, slots=True)
class Items:
    """The badges, owners and wallets among the items, and the number of items of each kind."""

    badges: Badges = field(default_factory=Badges)
    owners: Owners = field(default_factory=Owners)
    wallets: Wallets = field(default_factory=Wallets)
    kinds: Counter[str] = field(default_factory=Counter)

    def close(self) -> None:
        """Remove what was collected from the disk."""
        self.wallets.close()

    def check(self, stored: Iterable[StoredItem]) -> Iterator[Finding]:
        """Collect the items; report those that are wrong, and the counts of badges."""
        yield from self.collect(stored)
        yield from self.check_badges()
        yield from self.owners.check()

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
            self.owners.add(kind, item)
            self.wallets.add(kind, item)
