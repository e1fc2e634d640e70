"""The colours of a chart: visible on GitHub's light page, on its dark page, or on both."""

from __future__ import annotations

from chalicelib.badges import colors

LIGHT_PAGE, DARK_PAGE = "#ffffff", "#0d1117"
"""The backgrounds of GitHub's pages."""
GREY = ("#656d76", "#8b949e")
BLUE = ("#0969da", "#4493f8")
RED = ("#cf222e", "#f85149")
"""Each colour in the light and in the dark scheme."""
MIN_CONTRAST = 3.0
"""The minimum contrast of a graphic with its page. Source: W3C, WCAG 2.2, 1.4.11."""
THEMES = ("auto", "light", "dark")


def write_style(accent: tuple[str, str], theme: str) -> str:
    """Return the style sheet: of one theme, or of the scheme of the reader's system."""
    light, dark = (
        f".t{{color:{grey}}}.b{{color:{color}}}" for grey, color in zip(GREY, accent, strict=True)
    )
    automatic = f"{light}@media (prefers-color-scheme:dark){{{dark}}}"
    return {"light": light, "dark": dark}.get(theme, automatic)


def readable(color: str) -> tuple[str, str]:
    """Return a colour for the light and the dark page, darkened or lightened if necessary."""
    return _adapt(color, LIGHT_PAGE, "#000000"), _adapt(color, DARK_PAGE, "#ffffff")


def _adapt(color: str, page: str, toward: str) -> str:
    """Mix a colour with `toward` in twentieths until it contrasts with the page."""
    mixtures = (_mix(color, toward, part / 20) for part in range(21))
    return next(mixture for mixture in mixtures if colors.contrast(mixture, page) >= MIN_CONTRAST)


def _mix(color: str, other: str, part: float) -> str:
    pairs = zip(bytes.fromhex(color[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + bytes(round(a + (b - a) * part) for a, b in pairs).hex()
