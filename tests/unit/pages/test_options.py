"""The options of a badge of views: their values, their errors, and the formats."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.badges import options
from chalicelib.badges.logos import Logo
from chalicelib.history.periods import Show
from chalicelib.http.errors import BadRequestError
from chalicelib.pages.badge_routes import ImageOptions

OWN_LOGO = (
    "data:image/svg+xml;base64,PHN2ZyB2aWV3Qm94PSIwIDAgMSAxIj48cGF0aCBkPSJNMCAwaDEiLz48L3N2Zz4="
)
OFFSETS = [("02", 2), ("+2", 2), (" 02:00", 2), ("14", 14), ("-12:00", -12)]
STYLED = "give flat, flat-square, plastic, for-the-badge, social"
SHOWS = "give total, today, week, month, year, today-total, visitors, clones"
FITS = 120
"""The longest readable text of a badge."""
NAMES = sorted(ImageOptions.fields.keys() - {"id"})


def parse(query: Mapping[str, list[str]]) -> ImageOptions:
    return ImageOptions({"id": ["octocat"], **query})


def refusal(**query: list[str]) -> str:
    with pytest.raises(BadRequestError) as refused:
        parse(query)
    return str(refused.value)


def test_without_options_a_badge_is_plain() -> None:
    plain: dict[str, object] = {"label": None, "peek": False, "base": 0, "days": 0}
    plain |= dict.fromkeys(("color", "label_color", "style", "logo", "logo_color"), "")
    plain |= {"format": "plain", "show": Show.TOTAL, "zone": UTC, "badge_id": "octocat"}
    assert vars(parse({})) == vars(parse({"cacheSeconds": ["1"], "LABEL": ["x"]}))
    assert plain.items() <= vars(parse({})).items()


@pytest.mark.parametrize(
    ("name", "given_text", "attribute", "value"),
    [
        ("peek", "0", "peek", False),
        ("peek", "1", "peek", True),
        ("label", "", "label", ""),
        ("label", "日本語 🦆 <a>&\"'", "label", "日本語 🦆 <a>&\"'"),
        ("label", "x" * options.MAX_LABEL, "label", "x" * options.MAX_LABEL),
        ("color", "00ff00", "color", "#00ff00"),
        ("labelColor", "rebeccapurple", "label_color", "#663399"),
        *[("style", style, "style", style) for style in (*options.STYLES, options.PIXEL)],
        ("logo", "dotnet", "logo", "dotnet"),
        ("logo", "x" * options.MAX_LOGO, "logo", "x" * options.MAX_LOGO),
        ("logo", OWN_LOGO, "logo", Logo("#000000", '<g><path d="M0 0h1"/></g>', "0 0 1 1")),
        ("logoColor", "White", "logo_color", "#ffffff"),
        *[("format", name, "format", name) for name in options.FORMATS],
        *[("show", show.value, "show", show) for show in Show],
        *[("tz", text, "zone", timezone(timedelta(hours=hours))) for text, hours in OFFSETS],
        *[("spark", str(days), "days", days) for days in (7, 30, 90)],
        ("base", "0", "base", 0),
        ("base", "007", "base", 7),
        ("base", str(options.MAX_BASE), "base", 10**15),
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
        ("peek", "１", "give 1 or 0, not '１'"),  # noqa: RUF001  a 1 that is not ASCII
        ("label", "x" * 101, "give at most 100 characters, not 101"),
        ("label", "a\nb", "it has a control character: leave it out"),
        ("label", "\ud800", "it has half a surrogate pair: leave it out"),
        ("color", "greenish", "no colour 'greenish': give a name like green, or hex like 4c1"),
        ("labelColor", "url(x)", "no colour 'url(x)': give a name like green, or hex like 4c1"),
        *[("style", wrong, f"{STYLED}, pixel, not '{wrong}'") for wrong in ("Flat", "flat ")],
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
        *[("show", wrong, f"{SHOWS}, not '{wrong}'") for wrong in ("day", "Today")],
        *[
            ("tz", wrong, f"give whole hours from UTC, as -5 or 02:00, not '{wrong}'")
            for wrong in ("05:30", "15", "-13", "Europe/Berlin", "٣")
        ],
        ("spark", "6", "give a whole number from 7 to 90, not '6'"),
        ("spark", "91", "give a whole number from 7 to 90, not '91'"),
        ("base", "-1", "give a whole number from 0 to 1000000000000000, not '-1'"),
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
    assert vars(parse({name: [""]})) == vars(parse({name: []})) == vars(parse({}))


LONG = [letter * length for letter in ("\\", "\ud800", "9") for length in (101, 8_000)]


@settings(max_examples=500)
@given(st.sampled_from(NAMES), st.text() | st.sampled_from(LONG))
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
    (999, "999", "999"),
    (1_000, "1,000", "1k"),
    (1_100, "1,100", "1.1k"),
    (1_999, "1,999", "1.9k"),
    (9_999, "9,999", "9.9k"),
    (10_000, "10,000", "10k"),
    (999_999, "999,999", "999k"),
    (1_000_000, "1,000,000", "1M"),
    (10**9, "1,000,000,000", "1B"),
    (10**12, "1,000,000,000,000", "1T"),
    (10**15, "1,000,000,000,000,000", "1000T"),
    (12_345 * 10**12, "12,345,000,000,000,000", "12345T"),
]


@pytest.mark.parametrize(("count", "comma", "shortened"), TABLE)
def test_a_count_is_written_plain_with_commas_or_short(
    count: int, comma: str, shortened: str
) -> None:
    said = [options.CountFormat({"format": [name]}).write(count) for name in ("", *options.FORMATS)]
    assert said == [str(count), str(count), comma, shortened]
    assert options.short(count) == shortened


UNITS = {"": 1, "k": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
COUNTS = st.integers(0, 10**17) | st.integers(0, 17).map(lambda zeros: 10**zeros - 1)


@given(COUNTS)
def test_a_short_count_is_never_higher_and_at_most_a_tenth_lower(count: int) -> None:
    written = re.fullmatch(r"(\d+)(?:\.([1-9]))?([kMBT]?)", options.short(count))
    assert written is not None
    whole, tenths, unit = written.groups(default="")
    said = (10 * int(whole) + int(tenths or 0)) * UNITS[unit] // 10
    assert said <= count <= said + said // 10
    assert not (len(whole) > 1 and tenths)
    assert len(whole) <= 3 or unit == "T"


@given(COUNTS, st.integers(0, options.MAX_BASE), st.sampled_from([*options.FORMATS]))
def test_a_count_and_a_base_are_their_sum(count: int, base: int, name: str) -> None:
    with_base = parse({"base": [str(base)], "format": [name]})
    assert with_base.write(with_base.total(count)) == options.FORMATS[name](count + base)
