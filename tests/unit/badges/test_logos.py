"""The logos of a badge and their names, and its colours: valid and malformed ones."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.badges import colors, logos
from chalicelib.badges.logos import Logo
from chalicelib.badges.options import Badge
from chalicelib.badges.svg import draw
from chalicelib.badges.svg_styles import STYLES
from tests.logos import LICENCES, OF_PACKAGE, WANTED

MAX_DATA = 200_000
LISTED = logos.read()["licences"]
GREY, WHITE = "#555555", "#fcfcfc"
"""The backgrounds of a logo on shields.io: in most styles, and in `social`."""


@pytest.mark.parametrize(
    ("name", "licence"),
    [
        ("rust", "CC-BY-SA-4.0"),
        ("php", "CC-BY-SA-4.0"),
        ("ruby", "CC-BY-SA-2.5"),
        ("Vue.js", "CC-BY-NC-SA-4.0"),
        ("sass", "CC-BY-NC-SA-3.0"),
        ("gnuemacs", "GPL-2.0-or-later"),
        ("github", None),
        ("git", None),
        ("nosuchlogo", None),
        ("", None),
    ],
)
def test_a_logo_that_is_missing_for_its_licence_has_that_licence(
    name: str, licence: str | None
) -> None:
    assert logos.find_refused_licence(name) == licence
    assert licence is None or logos.find(name) is None


def test_an_included_logo_has_a_licence_that_allows_any_use() -> None:
    allowed = {"Unlicense", "MIT", "BSD-3-Clause", "Apache-2.0", "CC-BY-3.0", "CC-BY-4.0"}
    assert {licence for name, licence in LISTED.items() if name in logos.paths()} == allowed


def test_every_logo_is_a_plain_path_in_a_square_of_24() -> None:
    assert len(logos.paths()) >= 300
    for name in logos.paths():
        logo = logos.find(name)
        assert logo is not None
        assert colors.parse(logo.color) == logo.color
        assert re.fullmatch(r'<path d="[Mm][MmLlHhVvCcSsQqTtAaZz0-9 .,-]+"/>', logo.shapes)
        assert logo.view_box == "0 0 24 24"


def test_all_logos_together_stay_small() -> None:
    assert logos.DATA.stat().st_size <= MAX_DATA


@pytest.mark.parametrize("style", STYLES)
def test_every_logo_leaves_room_for_a_count(style: str) -> None:
    for name in logos.paths():
        assert "<desc>" not in draw(Badge("views", "1,234,567", style=style, logo=name))


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("GitHub", "github"),
        (" Google Cloud ", "googlecloud"),
        ("google-cloud", "googlecloud"),
        ("Node.js", "nodedotjs"),
        ("C++", "cplusplus"),
        (".NET", "dotnet"),
    ],
)
def test_a_title_and_its_slug_find_the_same_logo(title: str, slug: str) -> None:
    assert logos.find(title) == logos.find(slug) is not None


@pytest.mark.parametrize("name", ["", " ", "-", "nosuchlogo", "../logos", "vuedotjs", "\ud800"])
def test_an_unknown_name_finds_no_logo(name: str) -> None:
    assert logos.find(name) is None


@pytest.mark.parametrize(
    ("name", "brand", "on_grey", "on_white"),
    [
        # brightness .83: seen on dark only
        ("javascript", "#f7df1e", "#f7df1e", "#333333"),
        # .09: seen on light only
        ("github", "#181717", "#f5f5f5", "#181717"),
        # .43: shields.io draws it in blue on grey too, with a contrast of 1.5
        ("python", "#3776ab", "#f5f5f5", "#3776ab"),
    ],
)
def test_a_brand_has_its_own_colour_where_it_is_visible(
    name: str, brand: str, on_grey: str, on_white: str
) -> None:
    logo = logos.find(name)
    assert logo is not None
    assert (logo.color, logo.fill_on(GREY), logo.fill_on(WHITE)) == (brand, on_grey, on_white)


@pytest.mark.parametrize(
    ("color", "background", "fill"),
    [
        # 102 / 255 = .4 and 153 / 255 = .6 are the bounds of shields.io
        ("#666666", "#000000", "#f5f5f5"),
        ("#676767", "#000000", "#676767"),
        ("#898989", "#ffffff", "#898989"),
        ("#999999", "#ffffff", "#333333"),
        # shields.io's white has a contrast of 2.3 on green, the brand of 7.2, and of 1.5
        ("#181717", "#44bb00", "#181717"),
        ("#336791", "#44bb00", "#333333"),
    ],
)
def test_a_colour_is_that_of_shields_where_it_is_visible(
    color: str, background: str, fill: str
) -> None:
    assert Logo(color, "").fill_on(background) == fill


@given(st.binary(min_size=3, max_size=3), st.binary(min_size=3, max_size=3))
def test_a_logo_of_any_colour_is_visible_on_any_background(brand: bytes, background: bytes) -> None:
    fill = Logo(f"#{brand.hex()}", "").fill_on(f"#{background.hex()}")
    assert colors.contrast(fill, f"#{background.hex()}") >= logos.VISIBLE


def test_the_included_logos_are_the_wanted_ones() -> None:
    """`make logos` needs npm, so this compares names and licences alone."""
    refused = {name for name in WANTED.split() if logos.find_refused_licence(name)}
    assert set(logos.paths()) == {*WANTED.split()} - refused
    assert not {LISTED[name] for name in refused} & LICENCES
    assert OF_PACKAGE not in LISTED.values()


# ---- the colours

LONGEST_MESSAGE = 80
"""The longest message that fits on a page."""


@pytest.mark.parametrize(
    ("written", "color"),
    [
        # the names of shields, as badge-maker 6.0 draws them
        ("brightgreen", "#44bb00"),
        ("blue", "#007ec6"),
        ("inactive", "#939393"),
        ("blueviolet", "#8a2be2"),
        # other names are those of CSS, in any case
        ("rebeccapurple", "#663399"),
        ("yellowgreen ", "#95991a"),
        ("DarkSlateGrey", "#2f4f4f"),
        # 3 or 6 digits with or without their sign
        *((hexes, "#44cc11") for hexes in ("4c1", "#4c1", "4C1", "44cc11", "#44CC11", " #4c1 ")),
    ],
)
def test_a_colour_has_a_name_or_hex_digits(written: str, color: str) -> None:
    assert colors.parse(written) == color


def test_css_names_148_colours() -> None:
    words = colors.CSS.split()
    assert len(words) == 2 * 148
    assert set(map(len, words[1::2])) == {len("rrggbb")}
    assert all(colors.parse(hexes) == f"#{hexes}" for hexes in words[1::2])


@pytest.mark.parametrize(
    "wrong",
    ["", "#", "4c11", "ggg", "٤٤٤", "4c1\n4c1", 'red"/>', "url(#x)", "x" * 1000, "\ud800"],
)
def test_a_malformed_colour_is_refused_with_a_message_for_a_badge(wrong: str) -> None:
    with pytest.raises(
        ValueError, match=r"^no colour .*: give a name like green, or hex like 4c1$"
    ) as refusal:
        colors.parse(wrong)
    assert len(str(refusal.value)) <= LONGEST_MESSAGE


@given(st.text(st.characters()))
def test_each_accepted_colour_has_one_form(written: str) -> None:
    try:
        color = colors.parse(written)
    except ValueError as refusal:
        assert len(str(refusal).encode().decode()) <= LONGEST_MESSAGE  # noqa: PT017  so it draws
        return
    assert colors.parse(color) == color
    assert 0 <= colors.brightness(color) <= 1


def test_brightness_weighs_the_channels_as_the_eye_does() -> None:
    assert colors.brightness("#000000") == 0
    assert colors.brightness("#ffffff") == 1
    # red 299, green 587, blue 114 of a thousand
    assert colors.brightness("#ff0000") == pytest.approx(0.299)
    assert colors.brightness("#00ff00") == pytest.approx(0.587)
    assert colors.brightness("#0000ff") == pytest.approx(0.114)


@pytest.mark.parametrize(
    ("one", "other", "ratio"),
    [  # as in the W3C's own examples: black on white 21, #767676 on white the first above 4.5
        ("#000000", "#ffffff", 21),
        ("#ffffff", "#ffffff", 1),
        ("#767676", "#ffffff", 4.54),
        ("#ff0000", "#ffffff", 4.0),
        ("#0000ff", "#ffffff", 8.59),
        ("#3776ab", "#555555", 1.54),
        ("#0a0a0a", "#000000", 1.06),
    ],
)
def test_contrast_is_that_of_the_accessibility_guidelines(
    one: str, other: str, ratio: float
) -> None:
    assert colors.contrast(one, other) == pytest.approx(ratio, abs=0.01)
    assert colors.contrast(other, one) == colors.contrast(one, other)


def test_a_darker_colour_has_less_of_every_channel() -> None:
    # 204 is 80 % of 255, and 80 of 100
    assert colors.mix("#ff6400", "#000000", 0.2) == "#cc5000"
    assert colors.mix("#ff6400", "#000000", 0) == "#ff6400"


@pytest.mark.parametrize(
    ("dark", "light"),
    [  # where badge-maker 6.0 turns from light text to dark
        ("#b1b1b1", "#b2b2b2"),
        ("#ffac00", "#ffad00"),
        ("#ff9864", "#ff9964"),
        ("#ff7aff", "#ff7bff"),
        ("#00fcff", "#00fdff"),
    ],
)
def test_a_colour_is_light_from_where_badge_maker_takes_it_for_light(dark: str, light: str) -> None:
    assert not colors.is_light(dark)
    assert colors.is_light(light)
