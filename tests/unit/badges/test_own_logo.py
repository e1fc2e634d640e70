"""A user's own logo: its shapes are drawn, and nothing else of its document reaches a badge."""

from __future__ import annotations

import re
from base64 import b64encode
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.badges import own_logo
from chalicelib.badges.logos import Logo
from chalicelib.badges.options import Badge
from chalicelib.badges.own_logo import LOOK, MAX_DEPTH, MAX_ELEMENTS, MAX_LENGTH, PREFIX, SHAPES
from chalicelib.badges.svg import MAX_BYTES, draw
from chalicelib.badges.svg_styles import STYLES

FITS = 120 - len("logo: ")
SVG = "{http://www.w3.org/2000/svg}"


def url(document: str | bytes) -> str:
    return (
        PREFIX + b64encode(document if isinstance(document, bytes) else document.encode()).decode()
    )


def of(content: str, root: str = 'viewBox="0 0 24 24"') -> str:
    return url(f'<svg xmlns="http://www.w3.org/2000/svg" {root}>{content}</svg>')


def parse(content: str, root: str = 'viewBox="0 0 24 24"') -> Logo:
    return own_logo.parse(of(content, root))


@pytest.mark.parametrize(
    "shape",
    [
        '<path d="M1.5-2e-3 3,4a1 1 0 01.5.5z"/>',
        '<rect x="1" y="-2" width="3px" height="50%" rx=".5" ry="1e1"/>',
        '<circle cx="1" cy="2" r="3"/>',
        '<ellipse cx="1" cy="2" rx="3" ry="4"/>',
        '<line x1="1" y1="2" x2="3" y2="4"/>',
        '<polyline points="1,2 3,4"/>',
        '<polygon points="1 2 -3 4"/>',
        '<g fill="#fff" stroke="rgb(1, 2, 3)" stroke-width="2"><path d="M0 0"/></g>',
        '<path fill="none" fill-rule="evenodd" opacity=".5" d="M0 0"/>',
        '<path transform="translate(1 -2) rotate(45), scale(.5)" d="M0 0"/>',
        '<path stroke="currentColor" stroke-linecap="round" stroke-linejoin="round" d="M0 0"/>',
    ],
)
def test_a_shape_is_copied(shape: str) -> None:
    assert parse(shape) == Logo("#000000", f"<g>{shape}</g>", "0 0 24 24")


@pytest.mark.parametrize(
    ("content", "copied"),
    [
        ('<title>My &lt;logo&gt;</title><path d="M0 0"></path>', '<path d="M0 0"/>'),
        ('<!-- by an editor --><?pi x?><path id="a" class="b" d="M0 0"/>', '<path d="M0 0"/>'),
        ('<desc>x</desc>text<path data-name="x" d="M0 0"/>', '<path d="M0 0"/>'),
        (
            '<path style="fill:red; stroke : blue;" d="M0 0"/>',
            '<path fill="red" stroke="blue" d="M0 0"/>',
        ),
        # the style counts, as in CSS, and an attribute stands in the badge once
        ('<path fill="red" style="fill:blue" d="M0 0"/>', '<path fill="blue" d="M0 0"/>'),
        ('<path d=" M0&#32;0 "/>', '<path d="M0 0"/>'),
        ('<g></g><path d="M0 0"/>', '<g/><path d="M0 0"/>'),
    ],
)
def test_the_rest_is_left_out(content: str, copied: str) -> None:
    assert parse(content).shapes == f"<g>{copied}</g>"


def test_the_look_of_the_root_is_that_of_the_logo() -> None:
    look = 'fill="none" stroke="currentColor" stroke-width="2"'
    root = f'width="24" height="24px" viewBox="0,0 24 24" {look} xml:space="preserve" version="1.1"'
    assert parse('<path d="M0 0"/>', root) == Logo(
        "#000000", f'<g {look}><path d="M0 0"/></g>', "0 0 24 24"
    )


