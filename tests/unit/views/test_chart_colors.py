"""The colours of a chart can be seen on their pages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.badges.colors import contrast
from chalicelib.views import chart_colors


@given(st.from_regex("#[0-9a-f]{6}", fullmatch=True))
def test_a_colour_changes_only_if_its_contrast_is_too_low(color: str) -> None:
    for seen, page in zip(chart_colors.readable(color), ["#ffffff", "#0d1117"], strict=True):
        assert contrast(seen, page) >= 3
        assert (seen == color) == (contrast(color, page) >= 3)


def test_the_styles_of_the_themes_are_the_parts_of_the_automatic_one() -> None:
    automatic, light, dark = (
        chart_colors.write_style(("#000000", "#ffffff"), theme) for theme in chart_colors.THEMES
    )
    assert light == ".t{color:#656d76}.b{color:#000000}"
    assert dark == ".t{color:#8b949e}.b{color:#ffffff}"
    assert automatic == f"{light}@media (prefers-color-scheme:dark){{{dark}}}"
