"""The colours of a badge: valid and malformed ones, and the text that is readable on them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.badges import colors

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
    [
        "",
        "#",
        "4c11",
        "ggg",
        "٤٤٤",
        "4c1\n4c1",
        'red"/>',
        "url(#x)",
        "x" * 1000,
        "\ud800",
    ],
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
