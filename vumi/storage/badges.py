"""The items of all badges, badge by badge, read from the file in short queries.

One query reads some thousand badges, so that no reader keeps the WAL from starting again, and each
badge is read as it was at one moment. SQLite groups the items of a badge; Python sees one row for
each badge, however many views it has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from chalicelib.counting import keys
from chalicelib.storage.items import Item
from chalicelib.ulids import earliest
from chalicelib.units import Milliseconds

Read: TypeAlias = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Returns the rows of a query, as `Database.read` does."""

BADGES_IN_A_QUERY = 2_000


@dataclass(frozen=True, slots=True)
class BadgeItems:
    """The items of one partition of a badge: its summary, owner, latest days, and stored views.

    A missing item is empty. `views` has the sort keys of views.
    """

    badge_id: str
    summary: Item = field(default_factory=dict)
    owner: Item = field(default_factory=dict)
    days: Sequence[Item] = ()
    views: Sequence[str] = ()


def read_badges(
    read: Read,
    first_day: str,
    hour: str,
    *,
    prefix: str = "",
    badges_in_a_query: int = BADGES_IN_A_QUERY,
) -> Iterator[BadgeItems]:
    """Yield the items of every badge by id, with its days since `first_day` (yyyy-mm-dd).

    A day has its views, and those of one hour: the attribute `hour`. With a `prefix`, only the
    badges whose ids begin with it.
    """
    first = partition = keys.PARTITION + prefix
    while rows := read(_BADGES, (first, keys.DAY + first_day, hour, partition, badges_in_a_query)):
        for row in rows:
            yield _badge(*row)
        first = rows[-1][0] + "\0"


def count_seen(read: Read, since: Milliseconds) -> dict[str, int]:
    """Return the number of views since a time that were counted at once, by id."""
    return dict(read(_SEEN, (f"{keys.SEEN}#{earliest(since)}",)))


def count_badges(read: Read, most: int) -> int:
    """Return the number of badges, or `most` if there are more; deleted ones are none.

    It jumps from badge to badge, so that their days take no time.
    """
    [(found,)] = read(_NUMBER, (most,))
    return int(found)


_BADGES = f"""
WITH page AS (
    SELECT DISTINCT pk FROM items
    WHERE pk >= ?1 AND pk < CAST(?4 || x'ff' AS TEXT) AND sk >= ?2
    UNION SELECT pk FROM viewed WHERE pk >= ?1 AND pk < CAST(?4 || x'ff' AS TEXT)
    ORDER BY pk LIMIT ?5
)
SELECT page.pk,
    max(attributes) FILTER (WHERE sk = '{keys.SUMMARY}'),
    max(attributes) FILTER (WHERE sk = '{keys.OWNER}'),
    json_group_array(json_object('SK', sk, 'views', json_extract(attributes, '$.views'),
        'reset', coalesce(json_extract(attributes, '$.reset'), 0),
        ?3, coalesce(json_extract(attributes, '$.' || ?3), 0)))
        FILTER (WHERE sk < '{keys.OWNER}'),
    (SELECT group_concat(sk) FROM viewed JOIN views ON badge = number WHERE viewed.pk = page.pk)
FROM page LEFT JOIN items ON items.pk = page.pk AND sk >= ?2
GROUP BY page.pk ORDER BY page.pk"""  # noqa: S608  fixed names
"""No text has the byte `ff`, so all that begin with a prefix are before the prefix and the byte."""
_NUMBER = f"""
WITH RECURSIVE found (pk) AS (
    VALUES ('{keys.PARTITION}') UNION ALL
    SELECT (SELECT min(pk) FROM (
        SELECT min(pk) AS pk FROM items WHERE items.pk > found.pk AND items.pk < 'USER$' UNION ALL
        SELECT min(pk) FROM viewed WHERE viewed.pk > found.pk
    )) FROM found WHERE found.pk IS NOT NULL
)
SELECT count(*) FROM (
    SELECT 1 FROM found LEFT JOIN items ON items.pk = found.pk AND sk = '{keys.SUMMARY}'
    WHERE found.pk > '{keys.PARTITION}'
    AND coalesce(json_extract(attributes, '$.alias'), json_extract(attributes, '$.deleted')) IS NULL
    LIMIT ?
)"""  # noqa: S608  fixed names
"""`$` is the character after `#`, with which every partition of a badge begins."""
_SEEN = """SELECT json_extract(attributes, '$.badge'),
    sum(coalesce(json_extract(attributes, '$.views'), 1)) FROM items
WHERE pk >= ? AND pk < 'SEEN$' GROUP BY 1"""


def _badge(pk: str, summary: str | None, owner: str | None, days: str, views: str) -> BadgeItems:
    return BadgeItems(
        pk.removeprefix(keys.PARTITION),
        json.loads(summary) if summary else {},
        json.loads(owner) if owner else {},
        () if days == "[]" else json.loads(days),
        views.split(",") if views else (),
    )
