"""A badge as shields.io's endpoint JSON.

Source: shields.io, "Endpoint Badge". Only keys of its schema may stand here: older shields refuse
any other.
"""

from __future__ import annotations

from typing import Any

LABEL = "views"


def views(count: int) -> dict[str, Any]:
    """The badge of a count."""
    return {"schemaVersion": 1, "label": LABEL, "message": str(count), "color": "blue"}


def error(reason: str) -> dict[str, Any]:
    """A badge that says what is wrong."""
    return {
        "schemaVersion": 1,
        "label": LABEL,
        "message": reason,
        "color": "red",
        "isError": True,
    }
