"""Time to live on SQLite, its change log and conditions; `tests/conformance` covers the port."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from chalicelib.counting import keys
from chalicelib.storage.conditions import Condition, attr
from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.items import Item, Key
from chalicelib.storage.writes import Delete, Put, Update, Write
from chalicelib.ulids import new_ulid
from vumi.storage.conditions import holds
from vumi.storage.database import Database
from vumi.storage.removals import Change, ChangeLog, remove_expired
from vumi.storage.table import SqliteTable

NOW = 1_000_000


def put(table: SqliteTable, sk: str, ttl: int | None = None, pk: str = "p") -> Key:
    item: Item = {"PK": pk, "SK": sk, "note": f"of {sk}"}
    table.put_all([item if ttl is None else item | {"ttl": ttl}])
    return Key(pk, sk)


def expire(
    database: Database,
    now: float = NOW,
    *,
    held: Collection[Key] = (),
    unconsumed: Collection[Key] = (),
    limit: int = 100,
) -> int:
    """Remove expired items except held ones; items without a consumer leave no change."""
    return database.write(
        lambda connection: remove_expired(
            connection, now, limit, lambda key: key not in held, lambda key: key not in unconsumed
        )
    )


def left(table: SqliteTable) -> list[str]:
    return [str(item["SK"]) for item in table.query("p", limit=1000)]


def removed(changes: list[Change]) -> list[str]:
    return [str(change.item["SK"]) for change in changes]


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


def test_only_expired_items_are_removed(database: Database, table: SqliteTable) -> None:
    put(table, "over", NOW - 1)
    put(table, "due", NOW)
    put(table, "to come", NOW + 1)
    put(table, "for ever")

    assert expire(database) == 1
    assert left(table) == ["due", "for ever", "to come"]

    assert expire(database, NOW + 0.5) == 1
    assert left(table) == ["for ever", "to come"]


def test_the_latest_time_to_live_counts(database: Database, table: SqliteTable) -> None:
    put(table, "put again", NOW - 1)
    put(table, "put again", NOW + 1)
    table.write(
        Put({"PK": "p", "SK": "shortened", "ttl": NOW + 1}),
        Put({"PK": "p", "SK": "without", "ttl": NOW - 1}),
    )
    table.write(
        Update(Key("p", "shortened"), values={"ttl": NOW - 1}),
        Update(Key("p", "without"), remove=("ttl",)),
    )

    assert expire(database) == 1
    assert left(table) == ["put again", "without"]


def test_a_time_to_live_beyond_every_integer_of_sqlite_never_ends(
    database: Database, table: SqliteTable
) -> None:
    items: list[Item] = [{"PK": "p", "SK": str(ttl), "ttl": ttl} for ttl in (2**63 - 1, 2**63)]
    table.put_all(items)

    assert expire(database) == 0
    assert table.query("p", limit=9) == items


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
def test_writes_of_which_a_later_one_fails_leave_nothing_in_a_common_commit(
    database: Database, table: SqliteTable, failing: Write
) -> None:
    put(table, "kept")
    trigger = "CREATE TRIGGER t BEFORE DELETE ON items BEGIN SELECT RAISE(ABORT, 'fails'); END"
    database.write(lambda connection: connection.execute(trigger))

    def function() -> None:
        with pytest.raises((TypeError, StorageRefusedError)):
            table.write(Put({"PK": "p", "SK": "new"}), failing)

    database.in_one_commit(function)

    assert left(table) == ["kept"]


def test_a_change_has_the_whole_item_and_the_time_of_its_removal(
    database: Database, table: SqliteTable
) -> None:
    item: Item = {"PK": "p", "SK": "s", "ttl": NOW - 1, "n": 5, "map": {"l": [1, "ü"]}}
    table.put_all([item])

    expire(database, NOW + 0.25)

    [change] = ChangeLog(database, "reader").read(10)
    assert change.item == item
    assert change.removed_at == NOW + 0.25


def test_the_oldest_are_removed_first_and_the_changes_are_in_that_order(
    database: Database, table: SqliteTable
) -> None:
    put(table, "b", NOW - 1)
    put(table, "c", NOW - 3)
    put(table, "a", NOW - 1)
    put(table, "d", NOW - 2, pk="q")

    assert expire(database) == 4

    changes = ChangeLog(database, "reader").read(10)
    assert removed(changes) == ["c", "d", "a", "b"]  # expired for 3, 2, 1 and 1 seconds
    sequences = [change.sequence for change in changes]
    assert sequences == sorted(set(sequences))


def test_no_more_items_are_removed_than_the_limit(database: Database, table: SqliteTable) -> None:
    for place in range(5):
        put(table, str(place), NOW - 10 + place)

    assert expire(database, limit=2) == 2
    assert left(table) == ["2", "3", "4"]
    assert expire(database, limit=2) == 2
    assert expire(database, limit=2) == 1
    assert removed(ChangeLog(database, "reader").read(10)) == ["0", "1", "2", "3", "4"]


def test_held_items_stay_and_leave_no_change(database: Database, table: SqliteTable) -> None:
    held = {put(table, "held", NOW - 9)}
    put(table, "free", NOW - 1)

    assert expire(database, held=held) == 1

    assert left(table) == ["held"]
    assert removed(ChangeLog(database, "reader").read(10)) == ["free"]
    assert expire(database) == 1
    assert left(table) == []


def test_an_item_without_a_consumer_is_removed_and_leaves_no_change(
    database: Database, table: SqliteTable
) -> None:
    unconsumed = {put(table, "a", NOW - 2)}
    put(table, "b", NOW - 1)

    assert expire(database, unconsumed=unconsumed) == 2

    assert left(table) == []
    assert removed(ChangeLog(database, "reader").read(10)) == ["b"]


def test_a_consumer_reads_the_same_until_its_checkpoint_moves(
    database: Database, table: SqliteTable
) -> None:
    log = ChangeLog(database, "reader")
    for place in range(3):
        put(table, str(place), NOW - 10 + place)
    expire(database)

    first = log.read(2)
    assert removed(first) == ["0", "1"]
    assert log.read(2) == first
    log.checkpoint(first[0].sequence)
    assert removed(log.read(2)) == ["1", "2"]
    log.checkpoint(log.read(2)[-1].sequence)
    assert log.read(2) == []


def test_changes_are_deleted_only_after_every_consumer(
    database: Database, table: SqliteTable
) -> None:
    slow, fast = ChangeLog(database, "slow"), ChangeLog(database, "fast")
    for place in range(3):
        put(table, str(place), NOW - 10 + place)
    expire(database)
    sequences = [change.sequence for change in slow.read(10)]

    def kept() -> list[int]:
        rows = database.read("SELECT sequence FROM changes ORDER BY sequence")
        return [sequence for (sequence,) in rows]

    fast.checkpoint(sequences[2])
    assert kept() == sequences
    slow.checkpoint(sequences[1])
    assert kept() == sequences[2:]
    slow.checkpoint(sequences[2])
    assert kept() == []


def test_a_sequence_is_never_used_again_after_deletion_and_reopening(path: Path) -> None:
    """A consumer continues after its checkpoint, so it would skip a reused number."""
    database = Database(path)
    put(SqliteTable(database), "first", NOW - 1)
    log = ChangeLog(database, "reader")
    expire(database)
    [first] = log.read(10)
    log.checkpoint(first.sequence)
    assert database.read("SELECT count(*) FROM changes") == [(0,)]
    database.close()

    database = Database(path)
    put(SqliteTable(database), "second", NOW - 1)
    expire(database)
    [second] = ChangeLog(database, "reader").read(10)
    database.close()

    assert second.sequence > first.sequence
    assert removed([second]) == ["second"]
