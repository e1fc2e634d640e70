"""Widths of texts equal those of badge-maker and, for other scripts, those of fonts."""
# ruff: noqa: RUF001, RUF003  letters of many scripts look alike

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.badges.text_width import EMOJI, LETTERS, Face, advances, joins, width

EM = 11.0
"""The width of a square at 11 px."""


def verdana(text: str) -> float:
    return width(text, Face.VERDANA, 11)


@pytest.mark.parametrize(
    ("text", "in_verdana", "in_helvetica"),
    [
        ("views", 31, 29),
        ("1,234", 31, 27),
        ("WWWWWWWWWW", 109, 103),
        ("The quick brown fox jumps over the lazy dog", 251, 235),
        ("Fix Schwyz quäkt Jürgen blöd vom Paß", 217, 205),
        ("Съешь ещё этих мягких французских булок", 253, 241),
        ("Ξεσκεπάζω την ψυχοφθόρα βδελυγμία", 211, 201),
        ("“” – — … €", 59, 57),
    ],
)
def test_texts_are_as_long_as_badge_maker_draws_them(
    text: str, in_verdana: int, in_helvetica: int
) -> None:
    # It draws the next odd number: 30.81 and 31.97 are both 31.
    assert int(verdana(text)) | 1 == in_verdana
    assert int(width(text, Face.HELVETICA_BOLD, 11)) | 1 == in_helvetica


@pytest.mark.parametrize(
    ("text", "label", "message"),
    [
        ("VIEWS", 40.25, 44.25),
        ("1,234", 35.25, 38.25),
        ("WWWWWWWWWW", 110.5, 124.5),
        ("THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG", 323.75, 349.75),
        ("ΞΕΣΚΕΠΆΖΩ ΤΗΝ ΨΥΧΟΦΘΌΡΑ ΒΔΕΛΥΓΜΊΑ", 261.25, 286.25),
    ],
)
def test_capitals_at_10_px_are_as_long_as_badge_maker_draws_them(
    text: str, label: float, message: float
) -> None:
    # Its lengths have 1.25 px after each letter: "VIEWS" is 34 + 5 × 1.25 = 40.25.
    assert width(text, Face.VERDANA, 10) == pytest.approx(label - 1.25 * len(text), abs=1)
    assert width(text, Face.VERDANA_BOLD, 10) == pytest.approx(message - 1.25 * len(text), abs=1)


def test_a_word_is_the_sum_of_its_letters() -> None:
    # v, i, e, w, s in hundredths of a pixel
    assert advances("views", Face.VERDANA) == [651, 302, 655, 900, 573]
    assert verdana("views") == pytest.approx(30.81)


@pytest.mark.parametrize("letter", ["é", "ñ", "ǎ", "ệ", "Å", "ё", "ї", "ά", "ş", "ǖ"])
def test_an_accent_is_over_its_letter_however_it_is_written(letter: str) -> None:
    composed = unicodedata.normalize("NFC", letter)
    apart = unicodedata.normalize("NFD", letter)
    assert len(apart) > len(composed)
    assert verdana(apart) == verdana(composed) > 0


def test_marks_that_compose_with_no_letter_take_no_room() -> None:
    assert verdana("q\u0323\u0301") == verdana("q")
    assert verdana("שָׁלוֹם") == verdana("שלום")
    assert verdana("مَرْحَبًا") == verdana("مرحبا")


@pytest.mark.parametrize(
    "unseen", "\u200b\u200c\u200d\ufeff\u00ad\u202e\u0301\ufe0f\u20dd\x07\ud800"
)
def test_invisible_characters_have_no_width(unseen: str) -> None:
    assert verdana(unseen) == 0
    assert verdana(f"a{unseen}b" if unseen != "\ufe0f" else "ab") == verdana("ab")


@pytest.mark.parametrize(
    ("text", "squares"),
    [
        ("浏览次数", 4),
        ("你好，世界！", 6),
        ("こんにちは", 5),
        ("ｶﾀｶﾅ", 4 / 2),
        ("한국어", 3 * 0.92),
        ("가힣", 2 * 0.92),
        ("\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165", 3 * 0.92),  # the same in letters
        ("\u1112", 1),
        ("𠀀", 1),
    ],
)
def test_east_asian_characters_fill_squares(text: str, squares: float) -> None:
    assert verdana(text) == pytest.approx(squares * EM)


