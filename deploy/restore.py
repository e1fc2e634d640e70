"""The restore of a stack's table to an earlier time.

DynamoDB restores into a new table with a new stream. Its views and watermarks are from the same
moment, so every count is exact. The consumers stop during the restore: views wait in the queue, and
the old stream belongs to the old table. The archive's consumer keeps running, because entries
removed before that time are only in the old stream. If a step fails, the consumers are started
again, with the table that the stack has.

TTL is turned on after the fold of all badges, because restored views may be older than
RETENTION_SECONDS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from deploy.patience import Patience
from deploy.restored_table import NotRestoredError, Restored, RestoredTables
from vumi.journals import ArchivedObject
from vumi.operate.check.items import Items, StoredItem
from vumi.operate.check.report import Finding, FindingKind, all_wrong

if TYPE_CHECKING:
    from types_boto3_lambda import LambdaClient

KEEPS_RUNNING = "archive_entries"
"""The consumer that keeps running until the restored stack is deployed."""
MAX_WAIT_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Restore:
    """The restore of one stack, which stops all consumers but the archive's meanwhile.

    `present` has the functions of the stack. `check` raises `NotRestoredError` if the content of a
    restored table is not consistent.
    """

    tables: RestoredTables
    functions: LambdaClient
    stage: str
    stack: str
    present: Sequence[str]
    check: Callable[[str], None]

    @property
    def patience(self) -> Patience:
        """Return the repetition of calls."""
        return self.tables.patience

    def run(self, source: str, restore_time: datetime) -> Restored:
        """Stop the consumers and restore a table to a time. Raises `NotRestoredError`.

        It is safe to repeat: it continues where an earlier run for this time ended. If it fails, it
        starts the consumers again.
        """
        target = f"{self.stack}-{restore_time:%Y%m%dT%H%M%S}"
        if source != target:
            self.tables.check_backups(source, restore_time)
        with self._started_after_failure():
            self.enable_consumers(enabled=False)
            if source != target:
                self.tables.restore(source, target, restore_time)
                self.tables.copy_tags(source, target)
                self.check(target)
            return self.tables.configure(target)

    @contextmanager
    def _started_after_failure(self) -> Iterator[None]:
        """Start the consumers if the block fails or is interrupted, or say how to start them."""
        try:
            yield
        except BaseException as error:
            try:
                self.enable_consumers(enabled=True)
            except (BotoCoreError, ClientError, NotRestoredError) as another:
                raise NotRestoredError(
                    f"{error!r}; the consumers are stopped and could not be"
                    f" started: {another}; start them: make resume"
                    f" STAGE={self.stage} STACK={self.stack}"
                ) from error
            raise

    def resume(self, table: str) -> None:
        """Bring the table to the template's properties, turn its TTL on, start the consumers."""
        self.tables.configure(table)
        self.tables.switch_ttl_on(table)
        self.enable_consumers(enabled=True)

    def enable_consumers(self, *, enabled: bool) -> None:
        """Enable all event source mappings of the stack, or disable all but the archive's.

        Returns when Lambda has applied the change.
        """
        functions = [name for name in self.present if enabled or name != KEEPS_RUNNING]
        mappings = list(self._list_mappings(functions))
        for mapping in mappings:
            change = partial(self.functions.update_event_source_mapping, Enabled=enabled)
            self.patience.call(partial(change, UUID=mapping))
        for mapping in mappings:
            self._wait_for_mapping(mapping, "Enabled" if enabled else "Disabled")

    def _list_mappings(self, functions: Iterable[str]) -> Iterator[str]:
        for function in functions:
            name = f"{self.stack}-{function}"
            listed = self.patience.call(
                partial(self.functions.list_event_source_mappings, FunctionName=name)
            )
            for mapping in listed["EventSourceMappings"]:
                yield mapping["UUID"]

    def _wait_for_mapping(self, mapping: str, wanted: str) -> None:
        read = partial(self.functions.get_event_source_mapping, UUID=mapping)
        for _ in range(MAX_WAIT_SECONDS):
            if self.patience.call(read)["State"] == wanted:
                return
            self.patience.pause(1.0)
        raise NotRestoredError(
            f"the event source mapping {mapping} is not {wanted} after {MAX_WAIT_SECONDS} s;"
            " try again"
        )


@dataclass(frozen=True, slots=True)
class ContentCheck:
    """The check of a table's content, of which `stored` yields all items but views.

    A transaction reaches the backups of DynamoDB item by item, so a restored table may have only a
    part of one. The check compares each count with its history and each balance with its journal,
    by the same code as `vumi check`. Nothing writes to the table meanwhile.

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
