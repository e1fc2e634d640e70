"""A user's own logo: a small SVG document in a data URL, copied part by part from lists.

Nothing is copied that the lists don't have: no script, style sheet, text, reference or id. So the
logo is safe wherever the badge is drawn, also by programs other than browsers.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from xml.parsers import expat

from chalicelib.badges.logos import Logo
from chalicelib.http.query import shown

PREFIX = "data:image/svg+xml;base64,"
MAX_LENGTH = 4_000
"""The length of the longest data URL. A badge has at most 4,096 bytes, with its logo."""
MAX_ELEMENTS, MAX_DEPTH = 200, 16
"""The most elements, and their deepest nesting. Programs that draw SVG stop at a depth of 256."""
MIN_SIDE, MAX_NUMBER = 1e-3, 1e6
"""The bounds of a view box, and of the numbers in it."""
NAMESPACE = "http://www.w3.org/2000/svg"
BLACK = "#000000"
"""The colour of shapes without one."""

PLAIN = r"[-+]?(?:\d{1,9}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,2})?"
NUMBER = re.compile(PLAIN, re.ASCII)
LENGTH = re.compile(f"{PLAIN}(?:px|%)?", re.ASCII)
NUMBERS = re.compile(r"[-+\d.eE,\s]+", re.ASCII)
PATH = re.compile(r"[MmZzLlHhVvCcSsQqTtAa\d.eE,+\s-]+", re.ASCII)
WORD = re.compile("[a-z-]{3,10}")
PAINT = re.compile(r"#[\dA-Fa-f]{3,8}|[A-Za-z]{3,20}|rgba?\([\d.,% ]{5,40}\)", re.ASCII)
TRANSFORM = re.compile(
    r"\s*(?:(?:matrix|translate|scale|rotate|skewX|skewY)\s*\([-+\d.eE,\s]+\)[\s,]*)+", re.ASCII
)
SHAPES: Mapping[str, Mapping[str, re.Pattern[str]]] = {
    "path": {"d": PATH},
    "rect": dict.fromkeys(("x", "y", "width", "height", "rx", "ry"), LENGTH),
    "circle": dict.fromkeys(("cx", "cy", "r"), LENGTH),
    "ellipse": dict.fromkeys(("cx", "cy", "rx", "ry"), LENGTH),
    "line": dict.fromkeys(("x1", "y1", "x2", "y2"), LENGTH),
    "polyline": {"points": NUMBERS},
    "polygon": {"points": NUMBERS},
}
"""The elements that draw, with their own attributes."""
LOOK: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("fill", "stroke", "color"), PAINT),
    **dict.fromkeys(("fill-rule", "clip-rule", "stroke-linecap", "stroke-linejoin"), WORD),
    **dict.fromkeys(("opacity", "fill-opacity", "stroke-opacity"), LENGTH),
    **dict.fromkeys(("stroke-width", "stroke-miterlimit"), LENGTH),
}
"""The attributes of every element, also inside `style`."""
KNOWN = {tag: {**LOOK, **own, "transform": TRANSFORM} for tag, own in {"g": {}, **SHAPES}.items()}
"""The elements that are copied, with all their attributes."""
SILENT = {"title", "desc"}
"""The elements that are left out with their text."""
IGNORED = re.compile(
    "id|class|role|version|baseProfile|focusable|preserveAspectRatio|enable-background"
    "|http://www.w3.org/XML/1998/namespace space|(aria|data)-[a-z-]+"
)
"""The attributes that are left out because they change nothing here."""
OF_ROOT = {"viewBox", "width", "height", "x", "y"}


def parse(given: str) -> Logo:
    """Return the logo in a data URL. Raises `ValueError`, whose message says what to change."""
    if len(given) > MAX_LENGTH:
        raise ValueError(f"give a data URL of at most {MAX_LENGTH} characters, not {len(given)}")
    # An unescaped plus sign in a query is a space.
    url = given.replace(" ", "+")
    if not url.startswith(PREFIX):
        raise ValueError(f"give {PREFIX}…, not {shown(given)}")
    reader = _Reader()
    reader.read(_decode(url.removeprefix(PREFIX).rstrip("=")))
    if not reader.draws:
        raise ValueError("the SVG draws nothing: give it a path")
    return Logo(BLACK, "".join(reader.pieces), reader.view_box)


def _decode(encoded: str) -> str:
    try:
        return b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode()
    except ValueError:
        raise ValueError("the data URL is no UTF-8 in base64: encode the file again") from None


class _Reader:
    """The copy of a document, filled while its elements are read."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.view_box = ""
        self.draws = False
        self._elements = 0
        self._depth = 0

    def read(self, document: str) -> None:
        """Read a document. One with a document type, which entities need, is refused."""
        parser = expat.ParserCreate("UTF-8", namespace_separator=" ")
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        try:
            parser.Parse(document, True)  # noqa: FBT003  the last part of the document
        except expat.ExpatError as wrong:
            place = f"line {wrong.lineno}, column {wrong.offset + 1}"
            raise ValueError(f"the SVG is not well-formed at {place}: save it again") from None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.removeprefix(f"{NAMESPACE} ")
        self._elements += 1
        self._depth += 1
        if self._depth == 1:
            self._start_root(tag, attributes)
        elif self._elements > MAX_ELEMENTS:
            raise ValueError(f"the SVG has more than {MAX_ELEMENTS} elements: join its paths")
        elif self._depth > MAX_DEPTH:
            raise ValueError(f"the SVG is nested deeper than {MAX_DEPTH}: flatten it")
        elif tag not in SILENT:
            self._copy(tag, attributes)

    def _start_root(self, tag: str, attributes: dict[str, str]) -> None:
        if tag != "svg":
            raise ValueError(f"the document is {_name(tag)}: give an svg")
        self.view_box = _read_view_box(attributes)
        look = {name: text for name, text in attributes.items() if name not in OF_ROOT}
        self.pieces.append(f"<g{_write(tag, look, LOOK)}>")

    def _copy(self, tag: str, attributes: dict[str, str]) -> None:
        if tag not in KNOWN:
            raise ValueError(f"no {_name(tag)} in a logo: draw it with {', '.join(KNOWN)}")
        self.draws |= tag in SHAPES
        self.pieces.append(f"<{tag}{_write(tag, attributes, KNOWN[tag])}>")

    def _end(self, name: str) -> None:
        tag = "g" if self._depth == 1 else name.removeprefix(f"{NAMESPACE} ")
        self._depth -= 1
        if tag in SILENT:
            return
        if self.pieces[-1].startswith(f"<{tag}") and not self.pieces[-1].endswith("/>"):
            self.pieces[-1] = self.pieces[-1][:-1] + "/>"
        else:
            self.pieces.append(f"</{tag}>")


