"""The logos of a badge: the names of simple-icons with their paths and colours.

`make logos` writes `logos.json` from simple-icons (CC0-1.0), in the version that
`tests/simple_icons` pins. Some of its logos have another licence, which the file names. A logo is
not included if its licence forbids commercial use or changes, or demands the same licence for what
it is part of, as those of rust, php, ruby and vuedotjs do.

Each logo is a trademark of its owner, whatever the licence of its drawing. It shows the topic of a
badge, not an endorsement, and users must follow the guidelines of the brand.
"""

from __future__ import annotations

import json
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from chalicelib.badges import colors

DATA = Path(__file__).with_name("logos.json")
ON_DARK, ON_LIGHT = "#f5f5f5", "#333333"
DIM, BRIGHT = 0.4, 0.6
"""Brightnesses at which shields.io replaces a brand's colour on a dark or light background."""
VISIBLE = 3.0
"""The lowest contrast ratio of a logo and its background. Source: WCAG 2.2, criterion 1.4.11."""
SLUG_SPELLING = str.maketrans({" ": "", "-": "", "+": "plus", ".": "dot"})
"""The translation of a title to a slug. Source: simple-icons."""


class Logo(NamedTuple):
    """The shapes of a logo as SVG, their colour as `#rrggbb`, and the box that they are drawn in.

    The colour is that of the shapes without one of their own.
    """

    color: str
    shapes: str
    view_box: str = "0 0 24 24"

    def fill_on(self, background: str) -> str:
        """Return the colour of shields.io if it is visible on a background, or one that is."""
        choices = (self._choose_as_shields(background), self.color)
        visible = (one for one in choices if colors.contrast(one, background) >= VISIBLE)
        return next(visible, max(ON_DARK, ON_LIGHT, key=partial(colors.contrast, background)))

    def attributes(self, fill: str) -> str:
        """Return the attributes of an `svg` element that has the shapes, in a colour or none."""
        color = f' color="{fill}"' if "currentcolor" in self.shapes.lower() else ""
        return f'viewBox="{self.view_box}"' + (f' fill="{fill}"{color}' if fill else "")

    def document(self, fill: str) -> str:
        """Return the logo as an SVG document, in a colour or in that of its shapes."""
        opening = f'<svg xmlns="http://www.w3.org/2000/svg" {self.attributes(fill)}>'
        return f"{opening}{self.shapes}</svg>"

    def _choose_as_shields(self, background: str) -> str:
        bright = colors.brightness(self.color)
        if colors.is_light(background):
            return ON_LIGHT if bright >= BRIGHT else self.color
        return ON_DARK if bright <= DIM else self.color


def find(name: str) -> Logo | None:
    """Find a logo by its simple-icons slug or title, in any case; None if it is not included."""
    slug = _spell(name)
    if slug not in read()["logos"]:
        return None
    color, path = read()["logos"][slug]
    return Logo("#" + color, f'<path d="{path}"/>')


def find_refused_licence(name: str) -> str | None:
    """Find the licence for which a logo is not included; None if it has no such licence."""
    slug = _spell(name)
    return None if slug in read()["logos"] else read()["licences"].get(slug)


def paths() -> dict[str, str]:
    """Return the path of each logo by its name, in alphabetical order."""
    return {name: path for name, (_, path) in read()["logos"].items()}


def _spell(name: str) -> str:
    return name.strip().lower().translate(SLUG_SPELLING)


@cache
def read() -> dict[str, dict[str, Any]]:
    """Read the data, once and only if needed, because few badges have a logo.

    `logos` has the colours and paths by name, and `licences` the licences other than CC0-1.0 by
    name, of included and refused logos.
    """
    data: dict[str, dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8"))
    return data
