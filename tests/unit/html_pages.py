"""A page of HTML as tests read it."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "img", "source", "input", "br", "hr"}


class Page(HTMLParser):
    """The elements of a page with their attributes, and the texts of each element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.setdefault(self._open[-1], []).append(data)

    def meta(self, name: str) -> str:
        (content,) = (
            attributes["content"]
            for tag, attributes in self.elements
            if tag == "meta" and name in {attributes.get("name"), attributes.get("property")}
        )
        return content

    def values(self, attribute: str) -> list[str]:
        return [one[attribute] for _, one in self.elements if attribute in one]

    @property
    def structure(self) -> list[tuple[str, list[str]]]:
        return [(tag, sorted(attributes)) for tag, attributes in self.elements]

    @property
    def lines(self) -> list[str]:
        return self.texts["code"]
