"""The description of the responses that are badges."""

from __future__ import annotations

from chalicelib.badges.options import LOGO_NAME, STYLE, Badge
from chalicelib.http.fields import Component, record, string
from chalicelib.http.openapi import Operation, json_content

HEX_COLOR = "#[0-9a-f]{6}"
SHIELDS_BADGE = record(
    "Badge",
    {
        "schemaVersion": {"const": 1},
        "label": string(),
        "message": string(description="The count, or the error.", minLength=1),
        "color": string(f"(blue|red|orange|brightgreen|lightgrey|{HEX_COLOR})"),
    },
    {
        "labelColor": string(HEX_COLOR),
        "style": STYLE,
        "namedLogo": LOGO_NAME,
        "logoSvg": string(description="Your own logo."),
        "logoColor": string(HEX_COLOR),
        "isError": {"type": "boolean", "description": "True for an error."},
    },
    description='The schema of shields.io, "Endpoint Badge".',
)
IMAGE = Component(
    "responses",
    "Picture",
    {"description": "An image, for an error too.", "content": {"image/svg+xml": {}}},
)


def badge_operations(name: str, words: str, badge: Badge, error: str) -> dict[str, Operation]:
    """Return the operations of a badge as JSON, with two examples, and as an image."""
    wrong = Badge.error(badge.label, error)
    examples = {"shown": badge.to_json(), "error": wrong.to_json()}
    response = {
        "description": "A badge, for an error too: then it has `isError`.",
        "content": json_content(SHIELDS_BADGE, **examples),
    }
    as_json = Component("responses", f"{name.removeprefix('get')}Response", response)
    return {name: Operation(words, {200: as_json}), f"{name}Svg": Operation(words, {200: IMAGE})}
