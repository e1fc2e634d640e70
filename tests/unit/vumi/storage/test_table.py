"""The table on SQLite, and its conditions; `tests/conformance` covers the port."""

from __future__ import annotations

import pytest

from chalicelib.counting import keys
from chalicelib.storage.conditions import Condition, attr
from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.items import Item, Key
from chalicelib.storage.writes import Delete, Put, Update, Write
from chalicelib.ulids import new_ulid
from vumi.storage.database import Database
from vumi.storage.table import SqliteTable, holds

NOW = 1_000_000


def left(table: SqliteTable) -> list[str]:
    return [str(item["SK"]) for item in table.query("p", limit=1000)]


@pytest.mark.parametrize("length", [20, 400])
def test_a_view_takes_few_bytes_however_long_its_id_is(
    database: Database, table: SqliteTable, length: int
) -> None:
    """One address can take millions of views in an hour."""
    views = [keys.view("x" * length, new_ulid(place)) for place in range(2_000)]
    [(before,)] = database.read("PRAGMA page_count")
    table.put_all([{"PK": pk, "SK": sk, "ttl": NOW} for pk, sk in views])
    [(after,)] = database.read("PRAGMA page_count")
    assert (after - before) * 4_096 / len(views) < 90


def test_a_value_that_is_not_a_text_is_not_in_the_index(table: SqliteTable) -> None:
    """A text column would convert a number to text."""
    table.put_all(
        [
            {"PK": "p", "SK": "number", "batch": 5, "due": 1},
            {"PK": "p", "SK": "list", "batch": ["5"], "due": 1},
        ]
    )

    assert left(table) == ["list", "number"]
    assert table.query_due("5", limit=9) == []


@pytest.mark.parametrize(
    "condition",
    [
        attr("five") < "6",
        attr("digits") <= 5,
        attr("five") >= "5",
        attr("list") < [9],
        attr("map") >= {},
    ],
)
def test_values_of_two_types_lists_and_maps_are_in_no_order(condition: Condition) -> None:
    """Engines differ here; `tests/conformance` has what all of them share."""
    item: Item = {"PK": "p", "SK": "s", "five": 5, "digits": "5", "list": [1], "map": {"a": 1}}
    assert not holds(condition, item)


KEPT = Key("p", "kept")
FAILING: dict[str, Write] = {
    "a sum with a text": Update(KEPT, add={"note": 1}),
    "a removal that SQLite refuses": Delete(KEPT),
}


@pytest.mark.parametrize("failing", FAILING.values(), ids=FAILING.keys())
def test_writes_of_which_a_later_one_fails_leave_only_the_others_of_a_common_commit(
    database: Database, table: SqliteTable, failing: Write
) -> None:
    table.put_all([{"PK": "p", "SK": "kept", "note": "a text"}])
    trigger = "CREATE TRIGGER t BEFORE DELETE ON items BEGIN SELECT RAISE(ABORT, 'fails'); END"
    database.write(lambda connection: connection.execute(trigger))

    def function() -> None:
        table.write(Put({"PK": "p", "SK": "before"}))
        with pytest.raises((TypeError, StorageRefusedError)):
            table.write(Put({"PK": "p", "SK": "new"}), failing)

        table.write(Put({"PK": "p", "SK": "then"}))

    database.in_one_commit(function)
    assert left(table) == ["before", "kept", "then"]
