"""Conditions are values, made by the operators of attributes."""

from __future__ import annotations

import pytest

from chalicelib.storage.conditions import Combination, Comparison, Presence, attr, unchanged


def test_a_comparison_makes_a_condition() -> None:
    assert (attr("n") == 1) == Comparison("n", "=", 1)
    assert (attr("n") < 1) == Comparison("n", "<", 1)
    assert (attr("n") <= 1) == Comparison("n", "<=", 1)
    assert (attr("n") > 1) == Comparison("n", ">", 1)
    assert (attr("n") >= 1) == Comparison("n", ">=", 1)


def test_two_conditions_make_one() -> None:
    left, right = attr("n").exists(), attr("n").missing()
    assert left & right == Combination(Presence("n", exists=True), "AND", right)
    assert left | right == Combination(left, "OR", Presence("n", exists=False))


@pytest.mark.parametrize(
    "condition",
    [attr("n") == 1, attr("n").exists(), attr("n").exists() & attr("m").exists()],
)
def test_a_condition_is_not_combined_by_the_words_and_and_or(condition: object) -> None:
    """Python's `and` would drop one of the two."""
    with pytest.raises(TypeError, match="combine conditions by"):
        bool(condition)


@pytest.mark.parametrize("value", [1, -1, "x", ["x"], {"x": 1}, 0, "", [], {}])
def test_an_attribute_is_unchanged_if_it_has_its_value_or_is_missing_if_it_was_empty(
    value: int | str,
) -> None:
    assert unchanged("n", value) == (attr("n") == value if value else attr("n").missing())
