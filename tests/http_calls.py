"""The calls of the description, and an example of each: a line for curl, and its answer."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from chalicelib.http.fields import Component
from tests.markdown_links import to_anchor

Json: TypeAlias = dict[str, Any]
HOME = "http.md"
"""The page with the list of all calls, their rules and their errors."""
PAGES = {
    "badge": "badges.md",
    "history": "badges.md",
    "page": "badges.md",
    "owner": "ownership.md",
    "bans": "public-instance.md",
    "event": "events.md",
    "wallet": "wallets.md",
    "service": HOME,
}
"""The page of each tag."""
HOST = "https://views.example.com"
LONGEST_LINE = 100
GIVEN = {
    "getHistory": {"days": "3"},
    "getHistorySvg": {"days": "90"},
    "echoAtTime": {"ts": "1767225600.5"},
}
"""The options of examples beside the required ones."""
CREDENTIALS = {"token": "TOKEN", "secret": "SECRET"}


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
        """Yield the status, the code and the meaning of each error."""
        for status, response in self._responses(range(400, 600)):
            [content] = response["content"].values()
            code = content["schema"]["properties"]["error"]["properties"]["code"]
            codes, meanings = code.get("enum") or [code["const"]], response["description"]
            yield from ((status, *one) for one in zip(codes, meanings.split("\n"), strict=True))

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


@dataclass(frozen=True)
class Example:
    """A request as a line for curl, and its answer."""

    call: Call
    curl: str
    status: int
    kind: str
    answer: Any

    def lines(self, *, has_status: bool) -> Iterator[str]:
        """Yield the request and the answer, which needs its status if the call has several."""
        is_plain = "?" not in self.curl and " -" not in self.curl
        if self.answer is None and is_plain:
            return
        yield from ("", "```sh", self.curl, "```")
        if self.answer is not None:
            yield from ("", f"Answers {self.status}:") if has_status else ()
            yield from ("", "```json", *_shown(self.answer), "```")


def _shown(answer: Json) -> Iterator[str]:
    """Yield JSON in one line, or else with a line for each member and each item of a long one."""
    if len(_text_of(answer)) <= LONGEST_LINE:
        yield _text_of(answer)
        return
    yield "{"
    for number, (name, value) in enumerate(answer.items(), start=1):
        comma = "," if number < len(answer) else ""
        if isinstance(value, list) and len(_text_of(value)) > LONGEST_LINE:
            yield f'  "{name}": ['
            yield ",\n".join(f"    {_text_of(one)}" for one in value)
            yield f"  ]{comma}"
        else:
            yield f'  "{name}": {_text_of(value)}{comma}'
    yield "}"


def _text_of(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


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
            yield Example(call, _curl(call, body), status, kind, answer)


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
