"""The description of a badge: its options, and the operations that return it as JSON and as SVG.

An option of every badge is a `query_parameter` here and a field of `options.Options`.
"""

from __future__ import annotations

import re
from typing import Any

from chalicelib.badges import options, own_logo, responses
from chalicelib.badges.badge import Badge
from chalicelib.http.description import ANY_ORIGIN, NO_CONTROL_CHARACTERS
from chalicelib.http.openapi import (
    Component,
    Json,
    Operation,
    enum,
    header,
    integer,
    json_content,
    query_parameter,
    record,
    schema,
    string,
)

LOGO = string(re.compile("[a-z0-9]+"))
OWN_LOGO = string(
    re.compile(f"{re.escape(own_logo.PREFIX)}[A-Za-z0-9+/]+={{0,2}}"), maxLength=own_logo.MAX_LENGTH
)
COLOR = schema("Color", string(re.compile("(#?([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})|[A-Za-z]+)")))
A_COLOR = "A name of CSS or shields.io, or hex digits."
HEX_COLOR = "#[0-9a-f]{6}"
STYLE = schema("Style", enum(options.STYLES))
BASE = schema("Base", integer(0, options.MAX_BASE))


def options_of(label: str, component: str) -> tuple[Component, ...]:
    """Return the options of a badge whose label is `label` if none is given."""
    label_text = string(NO_CONTROL_CHARACTERS, maxLength=options.MAX_LABEL, default=label)
    return (
        query_parameter(
            "label",
            label_text,
            "The text on the left. An empty one leaves the badge without a label.",
            component=component,
            example="visitors",
            allowEmptyValue=False,
        ),
        query_parameter("color", COLOR, f"Of the message. {A_COLOR}", example="green"),
        query_parameter("labelColor", COLOR, f"Of the label. {A_COLOR}", example="#555"),
        query_parameter("style", STYLE, f"{options.STYLES[0]} if none is given."),
        query_parameter(
            "logo",
            {"anyOf": [LOGO | {"maxLength": options.MAX_LOGO}, OWN_LOGO]},
            "A simple-icons name: the SVG draws the common ones, and names the reason for others. "
            "Or your own SVG in a data URL: shapes and colours alone, without text and references.",
            example="github",
        ),
        query_parameter(
            "logoColor",
            COLOR,
            f"Of the logo. {A_COLOR} The brand's colour, or one that is visible, if none is given.",
            example="white",
        ),
    )


SHIELDS_BADGE = record(
    "Badge",
    {
        "schemaVersion": {"const": 1},
        "label": string(),
        "message": string(description="The count, or the error.", minLength=1),
        "color": string(re.compile(f"(blue|red|orange|brightgreen|lightgrey|{HEX_COLOR})")),
    },
    {
        "labelColor": string(re.compile(HEX_COLOR)),
        "style": STYLE,
        "namedLogo": LOGO,
        "logoSvg": string(description="Your own logo."),
        "logoColor": string(re.compile(HEX_COLOR)),
        "isError": {"const": True},
    },
    description='The schema of shields.io, "Endpoint Badge".',
)
HEADERS = {
    "Cache-Control": header(
        "NeverStored",
        "No cache may store a badge. GitHub's image proxy stores it for a year unless told so.",
        {"const": responses.HEADERS["Cache-Control"]},
    ),
    **ANY_ORIGIN,
}


IMAGE_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": header(
        "Isolated",
        "An image that is opened as a page runs no script and loads nothing.",
        {"const": responses.SVG_HEADERS["Content-Security-Policy"]},
    ),
}


def _response(name: str, description: str, headers: Json, content: Json) -> Component:
    response = {"description": description, "headers": headers, "content": content}
    return Component("responses", name, response)


def json_badge(name: str, shown: Badge, error: str) -> Component:
    """Return the response with a badge, and its examples: one that is shown, and one error."""
    wrong = Badge.error(shown.label, error)
    return _response(
        name,
        "A badge, for an error too: then it has `isError`.",
        HEADERS,
        json_content(SHIELDS_BADGE, shown=shown.to_json(), error=wrong.to_json()),
    )


IMAGE = _response("Picture", "An image, for an error too.", IMAGE_HEADERS, {"image/svg+xml": {}})


def badge_operations(
    path: str, of_json: Operation, of_svg: tuple[Component, ...] = ()
) -> dict[str, Operation]:
    """Return the operations of a badge as JSON at `path` and as SVG at `path` with `.svg`.

    `of_svg` are the parameters that only the SVG has, or has in place of one of the same name.
    """
    own = {one.content["name"] for one in of_svg}
    shared = [one for one in of_json.parameters if one.content["name"] not in own]
    return {
        f"GET {path}": of_json,
        f"GET {path}.svg": always_drawn(
            f"{of_json.name}Svg", of_json.description, (*shared, *of_svg)
        ),
    }


def always_drawn(
    name: str,
    description: str,
    parameters: tuple[Component, ...],
    response: Component = IMAGE,
    **more: Any,
) -> Operation:
    """Return an operation that returns a badge or an image whatever happens."""
    drawn = {200: response}
    return Operation(name, description, parameters, responses=drawn, can_fail=False, **more)
