"""Conditions over items: every `Table` agrees with `vumi.storage.table`."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chalicelib.storage.conditions import Combination, Comparison, Condition, Presence
from chalicelib.storage.items import Item, Key, Value
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Check, Delete, Put
from tests.conformance.conftest import succeeds
from vumi.storage.table import holds

KEY = Key("USER#a", "USER")
NUMBERS = st.integers(-2, 2) | st.just(10**20)
TEXTS = st.sampled_from(["", "a", "ab", "b", "B", "é", "\uffff", "\U0001f600"])
LISTS: st.SearchStrategy[Value] = st.lists(NUMBERS | TEXTS, max_size=1).map(list)
VALUES = st.one_of(NUMBERS, TEXTS, LISTS)
ATTRIBUTES: dict[str, st.SearchStrategy[Value]] = {
    "n": NUMBERS,
    "m": NUMBERS,
    "t": TEXTS,
    "l": LISTS,
}
ITEMS = st.none() | st.fixed_dictionaries(
    {"PK": st.just(KEY.pk), "SK": st.just(KEY.sk)}, optional=ATTRIBUTES
)
EQUALITIES = st.builds(Comparison, st.sampled_from([*ATTRIBUTES, "SK"]), st.just("="), VALUES)
ORDERS = st.sampled_from(["n", "m", "t"]).flatmap(
    lambda name: st.builds(
        Comparison, st.just(name), st.sampled_from(["<", "<=", ">", ">="]), ATTRIBUTES[name]
    )
)
"""Orders of one type: moto fails on an order of two types, and DynamoDB refuses one of lists."""
PRESENCES = st.builds(Presence, st.sampled_from([*ATTRIBUTES, "PK"]), st.booleans())
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    EQUALITIES | ORDERS | PRESENCES,
    lambda parts: st.builds(Combination, parts, st.sampled_from(["AND", "OR"]), parts),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(ITEMS, CONDITIONS)
def test_a_table_evaluates_a_condition_as_the_reference_does(
    table: Table, item: Item | None, condition: Condition
) -> None:
    table.write(Delete(KEY) if item is None else Put(item))
    assert succeeds(table, Check(KEY, condition)) is holds(condition, item)
