"""The reference of all calls: `python -m tests.http_reference` writes it into the documents.

Everything from the heading `## Calls` of a page on is made from the declarations of the routes.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from chalicelib import description
from chalicelib.api import TABLE
from chalicelib.http.fields import Component
from tests.markdown_links import to_anchor
from vumi.server.common_commits import METRICS

Json: TypeAlias = dict[str, Any]
DOCS = Path(__file__).parents[1] / "docs"
HOME = "http.md"
"""The page with the list of all calls, their rules and their errors."""
PAGES = {
    "badge": "badges.md",
    "history": "badges.md",
    "page": "badges.md",
    "owner": "ownership.md",
    "bans": "bans.md",
    "event": "events.md",
    "wallet": "wallets.md",
    "service": HOME,
}
"""The page of each tag."""
START = "## Calls\n"
HOST = "https://views.example.com"
LONGEST_LINE = 100
LONGEST_PATTERN = 40
"""Longer patterns, and those of code points, are only in the OpenAPI description."""
SENTENCE = re.compile(r"(?<=[.]) (?=[A-Z])")
REQUEST, RESPONSE = (" (required)", ""), ("", " (optional)")
"""The marks of fields that are required, and of others."""
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
FORMATS = {
    "date": "day (`2026-11-21`)",
    "date-time": "time (`2026-11-21T10:00:00.000Z`)",
    "uri": "URL",
}


def resolve(part: Json) -> Json:
    """Return a part with the content of its component in place of the reference."""
    if isinstance(part, Component):
        return resolve(part.content) | {name: part[name] for name in part.keys() - {"$ref"}}
    return part


@dataclass(frozen=True, eq=False)
class Call:
    """A method of a path."""

    method: str
    path: str
    operation: Json
    path_parameters: tuple[Json, ...]

    @property
    def name(self) -> str:
        return str(self.operation["operationId"])

    @property
    def title(self) -> str:
        return f"`{self.method} {self.path}`"

    def link_from(self, page: str) -> str:
        own = PAGES[self.operation["tags"][0]]
        return f"[{self.title}]({'' if page == own else own}#{to_anchor(self.title)})"

    @cached_property
    def parameters(self) -> list[Json]:
        references = (*self.path_parameters, *self.operation.get("parameters", ()))
        return [resolve(one) for one in references]

    @property
    def credentials(self) -> list[str]:
        return [CREDENTIALS[name] for one in self.operation.get("security", ()) for name in one]

    @property
    def body(self) -> tuple[str, Json]:
        """Return the type and the content of the body."""
        contents = self.operation.get("requestBody", {}).get("content", {})
        return next(iter(contents.items()), ("", {}))

    @property
    def successes(self) -> Iterator[tuple[int, Json, str, Json]]:
        """Yield the status, the response, the type and its content."""
        for status, response in self._responses(range(200, 400)):
            kind, content = next(iter(response.get("content", {}).items()), ("", {}))
            yield status, response, kind, content

    @property
    def errors(self) -> Iterator[tuple[int, str, str]]:
        """Yield the status, the code, and the meaning: a sentence if there are several codes."""
        for status, response in self._responses(range(400, 600)):
            [content] = response["content"].values()
            code = content["schema"]["properties"]["error"]["properties"]["code"]
            codes, text = code.get("enum") or [code["const"]], response["description"]
            sentences = SENTENCE.split(text)
            if len(sentences) != len(codes):
                sentences = [text] * len(codes)
            yield from ((status, *one) for one in zip(codes, sentences, strict=True))

    def _responses(self, statuses: range) -> Iterator[tuple[int, Json]]:
        for status, response in self.operation["responses"].items():
            if int(status) in statuses:
                yield int(status), resolve(response)


def calls(document: Json) -> list[Call]:
    """Return all calls, in the order of the description."""
    return [
        Call(method.upper(), path, operation, tuple(item.get("parameters", ())))
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
    """The generated part of a page. What an earlier call has is a link to that call."""

    def __init__(self, document: Json, page: str) -> None:
        self._document = document
        self._page = page
        self._calls = calls(document)
        self._earlier: dict[object, Call | None] = {}

    def lines(self) -> Iterator[str]:
        if self._page == HOME:
            yield from self._overview()
        for tag in self._document["tags"]:
            lines = [*self._tag(tag)]
            if PAGES[tag["name"]] == self._page:
                yield from ("", "## Service") if self._page == HOME else ()
                yield from lines

    def _tag(self, tag: Json) -> Iterator[str]:
        yield from ("", tag["description"])
        for call in self._calls:
            if tag["name"] in call.operation["tags"]:
                yield from self._call(call)

    def _overview(self) -> Iterator[str]:
        meanings: dict[tuple[int, str], dict[str, None]] = {}
        for call in self._calls:
            who = "".join(f" (`{name}`)" for name in call.credentials)
            yield f"- {call.link_from(self._page)}{who}: {call.operation['summary']}"
            for status, code, meaning in call.errors:
                meanings.setdefault((status, code), {})[meaning] = None
        yield from ELSEWHERE
        yield from ("", "## Rules of all calls", "", self._document["info"]["description"])
        yield from ("", "## Errors", "")
        for (status, code), texts in sorted(meanings.items()):
            yield f"- {status} `{code}`: {' '.join(texts)}"

    def _find_earlier(self, key: object, call: Call) -> str:
        """Return the link to the call that had this before, or an empty text for the first one."""
        earlier = self._earlier.setdefault(key, None)
        self._earlier[key] = earlier or call
        return earlier.link_from(self._page) if earlier else ""

    def _call(self, call: Call) -> Iterator[str]:
        operation = call.operation
        yield from ("", f"### {call.title}", "", f"{operation['summary']}.")
        if operation.get("deprecated"):
            yield from ("", "Deprecated.")
        same = (call.method, operation["summary"], json.dumps(call.body))
        if link := self._find_earlier(same, call):
            yield from ("", f"All else is as in {link}.")
            yield from self._parameters(call)
        else:
            words = operation.get("description", "").replace(description.HEAD_TOO, "").strip()
            yield from ("", words) if words else ()
            for name in call.credentials:
                yield from ("", f"Authentication: `Authorization: Bearer {name}`.")
            yield from self._parameters(call)
            yield from self._contents(call)
        for example in examples(call):
            yield from example.lines()

    def _parameters(self, call: Call) -> Iterator[str]:
        rows, known = list[str](), dict[str, list[str]]()
        for one in call.parameters:
            if link := self._find_earlier((one["name"], json.dumps(one)), call):
                known.setdefault(link, []).append(f"`{one['name']}`")
            else:
                example = one.get("example", ())
                listed = example if isinstance(example, list) else [example]
                such = f"; such as `{'`, `'.join(map(str, listed))}`" if "example" in one else ""
                mark = REQUEST[not one.get("required")]
                text = f"{values(one['schema'])}{such}. {one['description']}"
                rows.append(f"- `{one['name']}`{mark}: {text}")
        if rows:
            yield from ("", "Parameters:", "", *rows)
        if known:
            parts = [f"{', '.join(names)} as in {link}" for link, names in known.items()]
            yield from ("", f"Parameters: {'; '.join(parts)}.")

    def _contents(self, call: Call) -> Iterator[str]:
        kind, content = call.body
        if kind:
            words = resolve(content["schema"]).get("description", "")
            yield from ("", f"The body is `{kind}`. {words}".strip())
            yield from self._fields(content["schema"], call, REQUEST)
        for status, response, kind, content in call.successes:
            words = response["description"] if response["description"].endswith(".") else ""
            shown = f"`{kind}`" if kind else "no body"
            yield from ("", f"Answers {status}, {shown}. {words}".strip())
            if "schema" in content:
                yield from self._fields(content["schema"], call, RESPONSE)
        if codes := [f"`{code}`" for _, code, _ in call.errors if code not in OF_ALL]:
            yield from ("", f"[Errors]({HOME}#errors): {', '.join(codes)}.")

    def _fields(self, schema: Json, call: Call, marks: tuple[str, str]) -> Iterator[str]:
        if "$ref" in schema and (link := self._find_earlier(schema["$ref"], call)):
            yield from ("", f"Its fields are those in {link}.")
        elif rows := fields(schema, marks):
            yield from ("", *rows.values())


# ---- schemas


def fields(schema: Json, marks: tuple[str, str], prefix: str = "") -> dict[str, str]:
    """Return a line for each field of an object, and of the objects inside, by their paths."""
    schema, found = resolve(schema), dict[str, str]()
    for name, part in schema.get("properties", {}).items():
        inner, path = resolve(part), f"{prefix}{name}"
        mark, words = marks[name not in schema.get("required", ())], inner.get("description", "")
        found[path] = f"- `{path}`{mark}: {values(part)}. {words}".strip()
        found |= fields(part, marks, f"{path}.")
        found |= fields(inner.get("items", {}), marks, f"{path}[].")
    for choice in schema.get("oneOf", ()):
        found = fields(choice, marks, prefix) | found
    return found


def values(schema: Json) -> str:
    """Return the values that a schema allows."""
    schema = resolve(schema)
    default = schema.get("default", "")
    return _values(schema) + (f"; `{_literal(default)}` if none is given" if default != "" else "")


def _values(schema: Json) -> str:
    choices = schema.get("oneOf") or schema.get("anyOf")
    if "const" in schema:
        return f"`{_literal(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{_literal(value)}`" for value in schema["enum"])
    if choices and "properties" not in schema:
        return " or ".join(dict.fromkeys(map(values, choices)))
    kinds = schema.get("type", "any JSON")
    return " or ".join(_kind(kind, schema) for kind in ([kinds] if type(kinds) is str else kinds))


def _literal(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _kind(kind: str, schema: Json) -> str:
    match kind:
        case "null":
            return "`null`"
        case "boolean":
            return "`true`, `false`"
        case "integer" | "number":
            return _number("whole number" if kind == "integer" else "number", schema)
        case "string":
            return ", ".join(_text(schema))
        case "array":
            return f"list of at most {schema['maxItems']}"
    return kind


def _number(name: str, schema: Json) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if most is not None:
        return f"{name}, {least:,} to {most:,}"
    return f"{name}, {least:,} or more" if least is not None else name


def _text(schema: Json) -> Iterator[str]:
    yield FORMATS.get(schema.get("format", ""), "text")
    least, most = schema.get("minLength"), schema.get("maxLength")
    if most:
        few = f"{least} to {most:,}" if least else f"at most {most:,}"
        yield f"{most if least == most else few} characters"
    pattern = schema.get("pattern", "")
    if 0 < len(pattern) <= LONGEST_PATTERN and "\\u" not in pattern and "format" not in schema:
        yield f"`{pattern}`"


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
    _, content = call.body
    for number, (name, body) in enumerate((named(content) or {"": None}).items()):
        answers = [(status, kind, named(content)) for status, _, kind, content in call.successes]
        own = [(status, kind, found[name]) for status, kind, found in answers if name in found]
        if number == 0 or own:
            last, kind, found = answers[-1]
            status, kind, answer = (
                own[0] if own else (last, kind, found.get("", found.get("shown")))
            )
            yield Example(_curl(call, body), status, kind, answer)


def named(content: Json) -> Json:
    """Return the examples of a content by their names; a single one has none."""
    single = {"": content["example"]} if "example" in content else {}
    return single | {name: one["value"] for name, one in content.get("examples", {}).items()}


def _curl(call: Call, body: Json | str | None) -> str:
    usual = "GET" if body is None else "POST"
    words = ["curl"] + (["-X", call.method] if call.method != usual else [])
    for name in call.credentials:
        words += ["-H", f"Authorization: Bearer {name}"]
    if call.body[0] not in {"", "application/json"}:
        words += ["-H", f"Content-Type: {call.body[0]}"]
    if body is not None:
        words += ["-d", body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)]
    return shlex.join([*words, _url(call)])


def _url(call: Call) -> str:
    path, query = call.path, dict[str, str | list[str]]()
    for one in call.parameters:
        if one["in"] == "path":
            path = path.replace(f"{{{one['name']}}}", quote(one["example"], safe=""))
        elif one.get("required"):
            query[one["name"]] = one["example"]
    query |= GIVEN.get(call.name, {})
    return f"{HOST}{path}" + (
        f"?{urlencode(query, doseq=True, quote_via=quote, safe='')}" if query else ""
    )


if __name__ == "__main__":
    for page in dict.fromkeys(PAGES.values()):
        (DOCS / page).write_text(written(page), encoding="utf-8")
