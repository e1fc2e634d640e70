"""The logos of a badge: their names and their colours."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.badges import colors, logos
from chalicelib.badges.badge import Badge
from chalicelib.badges.logos import Logo
from chalicelib.badges.svg import draw
from chalicelib.badges.svg_styles import STYLES

MAX_DATA = 60_000
GREY, WHITE = "#555555", "#fcfcfc"
"""The backgrounds of a logo on shields.io: in most styles, and in `social`."""


def test_the_logos_most_used_in_readmes_are_included() -> None:
    wanted = """
        github gitlab python javascript typescript react angular svelte nodedotjs npm docker
        kubernetes go openjdk kotlin swift c cplusplus dotnet html5 css markdown git gnubash vite
        django flask fastapi sqlite mongodb redis googlecloud discord telegram x youtube mastodon
        pypi anaconda jupyter pytorch tensorflow arduino archlinux ubuntu obsidian notion
    """
    assert set(wanted.split()) <= set(logos.names())
    assert None not in map(logos.find, wanted.split())


def test_every_logo_is_a_plain_path_in_a_square_of_24() -> None:
    assert len(logos.names()) == 96
    for name in logos.names():
        logo = logos.find(name)
        assert logo is not None
        assert colors.parse(logo.color) == logo.color
        assert re.fullmatch(r"[Mm][MmLlHhVvCcSsQqTtAaZz0-9 .,-]+", logo.path)


def test_all_logos_together_stay_small() -> None:
    assert logos.DATA.stat().st_size <= MAX_DATA


@pytest.mark.parametrize("style", STYLES)
def test_every_logo_leaves_room_for_a_count(style: str) -> None:
    for name in logos.names():
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


@given(st.text(st.characters()))
def test_any_name_finds_an_included_logo_or_none(name: str) -> None:
    found = logos.find(name)
    assert found is None or found in map(logos.find, logos.names())


@pytest.mark.parametrize(
    ("name", "brand", "on_grey", "on_white"),
    [
        # brightness .83: seen on dark only
        ("javascript", "#f7df1e", "#f7df1e", "#333"),
        # .09: seen on light only
        ("github", "#181717", "whitesmoke", "#181717"),
        # .43: seen on both
        ("python", "#3776ab", "#3776ab", "#3776ab"),
    ],
)
def test_a_brand_has_its_own_colour_where_shields_lets_it(
    name: str, brand: str, on_grey: str, on_white: str
) -> None:
    logo = logos.find(name)
    assert logo is not None
    assert (logo.color, logo.fill_on(GREY), logo.fill_on(WHITE)) == (brand, on_grey, on_white)


@pytest.mark.parametrize(
    ("bright", "on_grey", "on_white"),
    [
        ("#666666", "whitesmoke", "#666666"),  # 102 / 255 = .4
        ("#676767", "#676767", "#676767"),
        ("#989898", "#989898", "#989898"),
        ("#999999", "#999999", "#333"),  # 153 / 255 = .6
    ],
)
def test_the_bounds_of_visible_colours_are_those_of_shields(
    bright: str, on_grey: str, on_white: str
) -> None:
    logo = Logo(bright, "M0 0")
    assert (logo.fill_on(GREY), logo.fill_on(WHITE)) == (on_grey, on_white)
