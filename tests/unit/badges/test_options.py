"""The options of a badge: their values, their errors, and the formats."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.badges.logos import Logo
from chalicelib.badges.options import (
    FORMATS,
    LOOK,
    MAX_BASE,
    MAX_LABEL,
    MAX_LOGO,
    STYLES,
    Options,
    parse,
    short,
)
from chalicelib.http.errors import BadRequestError

OWN_LOGO = (
    "data:image/svg+xml;base64,PHN2ZyB2aWV3Qm94PSIwIDAgMSAxIj48cGF0aCBkPSJNMCAwaDEiLz48L3N2Zz4="
)
FITS = 120
"""The longest readable text of a badge."""
NAMES = (*LOOK, "peek", "format", "base")


def refusal(**query: list[str]) -> str:
    with pytest.raises(BadRequestError) as refused:
        parse(query)
    return str(refused.value)


def test_without_options_a_badge_is_plain() -> None:
    assert parse({}) == Options()
    assert parse({"id": ["octocat"], "cacheSeconds": ["1"], "LABEL": ["x"]}) == Options()


def test_all_options_are_read_together() -> None:
    query = {
        "peek": ["1"],
        "label": ["Besuche"],
        "color": ["4c1"],
        "labelColor": ["black"],
        "style": ["flat-square"],
        "logo": ["github"],
        "logoColor": ["white"],
        "format": ["short"],
        "base": ["1200"],
    }
    assert parse(query) == Options(
        peek=True,
        label="Besuche",
        color="#44cc11",
        label_color="#000000",
        style="flat-square",
        logo="github",
        logo_color="#ffffff",
        format="short",
        base=1_200,
    )


@pytest.mark.parametrize(
    ("name", "given_text", "attribute", "value"),
    [
        ("peek", "0", "peek", False),
        ("peek", "1", "peek", True),
        ("label", "", "label", ""),
        ("label", " ", "label", " "),
        ("label", "日本語 🦆 <a>&\"'", "label", "日本語 🦆 <a>&\"'"),
        ("label", "x" * MAX_LABEL, "label", "x" * MAX_LABEL),
        ("label", "🦆" * MAX_LABEL, "label", "🦆" * MAX_LABEL),
        ("color", "green", "color", "#67ac09"),
        ("color", "#F00", "color", "#ff0000"),
        ("color", "00ff00", "color", "#00ff00"),
        ("labelColor", "rebeccapurple", "label_color", "#663399"),
        *[("style", style, "style", style) for style in STYLES],
        ("logo", "dotnet", "logo", "dotnet"),
        ("logo", "1001tracklists", "logo", "1001tracklists"),
        ("logo", "x" * MAX_LOGO, "logo", "x" * MAX_LOGO),
        ("logo", OWN_LOGO, "logo", Logo("#000000", '<g><path d="M0 0h1"/></g>', "0 0 1 1")),
        ("logoColor", "White", "logo_color", "#ffffff"),
        *[("format", name, "format", name) for name in FORMATS],
        ("base", "0", "base", 0),
        ("base", "007", "base", 7),
        ("base", str(MAX_BASE), "base", 10**15),
    ],
)
def test_an_option_is_read(name: str, given_text: str, attribute: str, value: object) -> None:
    read = parse({name: [given_text]})
    assert getattr(read, attribute) == value
    assert type(getattr(read, attribute)) is type(value)


@pytest.mark.parametrize(
    ("name", "wrong", "says"),
    [
        ("peek", "yes", "give 1 or 0, not 'yes'"),
        ("peek", "true", "give 1 or 0, not 'true'"),
        ("peek", "01", "give 1 or 0, not '01'"),
        ("peek", "１", "give 1 or 0, not '１'"),  # noqa: RUF001  a 1 that is not ASCII
        ("label", "x" * 101, "give at most 100 characters, not 101"),
        ("label", "a\nb", "it has a control character: leave it out"),
        ("label", "\x7f", "it has a control character: leave it out"),
        ("label", "\ud800", "it has half a surrogate pair: leave it out"),
        ("color", "greenish", "no colour 'greenish': give a name like green, or hex like 4c1"),
        ("color", "12345", "no colour '12345': give a name like green, or hex like 4c1"),
        ("color", "#", "no colour '#': give a name like green, or hex like 4c1"),
        ("labelColor", "url(x)", "no colour 'url(x)': give a name like green, or hex like 4c1"),
        ("style", "Flat", "give flat, flat-square, plastic, for-the-badge, social, not 'Flat'"),
        ("style", "flat ", "give flat, flat-square, plastic, for-the-badge, social, not 'flat '"),
        ("logo", "GitHub", "give a simple-icons name like github, not 'GitHub'"),
        (
            "logo",
            "data:image/png;base64,AA==",
            "give data:image/svg+xml;base64,…, not 'data:image/png;base",
        ),
        ("logoColor", "blurple", "no colour 'blurple': give a name like green, or hex like 4c1"),
        ("logo", "ü", "give a simple-icons name like github, not 'ü'"),
        ("logo", "x" * 51, "give at most 50 characters, not 51"),
        ("format", "long", "give plain, comma, short, not 'long'"),
        ("base", "-1", "give a whole number from 0 to 1000000000000000, not '-1'"),
        ("base", "1.5", "give a whole number from 0 to 1000000000000000, not '1.5'"),
        ("base", "1e3", "give a whole number from 0 to 1000000000000000, not '1e3'"),
        ("base", " 1", "give a whole number from 0 to 1000000000000000, not ' 1'"),
        ("base", "1_0", "give a whole number from 0 to 1000000000000000, not '1_0'"),
        ("base", "٣", "give a whole number from 0 to 1000000000000000, not '٣'"),
        ("base", "²", "give a whole number from 0 to 1000000000000000, not '²'"),
        (
            "base",
            "1000000000000001",
            "give a whole number from 0 to 1000000000000000, not '1000000000000001'",
        ),
    ],
)
def test_a_malformed_option_is_refused_by_name(name: str, wrong: str, says: str) -> None:
    assert refusal(**{name: [wrong]}) == f"{name}: {says}"


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"label"}))
def test_an_empty_option_counts_as_missing(name: str) -> None:
    assert parse({name: [""]}) == parse({name: []}) == Options()


def test_an_empty_label_is_a_badge_without_a_label() -> None:
    assert parse({"label": [""]}).label == ""
    assert parse({"label": []}).label is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("values", [["1", "1"], ["", "1"], ["1", ""], ["", ""]])
def test_an_option_is_given_once(name: str, values: list[str]) -> None:
    assert refusal(**{name: values}) == f"{name}: give one, not 2"
    assert refusal(**{name: values * 500}) == f"{name}: give one, not 1000"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("letter", ["x", "'", "\\", "\n", "\u200b", "\ud800", "\U000e0001", "9"])
@pytest.mark.parametrize("length", [101, 8_000])
def test_however_long_a_wrong_value_is_its_refusal_fits_on_a_badge(
    name: str, letter: str, length: int
) -> None:
    said = refusal(**{name: [letter * length]})
    assert said.startswith(f"{name}: ")
    assert len(said) <= FITS
    assert said.encode()


@given(st.sampled_from(NAMES), st.text())
def test_any_text_is_an_option_or_refused_in_words_that_fit_on_a_badge(
    name: str, text: str
) -> None:
    try:
        parse({name: [text]})
    except BadRequestError as refused:
        said = str(refused)
        assert said.startswith(f"{name}: ")
        assert len(said) <= FITS
        assert said.encode()


# formats

TABLE = [
    (0, "0", "0"),
    (1, "1", "1"),
    (999, "999", "999"),
    (1_000, "1,000", "1k"),
    (1_099, "1,099", "1k"),
    (1_100, "1,100", "1.1k"),
    (1_234, "1,234", "1.2k"),
    (1_999, "1,999", "1.9k"),
    (9_999, "9,999", "9.9k"),
    (10_000, "10,000", "10k"),
    (12_345, "12,345", "12k"),
    (99_999, "99,999", "99k"),
    (123_456, "123,456", "123k"),
    (999_999, "999,999", "999k"),
    (1_000_000, "1,000,000", "1M"),
    (1_050_000, "1,050,000", "1M"),
    (1_500_000, "1,500,000", "1.5M"),
    (999_999_999, "999,999,999", "999M"),
    (10**9, "1,000,000,000", "1B"),
    (7_700_000_000, "7,700,000,000", "7.7B"),
    (10**12, "1,000,000,000,000", "1T"),
    (10**15, "1,000,000,000,000,000", "1000T"),
    (12_345 * 10**12, "12,345,000,000,000,000", "12345T"),
]


@pytest.mark.parametrize(("count", "comma", "shortened"), TABLE)
def test_a_count_is_written_plain_with_commas_or_short(
    count: int, comma: str, shortened: str
) -> None:
    assert Options().message(count) == Options(format="plain").message(count) == str(count)
    assert Options(format="comma").message(count) == comma
    assert Options(format="short").message(count) == short(count) == shortened


UNITS = {"": 1, "k": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
COUNTS = st.integers(0, 10**17) | st.integers(0, 17).map(lambda zeros: 10**zeros - 1)


@given(COUNTS)
def test_a_short_count_is_never_higher_and_at_most_a_tenth_lower(count: int) -> None:
    written = re.fullmatch(r"(\d+)(?:\.([1-9]))?([kMBT]?)", short(count))
    assert written is not None
    whole, tenths, unit = written.groups(default="")
    said = (10 * int(whole) + int(tenths or 0)) * UNITS[unit] // 10
    assert said <= count <= said + said // 10
    assert not (len(whole) > 1 and tenths)
    assert len(whole) <= 3 or unit == "T"


@given(COUNTS, COUNTS)
def test_short_of_more_is_never_less(first: int, second: int) -> None:
    fewer, more = sorted((first, second))
    assert value(short(fewer)) <= value(short(more))


def value(shortened: str) -> float:
    number = shortened.rstrip("kMBT")
    return float(number) * UNITS[shortened[len(number) :]]


@pytest.mark.parametrize(
    ("name", "says"), [("plain", "1234"), ("comma", "1,234"), ("short", "1.2k")]
)
def test_a_base_is_added_to_what_is_shown(name: str, says: str) -> None:
    """1200 + 34 = 1234, in each format."""
    assert parse({"format": [name], "base": ["1200"]}).message(34) == says


@given(COUNTS, st.integers(0, MAX_BASE), st.sampled_from(FORMATS))
def test_a_count_and_a_base_are_their_sum(count: int, base: int, name: str) -> None:
    with_base = parse({"base": [str(base)], "format": [name]})
    assert with_base.message(count) == Options(format=name).message(count + base)