def _refuse_doctype(*_: object) -> None:
    raise ValueError("no DOCTYPE in a logo: leave it out")


def _read_view_box(attributes: dict[str, str]) -> str:
    """Return the view box of the root, or one of its width and height."""
    size = [attributes.get(name, "").removesuffix("px") for name in ("width", "height")]
    box = attributes.get("viewBox", " ".join(["0 0", *size])).replace(",", " ").split()
    if len(box) != 4 or not all(map(NUMBER.fullmatch, box)):  # noqa: PLR2004  x, y and a size
        raise ValueError("the SVG has no viewBox of four numbers: give it one")
    _check_numbers("svg", "viewBox", " ".join(box))
    if not all(float(side) >= MIN_SIDE for side in box[2:]):
        raise ValueError("the SVG has a viewBox without a size: make it wider and higher")
    return " ".join(box)


def _write(tag: str, attributes: dict[str, str], known: Mapping[str, re.Pattern[str]]) -> str:
    """Write the attributes of an element. Raises `ValueError` for one that is not known."""
    return "".join(
        f' {name}="{_check(tag, name, text, known)}"'
        for name, text in dict(_split(attributes)).items()
        if not IGNORED.fullmatch(name)
    )


def _split(attributes: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the attributes of an element, and those inside its `style`, which may repeat them."""
    for name, text in attributes.items():
        if name == "style":
            for declaration in filter(str.strip, text.split(";")):
                inner, _, value = declaration.partition(":")
                yield inner.strip(), value.strip()
        else:
            yield name, text.strip()


def _check(tag: str, name: str, text: str, known: Mapping[str, re.Pattern[str]]) -> str:
    if name not in known:
        raise ValueError(f"no {_name(name)} in the {tag} of a logo: leave it out")
    if known[name].fullmatch(text) is None:
        raise ValueError(f"{name} of the {tag} is {shown(text)}: give plain numbers or a colour")
    if known[name] is not PAINT:
        _check_numbers(tag, name, text)
    return text


def _check_numbers(tag: str, name: str, text: str) -> None:
    if any(abs(float(number)) > MAX_NUMBER for number in NUMBER.findall(text)):
        raise ValueError(f"{name} of the {tag} has a number over a million: scale it down")


def _name(full: str) -> str:
    """Return the name of an element or an attribute without its namespace, for a message."""
    return shown(full.rpartition(" ")[2])
