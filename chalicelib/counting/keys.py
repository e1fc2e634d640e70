"""The keys of the items of a badge.

One partition per badge has `DAY#…`, `MILESTONES`, `OWNER`, `TRAFFIC#…`, `VIEW#…` and `VIEWS`, in
this order. So a descending query from `VIEWS` reads the summary first, then the newest views.
"""

from __future__ import annotations

from chalicelib.storage.items import Key
from chalicelib.units import WholeSeconds

PARTITION = "USER#"
SUMMARY = "VIEWS"
VIEW = "VIEW#"
DAY = "DAY#"
MILESTONES = "MILESTONES"
OWNER = "OWNER"
TRAFFIC = "TRAFFIC#"
KEY = "KEY#"
OWNED = "BADGE#"
WINDOW = "WINDOW"
SEEN = "SEEN"


def partition(badge_id: str) -> str:
    """Return the partition key of a badge."""
    return PARTITION + badge_id


def summary(badge_id: str) -> Key:
    """Return the key of a badge's summary."""
    return Key(partition(badge_id), SUMMARY)


def owner(badge_id: str) -> Key:
    """Return the key of a badge's owner."""
    return Key(partition(badge_id), OWNER)


def owned(secret_digest: str, badge_id: str = "") -> Key:
    """Return the key of the item by which a secret's badges are found.

    `badge_id` is the id under which the badge is stored. Without it, the key is before all of them.
    """
    return Key(KEY + secret_digest, OWNED + badge_id)


def milestones(badge_id: str) -> Key:
    """Return the key of a badge's milestones."""
    return Key(partition(badge_id), MILESTONES)


def view(badge_id: str, ulid: str) -> Key:
    """Return the key of a view, which is the same if the view is stored again."""
    return Key(partition(badge_id), VIEW + ulid)


def day(badge_id: str, day: str) -> Key:
    """Return the key of the history of one day (UTC), written yyyy-mm-dd."""
    return Key(partition(badge_id), DAY + day)


def traffic(badge_id: str, month: str) -> Key:
    """Return the key of GitHub's numbers of one month, written yyyy-mm."""
    return Key(partition(badge_id), TRAFFIC + month)


def marker(badge_id: str, mark: WholeSeconds) -> Key:
    """Return the key of the marker of the window that ends at a mark.

    Each marker has its own partition, so that it adds no load to the badge's partition.
    """
    return Key(f"{WINDOW}#{mark}#{badge_id}", WINDOW)


def seen(ulid: str) -> Key:
    """Return the key of the marker of a view that was counted at once."""
    return Key(f"{SEEN}#{ulid}", SEEN)
