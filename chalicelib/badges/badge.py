"""A badge as shields.io's endpoint JSON.

Source: shields.io, "Endpoint Badge". Only keys of its schema may stand here: older shields refuse
any other.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from chalicelib import telemetry
from chalicelib.badges.options import BadOptionError, Options
from chalicelib.storage.errors import StorageError

LABEL = "views"
COLOR = "blue"
PLAIN = Options()


def views(count: int, options: Options = PLAIN) -> dict[str, Any]:
    """The badge of a count, as it is wanted."""
    return told(LABEL, options.message(count), COLOR, options)


def told(label: str, message: str, color: str, options: Options) -> dict[str, Any]:
    """A badge that says this, as far as it is not wanted otherwise."""
    given = {
        "labelColor": options.label_color,
        "style": options.style,
        "namedLogo": options.logo,
    }
    return {
        "schemaVersion": 1,
        "label": label if options.label is None else options.label,
        "message": message,
        "color": options.color or color,
        **{key: value for key, value in given.items() if value},
    }


def error(reason: str) -> dict[str, Any]:
    """A badge that says what is wrong."""
    return {
        "schemaVersion": 1,
        "label": LABEL,
        "message": reason,
        "color": "red",
        "isError": True,
    }


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why a badge of something else than views says what is wrong, in words for it or the log.

    `unknown` is raised where there is no such thing, of which the badge says `missing`; `unread`
    and `failed` are for the log.
    """

    unknown: type[Exception]
    missing: str
    unread: str
    failed: str

    def of(self, failure: Exception) -> str:
        """What the badge says of a failure that is being handled; one of ours is logged."""
        match failure:
            case BadOptionError():
                return str(failure)
            case self.unknown():
                return self.missing
            case StorageError():
                telemetry.event(logging.ERROR, self.unread)
                return "unavailable: try again"
        telemetry.event(logging.ERROR, self.failed)
        return "out of order: try again"
