"""Fuzz cases: made from a seed, of every kind, and never a view of a checked badge."""

from __future__ import annotations

from collections import Counter
from urllib.parse import parse_qs, quote

import pytest

from chalicelib.api import TABLE
from chalicelib.badges import options
from chalicelib.counting import ids
from chalicelib.history import periods
from chalicelib.http.errors import BadRequestError
from chalicelib.http.guards import check_options
from chalicelib.http.messages import Request
from chaos.fuzz.bad_input import CLOSED, HUNG, is_right
from chaos.fuzz.fuzz_cases import FAMILIES, Case, cases

CHECKED = ["chaos/hot", "chaos/ü 1"]
NUMBER = 2_600


def test_one_seed_makes_the_same_cases_and_another_others() -> None:
    first, again, other = (list(cases(seed, 260, CHECKED)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_every_family_has_its_share_and_few_repeats() -> None:
    made = list(cases(1, NUMBER, CHECKED))
    families = Counter(case.family for case in made)
    assert set(families.values()) == {NUMBER // len(FAMILIES)}
    assert len({case.raw for case in made}) > NUMBER / 2


def counts(case: Case) -> bool:
    """Return whether a case is a request that counts a view of a checked badge."""
    line = case.raw.partition(b"\r\n")[0]
    method, _, rest = line.partition(b" ")
    path, _, query = rest.removesuffix(b" HTTP/1.1").partition(b"?")
    match = TABLE.find(path.decode("latin-1"))
    route = match and match.routes.get(method.decode("latin-1"))
    if not route or b"\r\n\r\n" not in case.raw or b"history" in path or method == b"HEAD":
        return False
    given = parse_qs(query.decode("latin-1"), keep_blank_values=True)
    try:
        check_options(route, Request(route.method, route.path, query=given))
        options.parse(given)
        periods.parse(given)
        return ids.parse(given.get("id", ())) in CHECKED
    except BadRequestError:
        return False


def test_no_case_is_a_view_of_a_badge_under_check() -> None:
    assert not any(counts(case) for case in cases(1, NUMBER, CHECKED))
    view = f"GET /api/v1/views?id={quote(CHECKED[1])} HTTP/1.1\r\n\r\n".encode()
    assert counts(Case("a view", view))


@pytest.mark.parametrize(
    ("answer", "right"),
    [("200", True), ("404", True), (CLOSED, True), ("500", False), ("501", False), (HUNG, False)],
)
def test_an_answer_below_500_or_a_closed_connection_is_right(answer: str, *, right: bool) -> None:
    assert is_right(Case("any", b""), answer) == right


def test_an_unknown_transfer_coding_may_be_refused_as_not_implemented() -> None:
    assert all(is_right(c, "501") == (c.family == "transfer") for c in cases(1, 260, CHECKED))
