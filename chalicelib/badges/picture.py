"""A badge as a picture: what the JSON says, drawn by us, so that no cache but our own is asked."""

from __future__ import annotations

from typing import Any

from chalicelib.badges.options import Options
from chalicelib.badges.svg import Badge, draw


def picture(body: dict[str, Any], options: Options) -> str:
    """Draw the badge that the endpoint JSON tells of."""
    return draw(
        Badge(
            label=body["label"],
            message=body["message"],
            color=body["color"],
            label_color=options.label_color,
            style=options.style or "flat",
            logo=options.logo,
        )
    )