@pytest.mark.parametrize(
    ("text", "emoji"),
    [
        ("😀", 1),
        ("❤️", 1),
        ("👍🏽", 1),
        ("👩‍💻", 1),
        ("👨‍👩‍👧‍👦", 1),
        ("🏳️‍🌈", 1),
        ("🧑🏽‍🚀🧑🏿‍🚀", 2),
        ("🇩🇪", 1),
        ("🇩🇪🇯🇵", 2),
        ("🏴󠁧󠁢󠁥󠁮󠁧󠁿", 1),
        ("1️⃣", 1),
    ],
)
def test_an_emoji_of_several_characters_has_one_width(text: str, emoji: int) -> None:
    assert advances(text, Face.VERDANA) == [EMOJI] * emoji
    assert verdana(text) == pytest.approx(emoji * 1.25 * EM)


@pytest.mark.parametrize(
    ("text", "ems"),
    [  # as Chromium draws them with DejaVu Sans and Noto Sans
        ("שלום", 2.21),
        ("מספר הצפיות", 5.86),
        ("مرحبا", 2.31),
        ("المشاهدات", 4.63),
        ("پاکستان", 3.29),
        ("नमस्ते", 2.11),
        ("हिन्दी", 1.88),
        ("สวัสดี", 2.25),
        ("ຂອບໃຈ", 3.12),
        ("አማርኛ", 2.42),
        ("ᏣᎳᎩ", 2.57),
        ("Հայաստան", 6.15),
        ("საქართველო", 6.52),
    ],
)
def test_other_scripts_are_about_as_long_as_they_are_drawn(text: str, ems: float) -> None:
    assert verdana(text) == pytest.approx(ems * EM, rel=0.15)


def test_arabic_letters_are_narrow_where_they_join() -> None:
    beh = "\u0628"
    # Joined to the next one 3.28 px, at the end 11.15 px.
    assert verdana(beh * 3) == pytest.approx(3.28 + 3.28 + 11.15)
    assert verdana(f"{beh}\u200c{beh}") == pytest.approx(11.15 + 11.15)
    assert verdana(f"{beh}\u0651{beh}") == pytest.approx(3.28 + 11.15)


def test_a_consonant_before_a_virama_loses_its_stem() -> None:
    # स 7.44, त 6.27, and 2.20 less for the first of them
    assert verdana("स्त") == pytest.approx(7.44 - 2.20 + 6.27)
    assert verdana("\u094d") == verdana("\u200d\u094d") == 0


def test_compatibility_characters_have_the_width_of_their_decomposition() -> None:
    assert verdana("ﬁ") == verdana("fi")
    assert verdana("𝐀𝟏") == verdana("A1")
    assert verdana("a\u00a0b") == verdana("a b")


@given(st.text(st.characters()), st.sampled_from(Face))
def test_every_text_has_a_width(text: str, face: Face) -> None:
    # The longest character is U+FDFA, which stands for 18.
    assert 0 <= width(text, face, 11) <= 18 * 1.25 * EM * len(text)


@pytest.mark.parametrize("text", ["عدد", "कुल", "தமிழ்", "မြန်မာ", "ខ្មែរ", "ᠮᠣᠩ", "a ﻼ"])
def test_letters_that_join_are_recognized(text: str) -> None:
    assert joins(text)
    assert not joins("views 1,234 é просмотры שלום 日本 한 😀")


@pytest.mark.parametrize(
    ("first", "last"), [("\u0600", "\u109f"), ("\u1780", "\u18af"), ("\ufb50", "\ufeff")]
)
def test_scripts_whose_letters_touch_are_blocks(first: str, last: str) -> None:
    assert joins(first)
    assert joins(last)
    assert not joins(chr(ord(first) - 1))
    assert not joins(chr(ord(last) + 1))


def test_every_letter_has_its_advance() -> None:
    capitals = next(index for index, letter in enumerate(LETTERS) if letter.upper() != letter)
    listed = {face: len(face.value.split()) for face in Face}
    assert listed[Face.VERDANA] == listed[Face.HELVETICA_BOLD] == len(set(LETTERS)) == len(LETTERS)
    assert listed[Face.VERDANA_BOLD] == capitals
