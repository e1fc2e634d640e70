"""The log events and metrics of the code: `docs/log-events.md` has each of them."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import chalicelib
import vumi

ROOT = Path(chalicelib.__file__).parent.parent
PROGRAM = [ROOT / "app.py", *(Path(str(package.__file__)).parent for package in (chalicelib, vumi))]
ROW = re.compile(r"^\| `(\w+)` \|(?: ([A-Z, ]+) \| ([^|]*)\|)?", re.MULTILINE)


@cache
def all_calls() -> dict[str, list[ast.Call]]:
    """Return the calls of attributes in the program, by their text."""
    found: dict[str, list[ast.Call]] = {}
    for place in PROGRAM:
        for path in place.rglob("*.py") if place.is_dir() else [place]:
            for node in ast.walk(ast.parse(path.read_text())):
                match node:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)):
                        found.setdefault(f"{owner}.{name}", []).append(node)
    return found


def calls(function: str) -> list[ast.Call]:
    """Return the calls of a function of `telemetry` in the program."""
    return all_calls()[f"telemetry.{function}"]


def fields_of(call: ast.Call) -> set[str]:
    return {str(keyword.arg) for keyword in call.keywords}


def logged_events() -> dict[str, tuple[set[str], set[str]]]:
    """Return the levels and the fields of each event in the code."""
    events: dict[str, tuple[set[str], set[str]]] = {}
    for call in calls("event"):
        level, name = call.args
        levels, fields = events.setdefault(ast.literal_eval(name), (set(), set()))
        levels.add(ast.unparse(level).removeprefix("logging."))
        fields |= fields_of(call)
    return events


def documented() -> tuple[dict[str, tuple[set[str], set[str]]], list[str]]:
    """Return the events and the metrics in the document."""
    text = (ROOT / "docs" / "log-events.md").read_text()
    events, metrics = text.split("## Metrics")
    return {
        name: (set(levels.split(", ")), set(re.findall(r"`(\w+)`", fields)))
        for name, levels, fields in ROW.findall(events)
    }, [name for name, *_ in ROW.findall(metrics)]


def test_each_event_is_documented_with_its_levels_and_fields() -> None:
    events, _ = documented()
    assert events == logged_events()
    assert list(events) == sorted(events)


def test_each_metric_is_documented() -> None:
    _, metrics = documented()
    assert metrics == sorted(set().union(*map(fields_of, calls("count"))))


def test_names_of_events_are_snake_case() -> None:
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)+", name) for name in logged_events())
