"""The reference of all calls: it has every route, and is what the code describes."""

from __future__ import annotations

import re

import pytest

from chalicelib.api import TABLE
from tests.http_reference import DOCS, HOME, PAGES, START, written
from vumi.server.common_commits import METRICS


def generated(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8").partition(START)[2]


@pytest.mark.parametrize("page", sorted({*PAGES.values()}))
def test_it_is_what_the_code_describes(page: str) -> None:
    """`python -m tests.http_reference` writes it."""
    assert written(page) == (DOCS / page).read_text(encoding="utf-8")


def test_its_table_lists_every_route() -> None:
    listed = re.findall(r"^- \[?`([A-Z]+) (/\S*)`", generated(HOME), re.MULTILINE)
    routes = [(route.method, route.path) for route in TABLE.routes]
    assert sorted(listed) == sorted([*routes, ("GET", METRICS)])


def test_each_call_has_an_example() -> None:
    text = "".join(map(generated, dict.fromkeys(PAGES.values())))
    sections = re.split(r"^### `", text, flags=re.MULTILINE)[1:]
    assert len(sections) == len(TABLE.routes)
    for section in sections:
        assert "```sh\ncurl " in section, section.partition("`")[0]
