"""The logos of a badge: names of simple-icons and what it takes to draw them.

The paths in `logos.json` are those of simple-icons 16.37.0 (CC0-1.0), rounded to two decimals of a
24th of the side where that can't be seen. Some marks have a licence of their own: angular (Google),
godotengine (Andrea Calabró) and nixos (Tim Cuthbertson) CC-BY-4.0; android (Google) and git (Jason
Long) CC-BY-3.0; bootstrap, deno, gnubash and javascript MIT; openjdk BSD-3-Clause. Those whose
licence forbids commerce or asks for its like, as vuedotjs, php, ruby and rust, are not here.

A logo is a trademark of its owner whatever the licence of its drawing. It says what a badge is
about, not that the owner stands behind it; each brand's guidelines hold for whoever shows it.
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
"""Up to and from these brightnesses shields.io takes a brand's own colour for hard to see."""
SPELLED = str.maketrans({" ": "", "-": "", "+": "plus", ".": "dot"})
"""Source: simple-icons, how a slug is made of a title."""


class Logo(NamedTuple):
    """One path, and the brand's colour as `#rrggbb`."""

    color: str
    path: str

    def fill_on(self, background: str) -> str:
        """The brand's own colour where it can be seen on a background, as shields.io has it."""
        bright = colors.brightness(self.color)
        if colors.is_light(background):
            return ON_LIGHT if bright >= BRIGHT else self.color
        return ON_DARK if bright <= DIM else self.color


def find(name: str) -> Logo | None:
    """The logo of a simple-icons slug or title, in any case; None if it is not among ours."""
    slug = name.strip().lower().translate(SPELLED)
    if slug not in (_all() if slug else {}):
        return None
    color, path = _all()[slug]
    return Logo("#" + color, path)


def names() -> list[str]:
    """All that `find` knows, in alphabetical order."""
    return list(_all())


@cache
def _all() -> dict[str, tuple[str, str]]:
    """Colour and path by name. Read when first asked for: few badges have a logo."""
    read: dict[str, tuple[str, str]] = json.loads(DATA.read_text(encoding="utf-8"))
    return read
