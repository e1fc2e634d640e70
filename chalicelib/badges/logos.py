"""The logos of a badge: the names of simple-icons with their paths and colours.

The paths in `logos.json` are those of simple-icons 16.37.0 (CC0-1.0), rounded to two decimals of a
24th of the side where that is invisible. Some logos have another licence: angular (Google),
godotengine (Andrea Calabró) and nixos (Tim Cuthbertson) CC-BY-4.0; android (Google) and git (Jason
Long) CC-BY-3.0; bootstrap, deno, gnubash and javascript MIT; openjdk BSD-3-Clause. Logos with a
non-commercial or share-alike licence, such as vuedotjs, php, ruby and rust, are not included.

Each logo is a trademark of its owner, whatever the licence of its drawing. It shows the topic of a
badge, not an endorsement, and users must follow the guidelines of the brand.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

from chalicelib.badges import colors

DATA = Path(__file__).with_name("logos.json")
SIDE = 24
"""The side of the square that the paths are drawn in."""
ON_DARK, ON_LIGHT = "whitesmoke", "#333"
DIM, BRIGHT = 0.4, 0.6
"""Brightnesses at which shields.io replaces a brand's colour on a dark or light background."""
SLUG_SPELLING = str.maketrans({" ": "", "-": "", "+": "plus", ".": "dot"})
"""The translation of a title to a slug. Source: simple-icons."""


class Logo(NamedTuple):
    """The path of a logo and the brand's colour as `#rrggbb`."""

    color: str
    path: str

    def fill_on(self, background: str) -> str:
        """Return the brand's colour if it is visible on a background, as shields.io does."""
        bright = colors.brightness(self.color)
        if colors.is_light(background):
            return ON_LIGHT if bright >= BRIGHT else self.color
        return ON_DARK if bright <= DIM else self.color


def find(name: str) -> Logo | None:
    """Find a logo by its simple-icons slug or title, in any case; None if it is not included."""
    slug = name.strip().lower().translate(SLUG_SPELLING)
    if slug not in (_read_logos() if slug else {}):
        return None
    color, path = _read_logos()[slug]
    return Logo("#" + color, path)


def names() -> list[str]:
    """Return the names of all logos, in alphabetical order."""
    return list(_read_logos())


@cache
def _read_logos() -> dict[str, tuple[str, str]]:
    """Read the colours and paths by name, once and only if needed, because few badges have one."""
    read: dict[str, tuple[str, str]] = json.loads(DATA.read_text(encoding="utf-8"))
    return read