@pytest.mark.parametrize("root", ['width="32" height="16px"', 'viewBox="0 0 32 16"'])
def test_a_size_is_a_view_box(root: str) -> None:
    assert parse('<path d="M0 0"/>', root).view_box == "0 0 32 16"


def test_a_document_may_lack_a_namespace_and_padding_and_have_spaces_for_plus_signs() -> None:
    # the base64 of this document has plus signs and padding
    document = (
        '<?xml version="1.0"?><svg viewBox="0 0 9 9"><path d="M0 0"/><title>>>?>>~~</title></svg>'
    )
    given_url = url(document)
    wanted = own_logo.parse(given_url)
    assert given_url.endswith("=")
    assert given_url.count("+") > 1
    assert own_logo.parse(given_url.replace("+", " ").rstrip("=")) == wanted


PARTS = [
    ("<script>alert(1)</script>", "no 'script' in a logo: draw it with g, path, rect, circle"),
    ("<style>*{}</style>", "no 'style' in a logo"),
    ("<image href='https://x.example/a.png'/>", "no 'image' in a logo"),
    ("<use href='#a'/>", "no 'use' in a logo"),
    ("<text>1234</text>", "no 'text' in a logo"),
    ("<foreignObject/>", "no 'foreignObject' in a logo"),
    ("<animate attributeName='d'/>", "no 'animate' in a logo"),
    ("<a href='https://x.example'/>", "no 'a' in a logo"),
    ("<filter/>", "no 'filter' in a logo"),
    ("<svg/>", "no 'svg' in a logo"),
    ("<title><script/></title>", "no 'script' in a logo"),
    ("<path xmlns='http://www.w3.org/1999/xhtml' d='M0 0'/>", "no 'path' in a logo"),
    ("<path onload='alert(1)' d='M0 0'/>", "no 'onload' in the path of a logo: leave it out"),
    ("<path href='x' d='M0 0'/>", "no 'href' in the path of a logo: leave it out"),
    ("<path xmlns:a='b' a:d='x' d='M0 0'/>", "no 'd' in the path of a logo: leave it out"),
    ("<path style='filter:url(#a)' d='M0 0'/>", "no 'filter' in the path of a logo"),
    ("<path stroke-dasharray='.001' d='M0 0'/>", "no 'stroke-dasharray' in the path"),
    ("<rect d='M0 0'/>", "no 'd' in the rect of a logo: leave it out"),
    ("<path fill='url(#a)' d='M0 0'/>", "fill of the path is 'url(#a)': give plain numbers or"),
    ("<path fill='red\"/>' d='M0 0'/>", "fill of the path is 'red\"/>'"),
    ("<path style='fill:url(x)' d='M0 0'/>", "fill of the path is 'url(x)'"),
    ("<path d='M0 0&quot;/>&lt;script>'/>", "d of the path is"),
    ("<path transform='evil(1)' d='M0 0'/>", "transform of the path is 'evil(1)'"),
    ("<path d='M1e9 0'/>", "d of the path has a number over a million: scale it down"),
    ("<path d='M-1000001 0'/>", "d of the path has a number over a million: scale it down"),
    ("<circle r='1e99'/>", "r of the circle has a number over a million: scale it down"),
    ("<g/>", "the SVG draws nothing: give it a path"),
    ("<path d='M0 0'>", "the SVG is not well-formed at line 1, column"),
    ("&nbsp;", "the SVG is not well-formed at line 1, column"),
    ("<g/>" * MAX_ELEMENTS, "the SVG has more than 200 elements: join its paths"),
    ("<g>" * MAX_DEPTH + "</g>" * MAX_DEPTH, "the SVG is nested deeper than 16: flatten it"),
]
DOCUMENTS = [
    (
        "data:image/png;base64,AA==",
        "give data:image/svg+xml;base64,…, not 'data:image/png;base",
    ),
    ("data:image/svg+xml,<svg/>", "give data:image/svg+xml;base64,…, not 'data:image/svg+xml,"),
    (PREFIX + "A" * MAX_LENGTH, "give a data URL of at most 4000 characters, not 4026"),
    (PREFIX + "*", "the data URL is no UTF-8 in base64: encode the file again"),
    (PREFIX + "PHN2", "the SVG is not well-formed at line 1, column"),
    (url(b"\xff\xfe<\0s\0"), "the data URL is no UTF-8 in base64: encode the file again"),
    (url(b"\x89PNG"), "the data URL is no UTF-8 in base64: encode the file again"),
    (url(""), "the SVG is not well-formed at line 1, column 1: save it again"),
    (url("<html/>"), "the document is 'html': give an svg"),
    (url("<svg/>"), "the SVG has no viewBox of four numbers: give it one"),
    (url('<svg viewBox="0 0 1"/>'), "the SVG has no viewBox of four numbers: give it one"),
    (url('<svg viewBox="0 0 . 1"/>'), "the SVG has no viewBox of four numbers: give it one"),
    (url('<svg viewBox="0 0 NaN 1"/>'), "the SVG has no viewBox of four numbers: give it one"),
    (url('<svg viewBox="0 0 1e9 1"/>'), "viewBox of the svg has a number over a million"),
    (url('<svg viewBox="0 0 0 1"/>'), "the SVG has a viewBox without a size: make it wider"),
    (url('<svg viewBox="0 0 1 -1"/>'), "the SVG has a viewBox without a size: make it wider"),
    (
        url('<svg viewBox="0 0 1 1" onload="x"/>'),
        "no 'onload' in the svg of a logo: leave it out",
    ),
    (url("<!DOCTYPE svg><svg/>"), "no DOCTYPE in a logo: leave it out"),
    (url("<!DOCTYPE s [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><svg>&a;</svg>"), "no DOCTYPE"),
    (url("<!DOCTYPE s [<!ENTITY a 'aa'><!ENTITY b '&a;&a;'>]><svg>&b;</svg>"), "no DOCTYPE"),
]


