"""The reference of all calls: `python -m tests.http_reference` writes it into the documents.

Everything from the heading `## Calls` of a page on is made from the declarations of the routes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from chalicelib import description
from chalicelib.api import TABLE
from tests.http_calls import HOME, PAGES, Call, Json, calls, examples, resolve
from vumi.server.common_commits import METRICS

DOCS = Path(__file__).parents[1] / "docs"
START = "## Calls\n"
LONGEST_REPEATED = 60
LONGEST_PATTERN = 40
"""Longer patterns, and those of code points, are only in the OpenAPI description."""
REQUEST, RESPONSE = (" (required)", ""), ("", " (optional)")
"""The marks of fields that are required, and of others."""
JSON = "application/json"
MOVED_HERE = "[Badges that moved here](moving-here.md#a-change-of-the-host-name-alone)"
ELSEWHERE = (
    f"- `GET {METRICS}`, on one machine alone: [Metrics for Prometheus](monitoring.md)",
    f"- the URLs of other counters, if `DROP_IN` names them: {MOVED_HERE}",
)
OF_ALL = {"bad_request", "too_large", "too_many_requests", "internal", "unavailable"}
OF_AUTHENTICATION = {"unauthorized", "forbidden", "wrong_secret", "cross_site"}
"""Errors that follow from the method and the authentication, as the others from every request."""
BOUNDS = {"minimum", "maximum", "minLength", "maxLength", "pattern"}
"""The rules that a response keeps by itself."""
FORMATS = {"date": "day", "date-time": "time", "uri": "URL"}


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
        self._links = {
            content["schema"]["$ref"]: call.link_from(page)
            for call in reversed(self._calls)
            for *_, content in call.successes
            if "$ref" in content.get("schema", ())
        }

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
        alike: dict[str, list[str]] = {}
        for call in self._calls:
            who = "".join(f" (`{name}`)" for name in call.credentials)
            alike.setdefault(f"{who}: {call.operation['summary']}", []).append(
                call.link_from(self._page)
            )
            for status, code, meaning in call.errors:
                meanings.setdefault((status, code), {})[meaning] = None
        yield from (f"- {', '.join(links)}{words}" for words, links in alike.items())
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
        deprecated = " Deprecated." * bool(operation.get("deprecated"))
        yield from ("", f"### {call.title}", "", f"{operation['summary']}.{deprecated}")
        same = (call.method, operation["summary"], json.dumps(call.body))
        link = self._find_earlier(same, call)
        if link:
            yield from ("", f"All else is as in {link}.")
            yield from self._parameters(call, names_known=False)
            yield from self._contents(call, other_than=JSON)
        else:
            words = operation.get("description", "").replace(description.HEAD_TOO, "").strip()
            yield from ("", words) if words else ()
            yield from self._parameters(call)
            yield from self._body(call)
            yield from self._contents(call)
            yield from self._errors(call)
            for example in examples(call):
                yield from example.lines(has_status=len([*call.successes]) > 1)

    def _parameters(self, call: Call, *, names_known: bool = True) -> Iterator[str]:
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
        if known and names_known:
            parts = [f"{', '.join(names)} as in {link}" for link, names in known.items()]
            yield from ("", f"Parameters: {'; '.join(parts)}.")

    def _body(self, call: Call) -> Iterator[str]:
        kind, content = call.body
        if kind:
            words = resolve(content["schema"]).get("description", f"`{kind}`.")
            yield from ("", f"Body: {words}")
            yield from self._fields(content["schema"], call, REQUEST)

    def _contents(self, call: Call, other_than: str | None = None) -> Iterator[str]:
        for status, response, kind, content in call.successes:
            if kind == other_than:
                continue
            words = response["description"] if response["description"].endswith(".") else ""
            shown = "" if kind == JSON else f", `{kind}`" if kind else ", no body"
            yield from ("", f"Answers {status}{shown}. {words}".strip())
            if "schema" in content:
                yield from self._fields(content["schema"], call, RESPONSE)

    def _errors(self, call: Call) -> Iterator[str]:
        if codes := [
            f"`{code}`" for _, code, _ in call.errors if code not in OF_ALL | OF_AUTHENTICATION
        ]:
            yield from ("", f"[Errors]({HOME}#errors): {', '.join(codes)}.")

    def _fields(self, schema: Json, call: Call, marks: tuple[str, str]) -> Iterator[str]:
        told = dict[str, str]()
        choices = [schema] if "$ref" in schema else schema.get("oneOf", [schema])
        for number, choice in enumerate(choices):
            yield from ("", "Or:") if number else ()
            if "$ref" in choice and (link := self._find_earlier(choice["$ref"], call)):
                yield from ("", f"Its fields are those in {link}.")
            elif rows := fields(choice, marks, self._links):
                yield from ("", *_told_once(rows, told))


def _told_once(rows: dict[str, str], told: dict[str, str]) -> Iterator[str]:
    """Yield the line of each field; one with the long words of another refers to that."""
    for path, text in rows.items():
        earlier = told.setdefault(text, path) if len(text) > LONGEST_REPEATED else path
        yield f"- `{path}`{text}" if earlier == path else f"- `{path}`: as `{earlier}`."


# ---- schemas


def fields(
    schema: Json, marks: tuple[str, str], links: Mapping[str, str], prefix: str = ""
) -> dict[str, str]:
    """Return the words for each field of an object, and of the objects inside, by their paths.

    `links` has the calls whose response an item of a list is, by the reference of its schema.
    """
    schema, found = resolve(schema), dict[str, str]()
    for name, part in schema.get("properties", {}).items():
        inner, path = resolve(part), f"{prefix}{name}"
        mark, words = marks[name not in schema.get("required", ())], inner.get("description", "")
        shown = values(part if marks is REQUEST else _unbounded(part))
        found[path] = f"{mark}: {shown}. {words}".rstrip()
        found |= fields(part, marks, links, f"{path}.")
        items = inner.get("items", {})
        if link := links.get(items.get("$ref", "")):
            found[path] += f" Each has the fields of {link}."
        else:
            found |= fields(items, marks, links, f"{path}[].")
    for choice in schema.get("oneOf", ()):
        found = fields(choice, marks, links, prefix) | found
    return found


def _unbounded(schema: Json) -> Json:
    return {
        name: [_unbounded(one) for one in part] if name in {"oneOf", "anyOf"} else part
        for name, part in resolve(schema).items()
        if name not in BOUNDS
    }


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


if __name__ == "__main__":
    for page in dict.fromkeys(PAGES.values()):
        (DOCS / page).write_text(written(page), encoding="utf-8")
