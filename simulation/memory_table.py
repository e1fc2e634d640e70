"""A `Table` in memory, for tests that need many tables or calls."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from threading import Lock

from chalicelib.storage.items import Due, Item, Key, check_item, key_of
from chalicelib.storage.ports import MAX_DUE, items_per_read_unit
from chalicelib.storage.writes import (
    Check,
    ConditionFailedError,
    Delete,
    Put,
    Update,
    Write,
    check_transaction,
)
from chalicelib.units import Milliseconds
from vumi.storage.table import holds, updated


class MemoryTable:
    """A `ports.Table` whose items are in dictionaries, with sorted keys for each partition."""

    def __init__(self) -> None:
        self.items: dict[Key, Item] = {}
        self._sort_keys: defaultdict[str, list[str]] = defaultdict(list)
        self._writing = Lock()

    def get(self, key: Key) -> Item | None:
        item = self.items.get(key)
        return dict(item) if item is not None else None

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        return [item for key in keys if (item := self.get(key)) is not None]

    def query(  # noqa: PLR0913  the arguments of the port
        self,
        partition: str,
        *,
        limit: int,
        first: str = "",
        last: str = "",
        attributes: Sequence[str] = (),
        descending: bool = False,
    ) -> list[Item]:
        found = self.sort_keys(partition, first, last)
        kept = found[::-1][:limit] if descending else found[:limit]
        return [_part(self.items[Key(partition, sk)], attributes) for sk in kept]

    def page_items(self, first: int, other: int) -> int:
        return items_per_read_unit(first, other)

    def count(self, partition: str, *, limit: int, first: str = "", last: str = "") -> int:
        return min(limit, len(self.sort_keys(partition, first, last)))

    def query_due(
        self,
        batch: str,
        *,
        limit: int,
        first: Milliseconds = 0,
        last: Milliseconds = MAX_DUE,
        after: Due | None = None,
    ) -> list[Due]:
        found = sorted(
            Due(due, key)
            for key, item in self.items.items()
            if item.get("batch") == batch
            and isinstance(due := item.get("due"), int)
            and first <= due <= last
        )
        return [due for due in found if not after or due > after][:limit]

    def write(self, *writes: Write) -> None:
        check_transaction(writes)
        with self._writing:
            self.check(writes)
            for write in writes:
                self._apply(write)

    def check(self, writes: Sequence[Write]) -> None:
        """Raise `ConditionFailedError` unless the conditions of all writes hold."""
        failed = {
            place: self.get(write.key)
            for place, write in enumerate(writes)
            if not holds(write.condition, self.items.get(write.key))
        }
        if failed:
            raise ConditionFailedError(failed)

    def put_all(self, items: Sequence[Item]) -> None:
        for item in items:
            check_item(item)
        for item in items:
            self._store(dict(item))

    def _apply(self, write: Write) -> None:
        match write:
            case Put():
                self._store(dict(write.item))
            case Update():
                self._store(updated(write, self.items.get(write.key)))
            case Delete():
                self.remove(write.key)
            case Check():
                pass

    def _store(self, item: Item) -> None:
        key = key_of(item)
        if key not in self.items:
            insort(self._sort_keys[key.pk], key.sk)
        self.items[key] = item

    def remove(self, key: Key) -> None:
        """Remove an item; no error if there is none."""
        if self.items.pop(key, None) is not None:
            self._sort_keys[key.pk].remove(key.sk)

    def sort_keys(self, partition: str, first: str, last: str) -> list[str]:
        """Return the sort keys of a partition between two, in their order."""
        found = self._sort_keys.get(partition, [])
        end = bisect_right(found, last) if last else len(found)
        return found[bisect_left(found, first) : end]


def _part(item: Mapping[str, object], attributes: Sequence[str]) -> Item:
    names = attributes or item
    return {name: item[name] for name in names if name in item}  # type: ignore[misc]