@pytest.mark.parametrize(
    ("given_url", "says"), [*((of(content), says) for content, says in PARTS), *DOCUMENTS]
)
def test_what_is_no_logo_or_has_another_part_is_refused(given_url: str, says: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(says)}") as refused:
        own_logo.parse(given_url)
    assert len(str(refused.value)) <= FITS


def test_the_deepest_richest_and_longest_logos_are_read() -> None:
    groups = MAX_DEPTH - 2
    assert (
        parse("<g>" * groups + '<path d="M0 0"/>' + "</g>" * groups).shapes.count("<g>")
        == groups + 1
    )
    shape = '<path d="M0 0"/>'
    most = parse("<g/>" * (MAX_ELEMENTS - 2) + shape)
    assert most.shapes.count("<g/>") == MAX_ELEMENTS - 2
    room = (MAX_LENGTH - len(PREFIX)) // 4 * 3
    start, end = '<svg viewBox="0 0 9 9"><path d="', '"/></svg>'
    longest = url(f"{start}{'0' * (room - len(start) - len(end))}{end}")
    assert MAX_LENGTH - 4 < len(longest) <= MAX_LENGTH
    assert own_logo.parse(longest).view_box == "0 0 9 9"


# ---- any document

HOSTILE = (
    "<script>alert(1)</script>",
    '<image href="https://x.example/a.png"/>',
    '<use xlink:href="data:x#a"/>',
    "<foreignObject><iframe src='//x.example'/></foreignObject>",
    '<path d="M0 0" onclick="alert(1)"/>',
    '<path style="fill:url(https://x.example/a)" d="M0 0"/>',
    '<path fill="red&quot; onload=&quot;alert(1)" d="M0 0"/>',
    '<path d="M0 0\'/><script>"/>',
    "<![CDATA[<script>]]>",
    "</svg><script/>",
    "<!DOCTYPE x>",
    "<!-- --",
    "<style>@import '//x.example'</style>",
    '<animate attributeName="href" to="javascript:alert(1)"/>',
    "&#0;",
    "&lol;",
    "\ud7ff\ufffe",
)
names = st.sampled_from(
    [*SHAPES, "g", "svg", "title", "desc", "script", "image", "use", "a", "text", "style", "x:path"]
)
attributes = st.sampled_from(
    [*LOOK, *SHAPES["rect"], "d", "points", "transform", "style", "href", "onload", "id", "xmlns"]
)
values = (
    st.sampled_from(
        ["red", "#fff", "1", "-.5e1", "M0 0h1", "0 0 1 1", "scale(2)", "currentColor", "fill:red"]
    )
    | st.sampled_from(["url(#a)", "javascript:x", "https://x.example", "&quot;", "&lt;b>", "1e999"])
    | st.text(max_size=8)
)
written = st.lists(st.tuples(attributes, values), max_size=4).map(
    lambda pairs: "".join(f' {name}="{text}"' for name, text in pairs)
)
nodes = st.recursive(
    st.sampled_from(HOSTILE) | st.text(max_size=5) | st.just('<path d="M0 0h1"/>'),
    lambda inner: st.tuples(names, written, st.lists(inner, max_size=3)).map(
        lambda node: f"<{node[0]}{node[1]}>{''.join(node[2])}</{node[0]}>"
    ),
    max_leaves=8,
)
documents = st.tuples(written, st.lists(nodes, max_size=4)).map(
    lambda parts: f'<svg viewBox="0 0 9 9"{parts[0]}>{"".join(parts[1])}</svg>'
)


