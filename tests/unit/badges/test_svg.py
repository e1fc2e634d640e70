"""A badge looks like that of badge-maker, any text is safe in it, and its JSON is shields.io's."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.badges import logos, options
from chalicelib.badges.logos import Logo
from chalicelib.badges.options import Badge
from chalicelib.badges.responses import explain
from chalicelib.badges.svg import draw
from chalicelib.badges.svg_styles import STYLES
from chalicelib.http import query
from chalicelib.http.errors import BadRequestError
from chalicelib.pages.badge_routes import BadgeOptions
from chalicelib.storage.errors import StorageRefusedError, UnavailableError

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {"rect", "path", "text", "svg"}
SHARED = {"linearGradient", "stop", "filter", "feGaussianBlur", "clipPath"}
ELEMENTS = {"title", "desc", "g"} | DRAWN | SHARED

styles = st.sampled_from(list(STYLES))
some_logos = st.sampled_from(["", "github", "kubernetes", "nosuchlogo"])
some_colors = st.sampled_from(["blue", "fff", "#123456", "yellow", "lightgrey"])
badges = st.builds(
    Badge,
    label=st.text(st.characters(), max_size=60),
    message=st.text(st.characters(), max_size=60),
    color=some_colors,
    label_color=st.sampled_from(["", "fff", "#123456"]),
    style=styles,
    logo=some_logos,
)


def parse(drawn: str) -> ET.Element:
    return ET.fromstring(drawn)  # noqa: S314  our own


def elements(badge: Badge, name: str) -> list[ET.Element]:
    return parse(draw(badge)).findall(f".//{SVG}{name}")


def size(badge: Badge) -> tuple[float, int]:
    root = parse(draw(badge))
    assert root.attrib["viewBox"] == f"0 0 {root.attrib['width']} {root.attrib['height']}"
    return float(root.attrib["width"]), int(root.attrib["height"])


def texts(badge: Badge) -> list[str]:
    root = parse(draw(badge))
    shadows = [*root.findall(f".//{SVG}g[@aria-hidden]//"), *root.findall(".//*[@aria-hidden]")]
    written = root.findall(f".//{SVG}text")
    return [one.text or "" for one in written if one not in shadows]


@pytest.mark.parametrize(
    ("badge", "flat", "for_the_badge", "social"),
    [  # the widths that badge-maker 6.0 draws
        (Badge("views", "1,234"), 82, 126.5, 83),
        (Badge("", "1.2k"), 35, 54, 47),
        (Badge("views", "0"), 58, 96.5, 63),
        (Badge("visitors", "not counted"), 124, 201.75, 127),
        (Badge("Größe", "10 km²"), 94, 145, 93),
        (Badge("просмотры", "12"), 94, 141.75, 101),
        (Badge("προβολές", "7"), 78, 123.25, 85),
        (Badge("closed issues", "1,234 of 9,999"), 176, 249.75, 169),
        (Badge("WWW", "iii"), 62, 100.5, 65),
        # 17 px wider than without: 14 for the logo, 3 after it
        (Badge("views", "1,234", logo="github"), 99, 143.5, 100),
        (Badge("", "1,234", logo="github"), 59, 82.25, 67),
        (Badge("", "1,234", label_color="red", logo="github"), 65, 94.25, 67),
    ],
)
def test_a_badge_is_as_large_as_badge_maker_draws_it(
    badge: Badge, flat: float, for_the_badge: float, social: float
) -> None:
    assert {style: size(badge._replace(style=style)) for style in STYLES} == {
        "flat": (flat, 20),
        "flat-square": (flat, 20),
        "plastic": (flat, 18),
        "for-the-badge": (for_the_badge, 28),
        "social": (social, 20),
    }


@pytest.mark.parametrize(
    ("style", "logo", "label", "message"),
    [  # the middle of the baseline and the length, as badge-maker 6.0 has them
        ("flat", "", ("21.5", "14", "31"), ("60.5", "14", "31")),
        ("flat-square", "", ("21.5", "14", "31"), ("60.5", "14", "31")),
        ("plastic", "", ("21.5", "13", "31"), ("60.5", "13", "31")),
        ("social", "", ("20.5", "14", "31"), ("64.5", "14", "27")),
        ("flat", "github", ("38.5", "14", "31"), ("77.5", "14", "31")),
        ("social", "github", ("37.5", "14", "31"), ("81.5", "14", "27")),
        # to a hundredth of a pixel: 32.125, 95.375
        ("for-the-badge", "", ("32.12", "17.5", "40.25"), ("95.38", "17.5", "38.25")),
        ("for-the-badge", "github", ("49.12", "17.5", "40.25"), ("112.38", "17.5", "38.25")),
    ],
)
def test_texts_have_the_position_of_badge_maker(
    style: str, logo: str, label: tuple[str, ...], message: tuple[str, ...]
) -> None:
    drawn = [
        (text.attrib["x"], text.attrib["y"], text.attrib["textLength"])
        for text in elements(Badge("views", "1,234", style=style, logo=logo), "text")
    ]
    assert drawn[len(drawn) // 2 - 1] == label
    assert drawn[-1] == message


@pytest.mark.parametrize(
    ("style", "place"),
    [
        ("flat", "5 3"),
        ("flat-square", "5 3"),
        ("plastic", "5 2"),
        ("for-the-badge", "9 7"),
        ("social", "5 3"),
    ],
)
def test_a_logo_has_the_position_of_badge_maker(style: str, place: str) -> None:
    (logo,) = elements(Badge("views", "1", style=style, logo="github"), "svg")
    x, y = place.split()
    assert logo.attrib == {
        "x": x,
        "y": y,
        "width": "14",
        "height": "14",
        "viewBox": "0 0 24 24",
        "fill": "#181717" if style == "social" else "#f5f5f5",
    }


def test_halves_have_their_colours() -> None:
    fills = [
        (half.get("x"), half.attrib["width"], half.attrib["fill"])
        for half in elements(Badge("views", "1,234", "red", "navy", "flat-square"), "rect")
    ]
    assert fills == [(None, "41", "#000080"), ("41", "41", "#dd4343")]
    left, right = elements(Badge("views", "1", style="flat-square"), "rect")
    assert (left.attrib["fill"], right.attrib["fill"]) == ("#555555", "#007ec6")


@pytest.mark.parametrize("style", STYLES)
def test_text_is_dark_where_the_half_is_light(style: str) -> None:
    drawn = draw(Badge("views", "1,234", color="yellow", label_color="white", style=style))
    fills = [text.get("fill") for text in parse(drawn).findall(f".//{SVG}text")]
    assert [fill for fill in fills if fill in {"#333", "#fff"}][-1] == (
        "#333" if style == "social" else "#fff"
    )
    assert "#333" in fills
    assert ("#ccc" in drawn) == (style in {"flat", "plastic"})


@pytest.mark.parametrize("style", STYLES)
def test_an_empty_text_is_not_drawn(style: str) -> None:
    badge = Badge("", "", style=style)
    assert not elements(badge, "text")
    assert not elements(badge, "g[@aria-hidden]")


def test_texts_are_written_as_the_style_writes_them() -> None:
    badge = Badge("page views", "1.2k")
    assert texts(badge) == ["page views", "1.2k"]
    assert texts(badge._replace(style="for-the-badge")) == ["PAGE VIEWS", "1.2K"]
    assert texts(badge._replace(style="social")) == ["Page views", "1.2k"]


@pytest.mark.parametrize("style", STYLES)
def test_screen_readers_get_the_text_of_a_badge(style: str) -> None:
    root = parse(draw(Badge("page views", "1.2k", style=style)))
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == "page views: 1.2k"
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == "page views: 1.2k"


@pytest.mark.parametrize("style", STYLES)
def test_markup_in_a_text_is_escaped(style: str) -> None:
    hostile = """</text><script>alert("x")</script>&amp;'"]]>"""
    badge = Badge(hostile, hostile, style=style)
    assert {one.casefold() for one in texts(badge)} == {hostile.casefold()}
    assert parse(draw(badge)).attrib["aria-label"] == f"{hostile}: {hostile}"


