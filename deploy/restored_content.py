"""The check of a restored table, before the stack uses it.

A transaction reaches the backups of DynamoDB item by item, so a restored table may have only a part
of one. The check compares each count with its history and each balance with its journal,
by the same code as `vumi check`. Nothing writes to the table meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

from deploy.restored_table import NotRestoredError
from vumi.check.items import Items, StoredItem
from vumi.check.report import Finding, FindingKind, all_wrong
from vumi.journals import ArchivedObject


@dataclass(frozen=True, slots=True)
class ContentCheck:
    """The check of a table's content, of which `stored` yields all items but views.

    `archived` has the objects of the archive, none if the stack has no wallets.
    `report` gets each finding. With `is_accepted`, wrong content is only reported.
    """

    stored: Callable[[str], Iterable[StoredItem]]
    archived: Iterable[ArchivedObject]
    report: Callable[[Finding], None]
    is_accepted: bool = False

    def run(self, table: str) -> None:
        """Check a table. Raises `NotRestoredError` if its content is wrong."""
        is_wrong = False
        for finding in self._find(table):
            self.report(finding)
            is_wrong |= finding.kind is FindingKind.WRONG
        if is_wrong and not self.is_accepted:
            raise NotRestoredError(
                f"the content of the restored table {table} is wrong (see above), so the stack"
                " keeps its table; restore to another time, such as a minute earlier, or accept"
                " this content: make restore ... OPTIONS=--accept"
            )

    def _find(self, table: str) -> Iterator[Finding]:
        with closing(Items()) as items:
            yield from items.check(self.stored(table))
            yield from all_wrong(items.wallets.add_archive(self.archived, later_too=False))
            yield from items.wallets.check_entries()
            yield from items.wallets.check_balances(list(items.wallets.differences()))
