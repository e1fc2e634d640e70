"""The reference of all calls: `python -m tests.http_reference` writes it into the documents.

Everything from the heading `## Calls` of a page on is made from the OpenAPI description.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, urlencode

from chalicelib import description
from chalicelib.api import TABLE
from tests.markdown_links import to_anchor
from tests.schema_words import Field, Json, Words
from vumi.server.common_commits import METRICS

DOCS = Path(__file__).parents[1] / "docs"
HOME = "http.md"
"""The page with the list of all calls, their rules and their errors."""
PAGES = {
    "badge": "badges.md",
    "history": "badges.md",
    "page": "badges.md",
    "owner": "ownership.md",
    "event": "events.md",
    "wallet": "wallets.md",
    "service": HOME,
}
"""The page of each tag."""
OF_HEAD = "HEAD has the same response without its body, and counts nothing."
"""A sentence about many calls, which the head of the home page has."""
START = "## Calls\n"
HOST = "https://views.example.com"
LONGEST_LINE = 100
SENTENCE = re.compile(r"(?<=[.]) (?=[A-Z])")
OF_REQUESTS = {True: " (required)", False: ""}
OF_ANSWERS = {True: "", False: " (optional)"}
"""The marks of fields by whether they are required."""
GIVEN = {
    "getHistory": {"days": "3"},
    "getHistorySvg": {"days": "90"},
    "echoAtTime": {"ts": "1767225600.5"},
}
"""The options of examples beside the required ones."""
CREDENTIALS = {"token": "TOKEN", "secret": "SECRET"}
MOVED_HERE = "[Badges that moved here](moving-here.md#a-change-of-the-host-name-alone)"
ELSEWHERE = (
    f"- `GET {METRICS}`, on one machine alone: [Metrics for Prometheus](monitoring.md)",
    f"- the URLs of other counters, if `DROP_IN` names them: {MOVED_HERE}",
)
OF_ALL = {"bad_request", "too_large", "too_many_requests", "internal", "unavailable"}
"""Errors that almost every call may have; the list of errors alone has them."""


@dataclass(frozen=True, eq=False)
class Call:
    """A method of a path."""

    method: str
    path: str
    operation: Json
    path_parameters: tuple[Json, ...]
    words: Words

    @property
    def title(self) -> str:
        return f"`{self.method} {self.path}`"

    @property
    def page(self) -> str:
        return PAGES[self.operation["tags"][0]]

    def link_from(self, page: str) -> str:
        target = "" if page == self.page else self.page
        return f"[{self.title}]({target}#{to_anchor(self.title)})"

    @cached_property
    def parameters(self) -> list[Json]:
        references = (*self.path_parameters, *self.operation.get("parameters", ()))
        return [self.words.resolve(one) for one in references]

    @property
    def schemes(self) -> list[str]:
        return [name for one in self.operation.get("security", ()) for name in one]

    @property
    def body(self) -> tuple[str, Json] | None:
        """Return the type and the schema of the body."""
        contents = self.operation.get("requestBody", {}).get("content", {})
        return next(iter(contents.items()), None)

    def responses(self, *, errors: bool) -> Iterator[tuple[int, Json, str]]:
        """Yield the status, the response and its component."""
        for status, response in self.operation["responses"].items():
            if (int(status) >= 400) == errors:
                yield int(status), self.words.resolve(response), response.get("$ref", "")


def calls(document: Json) -> list[Call]:
    """Return all calls, in the order of the description."""
    words = Words(document)
    return [
        Call(method.upper(), path, operation, tuple(item.get("parameters", ())), words)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    ]


def written(page: str) -> str:
    """Return a page with its calls as they are described."""
    head = (DOCS / page).read_text(encoding="utf-8").partition(START)[0]
    lines = Reference(description.document(TABLE.routes), page).lines()
    return f"{head}{START}\n{chr(10).join(lines).strip()}\n"


class Reference:
    """The generated part of a page."""

    def __init__(self, document: Json, page: str) -> None:
        self._document = document
        self._page = page
        self._calls = calls(document)
        self._described: dict[tuple[str, str], Call] = {}
        self._objects: dict[str, Call] = {}
        self._summaries: dict[tuple[str, str], Call] = {}

    def lines(self) -> Iterator[str]:
        if self._page == HOME:
            yield from self._overview()
            yield from self._errors()
        for tag in self._document["tags"]:
            lines = (
                ["", "## Service", *self._tag(tag)]
                if tag["name"] == "service"
                else [*self._tag(tag)]
            )
            if PAGES[tag["name"]] == self._page:
                yield from lines

    def _tag(self, tag: Json) -> Iterator[str]:
        yield from ("", tag["description"])
        for call in self._calls:
            if tag["name"] in call.operation["tags"]:
                yield from self._call(call)

    def _overview(self) -> Iterator[str]:
        for call in self._calls:
            who = "".join(f" (`{CREDENTIALS[name]}`)" for name in call.schemes)
            yield f"- {call.link_from(self._page)}{who}: {call.operation['summary']}"
        yield from ELSEWHERE

    def _errors(self) -> Iterator[str]:
        yield from ("", "## Rules of all calls", "", self._document["info"]["description"])
        yield from ("", "## Errors", "")
        meanings: dict[tuple[int, str], dict[str, None]] = {}
        for call in self._calls:
            for status, response, _ in call.responses(errors=True):
                for code, meaning in _meanings(response):
                    meanings.setdefault((status, code), {})[meaning] = None
        for (status, code), texts in sorted(meanings.items()):
            yield f"- {status} `{code}`: {' '.join(texts)}"

    def _call(self, call: Call) -> Iterator[str]:
        operation = call.operation
        yield from ("", f"### {call.title}", "", f"{operation['summary']}.")
        if operation.get("deprecated"):
            yield from ("", "Deprecated.")
        same = self._summaries.setdefault((call.method, operation["summary"]), call)
        if same is not call and same.body == call.body:
            yield from ("", f"All else is as in {same.link_from(self._page)}.")
            yield from self._parameters(call)
        else:
            description = operation.get("description", "").replace(OF_HEAD, "").strip()
            if description:
                yield from ("", description)
            for scheme in call.schemes:
                yield from ("", f"Authentication: `Authorization: Bearer {CREDENTIALS[scheme]}`.")
            yield from self._parameters(call)
            yield from self._body(call)
            yield from self._answers(call)
        for example in examples(call):
            yield from example.lines()

    def _parameters(self, call: Call) -> Iterator[str]:
        keys = {one["name"]: (one["name"], json.dumps(one)) for one in call.parameters}
        known = {name: self._described.get(key) for name, key in keys.items()}
        fields = [
            Field(
                one["name"],
                one.get("required", False),
                call.words.values(one["schema"]) + _such_as(one),
                one["description"],
            )
            for one in call.parameters
            if not known[one["name"]]
        ]
        yield from _list("Parameters:", fields, OF_REQUESTS)
        earlier = dict.fromkeys(filter(None, known.values()))
        parts = [
            f"{', '.join(f'`{name}`' for name, other in known.items() if other is one)}"
            f" as in {one.link_from(self._page)}"
            for one in earlier
        ]
        if parts:
            yield from ("", f"Parameters: {'; '.join(parts)}.")
        for key in keys.values():
            self._described.setdefault(key, call)

    def _body(self, call: Call) -> Iterator[str]:
        if call.body is None:
            return
        kind, content = call.body
        yield from ("", f"The body is `{kind}`.{self._of_schema(content['schema'], call)}")
        yield from self._fields(content["schema"], call, OF_REQUESTS)

    def _of_schema(self, schema: Json, call: Call) -> str:
        text = call.words.resolve(schema).get("description", "")
        return f" {text}" if text else ""

    def _fields(self, schema: Json, call: Call, marks: Mapping[bool, str]) -> Iterator[str]:
        ref = schema.get("$ref", "")
        if earlier := self._objects.get(ref):
            yield from ("", f"Its fields are those in {earlier.link_from(self._page)}.")
            return
        if ref:
            self._objects[ref] = call
        yield from _list("", call.words.fields(schema).values(), marks)

    def _answers(self, call: Call) -> Iterator[str]:
        for status, response, _ in call.responses(errors=False):
            kinds = ", ".join(f"`{kind}`" for kind in response.get("content", {})) or "no body"
            text = f"Answers {status}, {kinds}. {_sentence(response['description'])}".strip()
            yield from ("", text)
            for content in response.get("content", {}).values():
                if "schema" in content:
                    yield from self._fields(content["schema"], call, OF_ANSWERS)
        codes = [
            f"`{code}`"
            for _, response, _ in call.responses(errors=True)
            for code in _codes(response)
            if code not in OF_ALL
        ]
        if codes:
            yield from ("", f"[Errors]({HOME}#errors): {', '.join(codes)}.")


def _codes(response: Json) -> list[str]:
    """Return the codes of an error."""
    [content] = response["content"].values()
    error = content["schema"]["properties"]["error"]["properties"]["code"]
    codes: list[str] = error.get("enum") or [error["const"]]
    return codes


def _meanings(response: Json) -> Iterator[tuple[str, str]]:
    """Yield each code of an error with its meaning, which is a sentence if there are several."""
    codes, text = _codes(response), response["description"]
    sentences = SENTENCE.split(text)
    if len(sentences) != len(codes):
        sentences = [text] * len(codes)
    yield from zip(codes, sentences, strict=True)


def _sentence(text: str) -> str:
    """Return a description, unless it is the phrase of a status."""
    return text if text.endswith(".") else ""


def _such_as(parameter: Json) -> str:
    return f"; such as `{parameter['example']}`" if "example" in parameter else ""


def _list(title: str, fields: Iterable[Field], marks: Mapping[bool, str]) -> Iterator[str]:
    rows = [
        f"- `{one.name}`{marks[one.is_required]}: {one.values}. {one.meaning}".strip()
        for one in fields
    ]
    if rows and title:
        yield from ("", title)
    if rows:
        yield from ("", *rows)


# ---- examples


@dataclass(frozen=True)
class Example:
    """A request as a line for curl, and its answer."""

    curl: str
    status: int
    kind: str
    answer: Json | None

    def lines(self) -> Iterator[str]:
        yield from ("", "```sh", self.curl, "```", "")
        if self.answer is None:
            kind = f" and `{self.kind}`" if self.kind else ""
            yield f"The answer is {self.status}{kind}."
            return
        short = json.dumps(self.answer, ensure_ascii=False)
        long = json.dumps(self.answer, ensure_ascii=False, indent=2)
        yield from (f"The answer is {self.status}:", "", "```json")
        yield from (short if len(short) <= LONGEST_LINE else long, "```")


def examples(call: Call) -> Iterator[Example]:
    """Yield the first example of a call, and each other one that an answer has by its name."""
    _, content = call.body or ("", {})
    named = {name: one["value"] for name, one in content.get("examples", {}).items()}
    bodies = named or {"": content.get("example")}
    for number, (name, body) in enumerate(bodies.items()):
        status, kind, answer, is_named = _answer(call, name)
        if number == 0 or is_named:
            yield Example(_curl(call, body), status, kind, answer)


def _answer(call: Call, name: str) -> tuple[int, str, Json | None, bool]:
    """Return the status, the type, the JSON, and whether an answer has this name."""
    found = (0, "", None, False)
    for status, response, _ in call.responses(errors=False):
        contents: dict[str, Json] = response.get("content", {})
        kind, content = next(iter(contents.items()), ("", {}))
        answers = {one: part["value"] for one, part in content.get("examples", {}).items()}
        if name in answers:
            return status, kind, answers[name], True
        found = (status, kind, content.get("example") or answers.get("shown"), False)
    return found


def _curl(call: Call, body: Json | str | None) -> str:
    words = ["curl"] + (["-X", call.method] if _needs_method(call.method, body) else [])
    for scheme in call.schemes:
        words += ["-H", f"Authorization: Bearer {CREDENTIALS[scheme]}"]
    if call.body and call.body[0] != "application/json":
        words += ["-H", f"Content-Type: {call.body[0]}"]
    if body is not None:
        words += ["-d", body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)]
    return shlex.join([*words, _url(call)])


def _needs_method(method: str, body: Json | str | None) -> bool:
    return method != ("GET" if body is None else "POST")


def _url(call: Call) -> str:
    path, query = call.path, dict[str, str]()
    for one in call.parameters:
        if one["in"] == "path":
            path = path.replace(f"{{{one['name']}}}", quote(one["example"], safe=""))
        elif one.get("required"):
            query[one["name"]] = one["example"]
    query |= GIVEN.get(call.operation["operationId"], {})
    return f"{HOST}{path}" + (f"?{urlencode(query, quote_via=quote, safe='')}" if query else "")


if __name__ == "__main__":
    for page in dict.fromkeys(PAGES.values()):
        (DOCS / page).write_text(written(page), encoding="utf-8")
