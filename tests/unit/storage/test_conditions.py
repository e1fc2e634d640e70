"""Conditions are values, made by the operators of attributes."""

from __future__ import annotations

import pytest

from chalicelib.storage.conditions import Combination, Comparison, Presence, attr, unchanged


def test_a_comparison_makes_a_condition() -> None:
    assert (attr("n") == 1) == Comparison("n", "=", 1)
    assert (attr("n") != 1) == Comparison("n", "<>", 1)
    assert (attr("n") < 1) == Comparison("n", "<", 1)
    assert (attr("n") <= 1) == Comparison("n", "<=", 1)
    assert (attr("n") > 1) == Comparison("n", ">", 1)
    assert (attr("n") >= 1) == Comparison("n", ">=", 1)


def test_two_conditions_make_one() -> None:
    left, right = attr("n").exists(), attr("n").missing()
    assert left & right == Combination(Presence("n", exists=True), "AND", right)
    assert left | right == Combination(left, "OR", Presence("n", exists=False))


def test_conditions_differ_by_their_parts() -> None:
    assert (attr("n") == 1) != (attr("m") == 1)
    assert (attr("n") == 1) != (attr("n") == 2)
    assert attr("n").exists() != attr("n").missing()


@pytest.mark.parametrize(
    "condition",
    [attr("n") == 1, attr("n").exists(), attr("n").exists() & attr("m").exists()],
)
def test_a_condition_is_not_combined_by_the_words_and_and_or(condition: object) -> None:
    """Python's `and` would drop one of the two."""
    with pytest.raises(TypeError, match="combine conditions by"):
        bool(condition)


@pytest.mark.parametrize("value", [1, -1, "x", ["x"], {"x": 1}])
def test_an_attribute_with_a_value_is_unchanged_if_it_has_it(value: int | str) -> None:
    assert unchanged("n", value) == (attr("n") == value)


@pytest.mark.parametrize("empty", [0, "", [], {}])
def test_an_attribute_that_was_read_as_empty_is_unchanged_if_it_is_missing(
    empty: int | str,
) -> None:
    assert unchanged("n", empty) == attr("n").missing()
