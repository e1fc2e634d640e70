"""The fold of all badges of a stack: its scan for badges and its clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from chalicelib.storage.ports import Table
from chalicelib.views import keys
from chalicelib.views.folding import Folder
from chalicelib.views.windows import Windows

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

CLOCK_MARGIN_SECONDS = 3_600
"""The operator's clock may be this far ahead, so younger views are left to `fold_views`."""


def folder(table: Table, windows: Windows, clock: Callable[[], float]) -> Folder:
    """Return a folder whose clock is behind by the margin for the operator's clock."""
    return Folder(table, windows, lambda: clock() - CLOCK_MARGIN_SECONDS)


def badge_ids(client: DynamoDBClient, table_name: str) -> Iterator[str]:
    """Scan a table for the ids that views are stored under; an id may come twice.

    A Scan reads a partition's items one after the other, so one id is kept in memory.
    """
    pages = client.get_paginator("scan").paginate(
        TableName=table_name,
        FilterExpression="begins_with(SK, :view)",
        ExpressionAttributeValues={":view": {"S": keys.VIEW}},
        ProjectionExpression="PK",
    )
    partitions = (item["PK"]["S"] for page in pages for item in page["Items"])
    return (partition.removeprefix(keys.PARTITION) for partition, _ in groupby(partitions))