def test_characters_that_xml_does_not_allow_are_removed_and_white_space_is_one_space() -> None:
    badge = Badge("\x00a\x08\x1bb\ud800\uffff\x7f\x9f", "  c\t\r\n \x01 d\n")
    assert texts(badge) == ["ab", "c d"]


@given(badges)
def test_every_badge_is_well_formed_and_refers_to_nothing_outside(badge: Badge) -> None:
    drawn = draw(badge)
    root = parse(drawn.encode().decode())
    named = {one.attrib["id"] for one in root.iter() if "id" in one.attrib}
    asked = set(re.findall(r"url\(#(\w+)\)", drawn))
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= ELEMENTS
    assert asked <= named
    for one in root.iter():
        for name, value in one.attrib.items():
            assert not re.match("on|style|href|src", name)
            assert "://" not in value or name == "aria-label"


@given(badges)
def test_every_text_is_within_its_badge(badge: Badge) -> None:
    root = parse(draw(badge))
    end = float(root.attrib["width"])
    for text in root.findall(f".//{SVG}text"):
        half = float(text.attrib["textLength"]) / 2
        assert half >= 0
        assert float(text.attrib["x"]) - half >= 0
        assert float(text.attrib["x"]) + half <= end


@given(badges, badges)
def test_ids_are_shared_by_none_but_the_same_badge(one: Badge, other: Badge) -> None:
    first, second = (set(re.findall(r' id="(\w+)"', draw(badge))) for badge in (one, other))
    assert draw(one) == draw(one)
    assert one == other or not first & second


