"""The reference of all calls, docs/http.md: `python -m tests.http_reference` writes it.

Everything from the heading `## Calls` on is made from the OpenAPI description.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, urlencode

from tests.schema_words import Field, Json, Words

from chalicelib import description
from chalicelib.api import TABLE
from tests.markdown_links import to_anchor
from vumi.server.common_commits import METRICS

PAGE = Path(__file__).parents[1] / "docs" / "http.md"
START = "## Calls\n"
HOST = "https://views.example.com"
COMMON = 8
"""An error of at least this many calls is described once, for all of them."""
LONGEST_LINE = 100
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
    (
        f"`GET {METRICS}`",
        "[Metrics for Prometheus](monitoring.md), on one machine alone",
        "`TOKEN`, or none for a program on the same machine",
    ),
    ("the URLs of other counters", f"{MOVED_HERE}, if `DROP_IN` names the counter", ""),
)


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
    def link(self) -> str:
        return f"[{self.title}](#{to_anchor(self.title)})"

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


def written(text: str) -> str:
    """Return the page with its calls as they are described."""
    head = text.partition(START)[0]
    lines = Reference(description.document(TABLE.routes)).lines()
    return "\n".join([f"{head}{START}", *lines, ""])


class Reference:
    """The generated part of the page."""

    def __init__(self, document: Json) -> None:
        self._document = document
        self._calls = calls(document)
        used = Counter(ref for call in self._calls for *_, ref in call.responses(errors=True))
        self._common = {ref for ref, count in used.items() if ref and count >= COMMON}
        self._described: dict[tuple[str, str], Call] = {}
        self._objects: dict[str, Call] = {}

    def lines(self) -> Iterator[str]:
        yield from self._overview()
        yield from self._errors()
        for tag in self._document["tags"]:
            yield from ("", f"## {tag['name'].capitalize()}", "", tag["description"])
            for call in self._calls:
                if tag["name"] in call.operation["tags"]:
                    yield from self._call(call)

    def _overview(self) -> Iterator[str]:
        yield from ("| call | it does this | authentication |", "|---|---|---|")
        for call in self._calls:
            who = ", ".join(f"`{CREDENTIALS[name]}`" for name in call.schemes)
            yield _row(call.link, call.operation["summary"], who)
        yield from (_row(*cells) for cells in ELSEWHERE)

    def _errors(self) -> Iterator[str]:
        yield from ("", "## Rules of all calls", "", self._document["info"]["description"])
        yield from ("", "## Errors of many calls", "")
        yield from ("| status | code | meaning |", "|---|---|---|")
        known = {
            ref: (status, response)
            for call in self._calls
            for status, response, ref in call.responses(errors=True)
            if ref in self._common
        }
        for status, response in sorted(known.values(), key=lambda one: one[0]):
            yield _row(str(status), self._codes(response), response["description"])

    def _codes(self, response: Json) -> str:
        [content] = response["content"].values()
        error = content["schema"]["properties"]["error"]["properties"]["code"]
        return ", ".join(f"`{code}`" for code in error.get("enum") or [error["const"]])

    def _call(self, call: Call) -> Iterator[str]:
        operation = call.operation
        yield from ("", f"### {call.title}", "", f"{operation['summary']}.")
        if operation.get("deprecated"):
            yield from ("", "Deprecated.")
        if "description" in operation:
            yield from ("", operation["description"])
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
        yield from _table("parameter", fields, OF_REQUESTS)
        earlier = dict.fromkeys(filter(None, known.values()))
        parts = [
            f"{', '.join(f'`{name}`' for name, other in known.items() if other is one)}"
            f" as in {one.link}"
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
        yield from self._fields(content["schema"], call, "field", OF_REQUESTS)

    def _of_schema(self, schema: Json, call: Call) -> str:
        text = call.words.resolve(schema).get("description", "")
        return f" {text}" if text else ""

    def _fields(
        self, schema: Json, call: Call, name: str, marks: Mapping[bool, str]
    ) -> Iterator[str]:
        ref = schema.get("$ref", "")
        if earlier := self._objects.get(ref):
            yield from ("", f"Its fields are those in {earlier.link}.")
            return
        if ref:
            self._objects[ref] = call
        yield from _table(name, call.words.fields(schema).values(), marks)

    def _answers(self, call: Call) -> Iterator[str]:
        for status, response, _ in call.responses(errors=False):
            kinds = ", ".join(f"`{kind}`" for kind in response.get("content", {})) or "no body"
            text = f"Answers {status}, {kinds}. {_sentence(response['description'])}".strip()
            yield from ("", text)
            for content in response.get("content", {}).values():
                if "schema" in content:
                    yield from self._fields(content["schema"], call, "field", OF_ANSWERS)
        errors = [*call.responses(errors=True)]
        own = [one for one in errors if one[2] not in self._common]
        if own:
            yield from ("", "| status | code | meaning |", "|---|---|---|")
        for status, response, _ in own:
            yield _row(str(status), self._codes(response), response["description"])
        common = ", ".join(str(status) for status, _, ref in errors if ref in self._common)
        yield from ("", f"[Errors of many calls](#errors-of-many-calls): {common}.")


def _sentence(text: str) -> str:
    """Return a description, unless it is the phrase of a status."""
    return text if text.endswith(".") else ""


def _such_as(parameter: Json) -> str:
    return f"; such as `{parameter['example']}`" if "example" in parameter else ""


def _table(name: str, fields: Iterable[Field], marks: Mapping[bool, str]) -> Iterator[str]:
    rows = [
        _row(f"`{one.name}`{marks[one.is_required]}", one.values, one.meaning) for one in fields
    ]
    if rows:
        yield from ("", f"| {name} | values | meaning |", "|---|---|---|", *rows)


def _row(*cells: str) -> str:
    return "".join(f"| {cell.replace('|', chr(92) + '|')} " for cell in cells) + "|"


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
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
