"""A badge: its two texts, its look, and its form as shields.io's endpoint JSON.

Source: shields.io, "Endpoint Badge". The JSON has only keys of its schema: older versions of
shields refuse any other.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from chalicelib import telemetry
from chalicelib.badges.options import PLAIN, Look
from chalicelib.http.errors import ClientError
from chalicelib.storage.errors import StorageError

if TYPE_CHECKING:
    from chalicelib.badges.logos import Logo


BadgeLook: TypeAlias = "tuple[str, str, str, str, str | Logo, str, bool]"


class Badge(NamedTuple):
    """A badge to be drawn, by shields.io or as SVG.

    `color` is the background of the message, `label_color` that of the label and its logo, each in
    a form that `colors.parse` accepts. `logo` is a name of simple-icons, or a user's own. If
    `label_color`, `style`, `logo` or `logo_color` is empty, shields chooses it. `spark` has the
    views of the last days, the oldest first, of which only an SVG shows a line.
    """

    label: str
    message: str
    color: str = "blue"
    label_color: str = ""
    style: str = ""
    logo: str | Logo = ""
    logo_color: str = ""
    spark: tuple[int, ...] = ()
    is_error: bool = False

    @classmethod
    def of(
        cls,
        label: str,
        message: str,
        color: str,
        options: Look = PLAIN,
        spark: tuple[int, ...] = (),
    ) -> Badge:
        """Return a badge with the look that the options describe."""
        return cls(
            label=label if options.label is None else options.label,
            message=message,
            color=options.color or color,
            label_color=options.label_color,
            style=options.style,
            logo=options.logo,
            logo_color=options.logo_color,
            spark=spark,
        )

    @classmethod
    def error(cls, label: str, reason: str) -> Badge:
        return cls(label, reason, "red", is_error=True)

    @property
    def look(self) -> BadgeLook:
        """Return what a badge as JSON has beside its message."""
        return (
            self.label,
            self.color,
            self.label_color,
            self.style,
            self.logo,
            self.logo_color,
            self.is_error,
        )

    def to_json(self) -> Mapping[str, Any]:
        optional = {
            "labelColor": self.label_color,
            "style": self.style,
            "isError": self.is_error,
            **self._logo_to_json(),
        }
        return {
            "schemaVersion": 1,
            "label": self.label,
            "message": self.message,
            "color": self.color,
            **{name: value for name, value in optional.items() if value},
        }

    def _logo_to_json(self) -> Mapping[str, str]:
        """Return a named logo with its colour, or an own logo, which has its colour inside."""
        if not isinstance(self.logo, str):
            return {"logoSvg": self.logo.document(self.logo_color)}
        return {"namedLogo": self.logo, "logoColor": self.logo_color if self.logo else ""}


def explain(
    failure: Exception,
    unavailable: str = "unavailable: try again",
    internal: str = "internal error: try again",
) -> str:
    """Return the text of a badge for an exception that is being handled.

    Log the exception unless it is the caller's.
    """
    if isinstance(failure, ClientError):
        return str(failure)
    telemetry.event(logging.ERROR, "badge_failed")
    return unavailable if isinstance(failure, StorageError) else internal
