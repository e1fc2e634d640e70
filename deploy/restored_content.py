"""The check of a restored table, before the stack uses it.

A transaction reaches the backups of DynamoDB item by item, so a restored table may have only a part
of one. The check compares each count with its history and each balance with its journal,
by the same code as `python -m vumi check`. Nothing writes to the table meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from chalicelib.aws.attribute_values import decode_item
from chalicelib.views import keys
from chalicelib.wallets.archive import PREFIX
from deploy.restored_table import NotRestoredError
from vumi.check.items import Items, StoredItem
from vumi.check.report import Finding, FindingKind, all_wrong
from vumi.check.wallets import MALFORMED, Wallets

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class ContentCheck:
    """The check of a table's content, with the archive in a bucket, which `objects` reads.

    `bucket` is empty if the stack has no wallets, and so no archive.
    `report` gets each finding. With `is_accepted`, wrong content is only reported.
    """

    tables: DynamoDBClient
    objects: Any
    bucket: str
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
        items = Items()
        with closing(items.wallets):
            yield from items.check(self._read(table))
            yield from all_wrong(self._add_archive(items.wallets))
            yield from items.wallets.check_entries()
            yield from items.wallets.check_balances(list(items.wallets.differences()))

    def _read(self, table: str) -> Iterator[StoredItem]:
        """Scan a table for all items but views, which belong to no other item."""
        pages = self.tables.get_paginator("scan").paginate(
            TableName=table,
            ConsistentRead=True,
            FilterExpression="NOT begins_with(SK, :view)",
            ExpressionAttributeValues={":view": {"S": keys.VIEW}},
        )
        for page in pages:
            for item in page["Items"]:
                key = " ".join(item[name].get("S", "") for name in ("PK", "SK"))
                yield key, partial(decode_item, item)

    def _add_archive(self, wallets: Wallets) -> Iterator[str]:
        """Add the archived entries, except those that are later than the restored table."""
        if not self.bucket:
            return

        def is_later(wallet_id: str, entry_id: str) -> bool:
            return entry_id > wallets.lasts.get(wallet_id, "")

        pages = self.objects.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=f"{PREFIX}/"
        )
        for name in (stored["Key"] for page in pages for stored in page.get("Contents", [])):
            if not name.startswith(f"{PREFIX}/{MALFORMED}/"):
                body = self.objects.get_object(Bucket=self.bucket, Key=name)["Body"]
                yield from wallets.add_object(name, body, is_later=is_later)
