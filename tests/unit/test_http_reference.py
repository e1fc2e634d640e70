"""The reference of all calls: it has every route, and is what the code describes."""

from __future__ import annotations

import re

from chalicelib.api import TABLE
from tests.http_reference import PAGE, START, written
from vumi.server.common_commits import METRICS

TEXT = PAGE.read_text(encoding="utf-8")


def test_it_is_what_the_code_describes() -> None:
    """`python -m tests.http_reference` writes it."""
    assert written(TEXT) == TEXT


def test_its_table_lists_every_route() -> None:
    table = TEXT.partition(START)[2].partition("\n## ")[0]
    listed = re.findall(r"^\| \[?`([A-Z]+) (/\S*)`", table, re.MULTILINE)
    routes = [(route.method, route.path) for route in TABLE.routes]
    assert sorted(listed) == sorted([*routes, ("GET", METRICS)])


def test_each_call_has_an_example() -> None:
    sections = re.split(r"^### `", TEXT, flags=re.MULTILINE)[1:]
    assert len(sections) == len(TABLE.routes)
    for section in sections:
        assert "```sh\ncurl " in section, section.partition("`")[0]