@pytest.mark.parametrize("style", STYLES)
def test_a_logo_that_makes_a_badge_too_large_is_left_out_with_the_reason(style: str) -> None:
    short = Badge("views", "1,234", style=style, logo="kubernetes")
    long = short._replace(message="&" * 300)
    logo = logos.find("kubernetes")
    assert logo is not None
    assert logo.shapes in draw(short)
    assert said(short) == []
    assert said(long) == ["Without the logo kubernetes: the badge would have more than 4096 bytes."]
    assert anonymous(draw(long)) == anonymous(draw(long._replace(logo="")))


def anonymous(drawn: str) -> str:
    """Remove the suffix of the ids and the description from a badge."""
    return re.sub(r"<desc>.*</desc>", "", re.sub(r'(id="|#)(\w)\w{8}', r"\1\2", drawn))


def said(badge: Badge) -> list[str | None]:
    return [one.text for one in elements(badge, "desc")]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("one", ["&", "W", "😀", "\U000e0041", "ŉ"])
def test_the_longest_label_count_and_unknown_logo_stay_below_4_kb(style: str, one: str) -> None:
    most = options.CountFormat({"format": ["comma"]}).write(2 * options.MAX_BASE)
    logo = "x" * options.MAX_LOGO
    badge = Badge(one * options.MAX_LABEL, most, "yellow", "white", style, logo)
    assert len(draw(badge).encode()) <= 4096


def test_a_logo_is_drawn_up_to_the_last_byte() -> None:
    rests = set()
    for name in ("c", "css", "github", "npm", "python", "x", "youtube"):
        badge = Badge("", "i" * 700, style="flat-square", logo=name)
        # A message stands in a badge three times, so that each letter more is three bytes.
        more, rest = divmod(4096 - len(draw(badge).encode()), 3)
        longest = badge._replace(message="i" * (700 + more))
        assert len(draw(longest).encode()) == 4096 - rest
        assert said(longest) == []
        assert said(badge._replace(message="i" * (700 + more + 1))) != []
        rests.add(rest)
    assert rests == {0, 1, 2}


def test_a_logo_that_can_not_be_drawn_is_left_out_with_the_reason() -> None:
    unknown = Badge("views", "1", logo="nosuchlogo")
    assert said(unknown) == ["Without the logo nosuchlogo: it is not one of the included logos."]
    assert not elements(unknown, "path")
    large = Logo("#000000", f'<path d="{"M0 0" * 1_000}"/>', "0 0 8 8")
    too_large = "Without your logo: the badge would have more than 4096 bytes."
    assert said(unknown._replace(logo=large)) == [too_large]
    assert said(unknown._replace(logo="")) == []


def test_a_logo_is_dark_on_a_light_half() -> None:
    (on_label,) = elements(Badge("views", "1", "red", "white", logo="javascript"), "svg")
    (on_message,) = elements(Badge("", "1", "white", logo="javascript"), "svg")
    (on_block,) = elements(Badge("", "1", "white", "black", logo="javascript"), "svg")
    fills = [one.attrib["fill"] for one in (on_label, on_message, on_block)]
    assert fills == ["#333333", "#333333", "#f7df1e"]


