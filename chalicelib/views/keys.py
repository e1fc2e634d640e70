"""Where the items of a badge lie: one partition a badge, `DAY#` before `USER` before `VIEW#`."""

from __future__ import annotations

from datetime import datetime

from chalicelib.ports import Key

PARTITION = "USER#"
USER = "USER"
VIEW = "VIEW#"
DAY = "DAY#"
SEEN = "SEEN#"
OWNER = "OWNER"


def partition(badge_id: str) -> str:
    """The partition key of everything about a badge."""
    return PARTITION + badge_id


def user(badge_id: str) -> Key:
    """The badge itself: its count, floor and fold position."""
    return Key(partition(badge_id), USER)


def owner(badge_id: str) -> Key:
    """Who may change a badge."""
    return Key(partition(badge_id), OWNER)


def view(badge_id: str, ulid: str) -> Key:
    """One view; the same view is the same item, however often it is stored."""
    return Key(partition(badge_id), VIEW + ulid)


def seen(ulid: str) -> Key:
    """What shows that a view was counted at once: of no badge, so that none gets hotter by it."""
    return Key(SEEN + ulid, SEEN + ulid)


def day(badge_id: str, moment: datetime) -> Key:
    """The history of one day in UTC."""
    return Key(partition(badge_id), f"{DAY}{moment:%Y-%m-%d}")