def check_drawn(given_url: str, style: str) -> bool:
    try:
        logo = own_logo.parse(given_url)
    except ValueError as refused:
        assert len(str(refused)) <= FITS  # noqa: PT017  it must fit on a badge
        return False
    drawn = draw(Badge("views", "1,234", style=style, logo=logo))
    assert len(drawn.encode()) <= MAX_BYTES
    for document in (drawn, logo.document("")):
        for element in ET.fromstring(document).iter():  # noqa: S314  what our parser let through
            check_element(element)
    return True


def check_element(element: ET.Element) -> None:
    allowed = {*SHAPES, "g", "svg", "title", "desc", "text"}
    assert element.tag.removeprefix(SVG) in allowed | {
        "linearGradient",
        "stop",
        "filter",
        "feGaussianBlur",
        "clipPath",
    }
    for name, value in element.attrib.items():
        assert not re.match("on|style|href|src|class|{", name)
        assert not re.search(r"script|://|url\((?!#[bsr][0-9a-f]{8}\))", value)


shapes = st.lists(
    st.tuples(st.sampled_from([*SHAPES, "g"]), st.sampled_from([*LOOK]), values), max_size=5
).map(lambda given: "".join(f'<{tag} {name}="{value}"/>' for tag, name, value in given))
drawings = shapes.map(lambda some: f'<svg viewBox="0 0 9 9">{some}<path d="M0 0"/></svg>')
others = st.text() | st.binary().map(lambda raw: PREFIX + b64encode(raw).decode())


@settings(max_examples=300)
@given(documents.map(url) | drawings.map(url) | others, st.sampled_from(list(STYLES)))
def test_no_document_brings_a_script_or_a_reference_into_a_badge(
    given_url: str, style: str
) -> None:
    """Any text is a logo, or refused in words that fit on a badge."""
    check_drawn(given_url, style)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_part_is_refused_or_left_out(hostile: str) -> None:
    document = f'<svg viewBox="0 0 9 9">{hostile}<path d="M0 0"/></svg>'
    accepted = check_drawn(url(document), "flat")
    # A CDATA section is text, which is left out.
    assert accepted == hostile.startswith("<![CDATA[")