@pytest.mark.parametrize("style", STYLES)
def test_a_logo_has_the_colour_that_is_given(style: str) -> None:
    (named,) = elements(Badge("views", "1", style=style, logo="git", logo_color="4c1"), "svg")
    assert named.attrib["fill"] == "#44cc11"
    # shapes of the current colour, as most icons have, have it too
    own = Logo("#000000", '<path stroke="currentColor" d="M0 0h1"/>')
    (drawn,) = elements(Badge("views", "1", style=style, logo=own, logo_color="4c1"), "svg")
    assert (drawn.attrib["fill"], drawn.attrib["color"]) == ("#44cc11", "#44cc11")


def test_the_shine_of_a_plastic_badge_counts_as_background() -> None:
    """Green is darker there: white has a contrast of 2.35 without the shine and of 3.5 with it."""
    fills = {
        style: elements(Badge("", "1", "brightgreen", style=style, logo="python"), "svg")[0]
        for style in ("flat", "plastic")
    }
    assert {style: logo.attrib["fill"] for style, logo in fills.items()} == {
        "flat": "#333333",
        "plastic": "#f5f5f5",
    }


@pytest.mark.parametrize("style", sorted({*STYLES} - {"social"}))
def test_only_texts_whose_letters_touch_are_stretched(style: str) -> None:
    adjusted = [
        text.get("lengthAdjust") == "spacingAndGlyphs"
        for text in elements(Badge("المشاهدات", "1,234", style=style), "text")
    ]
    assert sum(adjusted) == len(adjusted) / 2
    assert adjusted[0]


@pytest.mark.parametrize("wrong", [Badge("", "1", color="no"), Badge("", "1", label_color="no")])
def test_a_wrong_colour_is_refused(wrong: Badge) -> None:
    with pytest.raises(ValueError, match="no colour"):
        draw(wrong)


def test_the_styles_are_those_that_the_options_know() -> None:
    assert tuple(STYLES) == options.STYLES


# ---- the JSON of shields.io


def test_a_badge_of_two_texts_and_a_color_has_only_these() -> None:
    """The colour of a logo needs a logo."""
    plain = {"schemaVersion": 1, "label": "views", "message": "0", "color": "blue"}
    assert Badge("views", "0").to_json() == plain
    assert Badge("views", "0", logo_color="#ffffff", spark=(1, 2)).to_json() == plain
    error = plain | {"color": "red", "isError": True}
    assert Badge.error("views", "0").to_json() == error


def test_every_option_that_shields_io_can_draw_is_passed_on() -> None:
    options = BadgeOptions(
        query.parse(
            "id=a&label=Besuche&color=f00&labelColor=black&style=flat-square&logo=github"
            "&logoColor=white&format=comma&base=1200"
        )
    )
    assert options.badge("views", options.write(options.total(34)), "blue").to_json() == {
        "schemaVersion": 1,
        "label": "Besuche",
        "message": "1,234",
        "color": "#ff0000",
        "labelColor": "#000000",
        "style": "flat-square",
        "namedLogo": "github",
        "logoColor": "#ffffff",
    }


def test_an_own_logo_is_a_document_with_its_colour() -> None:
    own = Badge("views", "0", logo=Logo("#000000", '<path d="M0 0h1"/>', "0 0 1 1"))
    document = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"{}><path d="M0 0h1"/></svg>'
    )
    for color, fill in (("", ""), ("#ffffff", ' fill="#ffffff"')):
        body = own._replace(logo_color=color).to_json()
        assert body["logoSvg"] == document.format(fill)
        assert body.keys().isdisjoint({"namedLogo", "logoColor"})


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (BadRequestError("style: give flat"), "style: give flat"),
        (UnavailableError("no answer"), "unavailable: try again"),
        (StorageRefusedError("no right"), "unavailable: try again"),
        (KeyError("id"), "internal error: try again"),
    ],
)
def test_a_failure_is_explained_and_logged_unless_it_is_the_callers(
    failure: Exception, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert explain(failure) == text
    is_callers = isinstance(failure, BadRequestError)
    assert caplog.messages == ([] if is_callers else ["badge_failed"])
