"""The behaviour that every `ports.Table` shares."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from chalicelib.storage.conditions import Condition, attr
from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.items import MAX_LEVELS, Item, Key, Value, key_of
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Check, ConditionFailedError, Delete, Put, Update
from tests.conformance.conftest import Clients, succeeds

KEY = Key("USER#a", "USER")


def item(sk: str, pk: str = "USER#a", **attributes: Value) -> Item:
    return Key(pk, sk).item(**attributes)


def sort_keys(items: list[Item]) -> list[Value]:
    return [found["SK"] for found in items]


# get


def test_an_item_is_returned_as_it_was_put(table: Table) -> None:
    stored = item(
        "USER", text="x", empty="", number=-(10**30), list=["a", 1, []], map={"a": {"b": [2]}}
    )
    assert table.get(KEY) is None
    table.write(Put(stored))
    assert table.get(KEY) == stored


@pytest.mark.parametrize(
    "name", ['quo"te', "a/b", "日本語", "🦆", "per%cent", "a b", "a'b", "U\u0308", "$#:x", "a\\b"]
)
def test_different_texts_are_different_keys(table: Table, name: str) -> None:
    table.write(Put(item("USER", pk=f"USER#{name}", n=1)))
    assert table.get(Key(f"USER#{name}", "USER")) == item("USER", pk=f"USER#{name}", n=1)
    assert table.count(f"USER#{name}", limit=10) == 1


@pytest.mark.parametrize("attributes", [{"ttl": 5}, {"ttl": "5"}, {"ttl": 5, "n": 1}, {}])
def test_a_view_is_an_item_like_others(table: Table, attributes: dict[str, Value]) -> None:
    """SQLite stores views in a table of their own."""
    partition = [{**item(sk), **attributes} for sk in ("VIEW#1", "VIEW#2", "VIEWS")]
    table.put_all([item("DAY#1"), item("VIEW#2", old=1), *partition])
    assert table.get(Key("USER#a", "VIEW#2")) == partition[1]
    found = table.get_all([key_of(one) for one in partition])
    assert sorted(found, key=key_of) == partition
    assert table.query("USER#a", limit=9) == [item("DAY#1"), *partition]
    assert table.query("USER#a", first="VIEW#", limit=2, descending=True) == partition[:0:-1]
    asked = table.query("USER#a", first="VIEW#2", limit=9, attributes=("SK", "ttl", "n"))
    assert asked == [{"SK": one["SK"], **attributes} for one in partition[1:]]
    assert table.count("USER#a", first="VIEW#2", limit=9) == 2
    table.write(Update(Key("USER#a", "VIEW#1"), values={"n": 2}), Delete(Key("USER#a", "VIEW#2")))
    assert table.get(Key("USER#a", "VIEW#1")) == {**partition[0], "n": 2}
    with pytest.raises(ConditionFailedError):
        table.write(Put(partition[0], condition=attr("SK").missing()))
    assert sort_keys(table.query("USER#a", limit=9)) == ["DAY#1", "VIEW#1", "VIEWS"]


# what can't be stored


TOO_DEEP = json.loads("[" * (MAX_LEVELS + 1) + "]" * (MAX_LEVELS + 1))


@pytest.mark.parametrize(
    "value", [1.5, None, True, b"x", {1: 2}, [1.0], {"a": None}, (), 10**38, TOO_DEEP]
)
def test_a_value_that_no_engine_holds_is_refused(table: Table, value: object) -> None:
    bad = {"PK": "USER#a", "SK": "USER", "v": value}
    with pytest.raises(StorageRefusedError):
        table.write(Put(bad))  # type: ignore[arg-type]
    with pytest.raises(StorageRefusedError):
        table.write(Update(KEY, values={"v": value}))  # type: ignore[dict-item]
    with pytest.raises(StorageRefusedError):
        table.put_all([bad])  # type: ignore[list-item]
    assert table.get(KEY) is None


@pytest.mark.parametrize(
    "key",
    [Key("", "s"), Key("p", ""), Key("p" * 2049, "s"), Key("p", "s" * 1025), Key("\ud800", "s")],
)
def test_a_key_that_no_engine_holds_is_refused(table: Table, key: Key) -> None:
    for write in (Put(key.item()), Update(key, values={"a": 1}), Delete(key)):
        with pytest.raises(StorageRefusedError):
            table.write(write)
    with pytest.raises(StorageRefusedError):
        table.put_all([key.item()])


def test_the_longest_keys_are_held(table: Table) -> None:
    key = Key("é" * 1024, "s" * 1024)
    table.write(Put(key.item()))
    assert table.get(key) is not None


# query and count


def test_items_are_read_together_in_the_order_of_their_keys(table: Table) -> None:
    items: list[Item] = [{"PK": f"p{n % 7}", "SK": f"s{n}", "n": n} for n in range(130)]
    table.put_all(items)
    backwards = [key_of(item) for item in reversed(items)]
    nowhere = Key("p1", "s0")
    assert table.get_all([nowhere, *backwards, nowhere]) == items[::-1]
    assert table.get_all([backwards[3], backwards[3]]) == [items[-4]] * 2
    assert table.get_all([nowhere]) == table.get_all([]) == []


def test_a_query_reads_in_the_order_of_the_utf8_bytes_of_sort_keys(table: Table) -> None:
    names = ["B", "a", "é", "ﬀ", "🦆", "USER", "VIEW#1", "DAY#2", "VIEW#10"]
    table.put_all([item(name) for name in names])
    assert sort_keys(table.query("USER#a", limit=100)) == sorted(names, key=str.encode)


def test_a_query_stays_within_its_partition_and_bounds(table: Table) -> None:
    table.put_all([item(sk, pk) for pk in ("USER#a", "USER#ab") for sk in "abcde"])
    assert sort_keys(table.query("USER#a", limit=9)) == ["a", "b", "c", "d", "e"]
    assert sort_keys(table.query("USER#a", first="c", limit=9)) == ["c", "d", "e"]
    assert sort_keys(table.query("USER#a", last="b", limit=9)) == ["a", "b"]
    assert sort_keys(table.query("USER#a", first="b", last="d", limit=9)) == ["b", "c", "d"]
    assert sort_keys(table.query("USER#a", first="b", limit=2)) == ["b", "c"]
    descending = table.query("USER#a", first="b", last="d", limit=2, descending=True)
    assert sort_keys(descending) == ["d", "c"]
    assert table.query("USER#none", limit=9) == []


def test_a_query_reads_the_requested_attributes(table: Table) -> None:
    table.put_all([item("USER", count=3, level=2, other="x"), item("VIEW#1", ttl=9)])
    found = table.query("USER#a", limit=9, attributes=("SK", "count", "level"))
    assert found == [{"SK": "USER", "count": 3, "level": 2}, {"SK": "VIEW#1"}]
    assert table.query("USER#a", limit=9, attributes=("count",)) == [{"count": 3}, {}]
    assert table.query("USER#a", limit=9, attributes=("PK",)) == [{"PK": "USER#a"}] * 2
    both = table.query("USER#a", limit=9, attributes=("PK", "SK"))
    assert both == [{"PK": "USER#a", "SK": "USER"}, {"PK": "USER#a", "SK": "VIEW#1"}]


@pytest.mark.parametrize("others", [(), ("b", "c", "d", "e", "f")])
def test_a_query_reads_attributes_of_any_type(table: Table, others: tuple[str, ...]) -> None:
    """An engine may read few attributes in another way than many."""
    wanted: Item = {
        "text": 'it\'s "1" \\ \u2028 \0 null',
        "number": 2**70,
        "day": {"h00": 1, "text": "x"},
    }
    table.put_all([{**item("USER", other=1), **wanted}, item("VIEW#1", list={"text": "no"})])
    found = table.query("USER#a", limit=9, attributes=("SK", *wanted, *others))
    assert found == [{"SK": "USER", **wanted}, {"SK": "VIEW#1"}]


def test_a_count_stays_within_its_bounds_and_ends_at_the_limit(table: Table) -> None:
    table.put_all([item(sk) for sk in "abcde"])
    assert table.count("USER#a", limit=9) == 5
    assert table.count("USER#a", first="c", limit=9) == 3
    assert table.count("USER#a", first="b", last="d", limit=9) == 3
    assert table.count("USER#a", last="a", limit=9) == 1
    assert table.count("USER#a", first="f", limit=9) == 0
    assert table.count("USER#a", first="b", limit=2) == 2
    assert table.count("USER#none", limit=9) == 0
    table.put_all([item(sk, pk) for sk in ("VIEW#1", "VIEW#2", "VIEWS") for pk in ("USER#a", "b")])
    for partition in ("USER#a", "b"):
        assert table.count(partition, first="VIEW#1", last="VIEW#3", limit=9) == 2
        assert table.count(partition, first="VIEW#2", last="VIEWS", limit=9) == 2
    table.put_all([item("OWNER")])
    assert table.count("USER#a", first="OWNER", last="VIEW#1", limit=9) == 2


def test_reads_continue_after_a_page_of_one_megabyte(table: Table) -> None:
    """30 items of 50 kB are 1.5 MB, which DynamoDB returns in two pages."""
    table.put_all([item(f"VIEW#{n:02}", filler="x" * 50_000) for n in range(30)])
    assert len(table.query("USER#a", limit=100, attributes=("SK",))) == 30
    assert len(table.query("USER#a", limit=25, attributes=("SK",))) == 25
    assert table.count("USER#a", limit=100) == 30
    assert table.count("USER#a", limit=25) == 25


# put_all


def test_put_all_stores_more_than_a_batch_and_replaces(table: Table) -> None:
    table.put_all([])
    table.put_all([item("VIEW#00", ttl=1)])
    table.put_all([item(f"VIEW#{n:02}", ttl=2) for n in range(60)])
    found = table.query("USER#a", limit=100)
    assert [entry["ttl"] for entry in found] == [2] * 60


def test_of_two_items_with_one_key_the_later_stays(table: Table) -> None:
    table.put_all([item("USER", n=1), item("VIEW#1"), item("USER", n=2)])
    assert table.get(KEY) == item("USER", n=2)
    assert table.count("USER#a", limit=9) == 2


# updates


def test_an_update_creates_replaces_defaults_adds_and_removes(table: Table) -> None:
    table.write(
        Update(
            KEY, values={"level": 1}, defaults={"created": 5}, add={"count": 2}, remove=("gone",)
        )
    )
    assert table.get(KEY) == item("USER", level=1, created=5, count=2)
    table.write(
        Update(KEY, values={"level": 9}, defaults={"created": 7}, add={"count": 3, "new": -1})
    )
    assert table.get(KEY) == item("USER", level=9, created=5, count=5, new=-1)
    table.write(Update(KEY, remove=("level", "new")))
    assert table.get(KEY) == item("USER", created=5, count=5)


def test_an_update_may_name_reserved_words(table: Table) -> None:
    table.write(Update(KEY, values={"name": "n", "status": "s"}, add={"count": 1, "size": 1}))
    table.write(Update(KEY, values={"name": "m"}, condition=attr("status") == "s"))
    assert table.get(KEY) == item("USER", name="m", status="s", count=1, size=1)


def test_an_update_that_changes_nothing_is_refused(table: Table) -> None:
    with pytest.raises(StorageRefusedError):
        table.write(Update(KEY))
    assert table.get(KEY) is None


def test_a_delete_removes_and_may_be_repeated(table: Table) -> None:
    table.write(Put(item("USER")))
    table.write(Delete(KEY))
    table.write(Delete(KEY))
    assert table.get(KEY) is None


# conditions


def test_a_failed_condition_changes_nothing_and_carries_the_item(table: Table) -> None:
    table.write(Put(item("USER", count=3, folded="x")))
    for write in (
        Put(item("USER", count=9), condition=attr("count") < 3),
        Update(KEY, add={"count": 1}, condition=attr("folded").missing()),
        Delete(KEY, condition=attr("folded") == "y"),
        Check(KEY, condition=attr("count") > 3),
    ):
        with pytest.raises(ConditionFailedError) as failed:
            table.write(write)
        assert failed.value.items == {0: item("USER", count=3, folded="x")}
    assert table.get(KEY) == item("USER", count=3, folded="x")


def test_a_failed_condition_on_no_item_carries_none(table: Table) -> None:
    with pytest.raises(ConditionFailedError) as failed:
        table.write(Update(KEY, add={"count": 1}, condition=attr("PK").exists()))
    assert failed.value.items == {0: None}
    assert table.get(KEY) is None


EXISTING_ITEM = {"n": 5, "t": "héllo", "l": [1, "x"], "m": {"a": {"b": 7}}, "zero": 0, "blank": ""}
CONDITIONS: dict[str, tuple[Condition, bool]] = {  # `test_conditions.py` generates others
    "n = 5": (attr("n") == 5, True),
    "n = '5'": (attr("n") == "5", False),
    "exists zero": (attr("zero").exists(), True),
    "exists blank": (attr("blank").exists(), True),
    "missing = 5": (attr("missing") == 5, False),
    "missing < 5": (attr("missing") < 5, False),
    "n > 'a'": (attr("n") > "a", False),
    "and": ((attr("n") == 5) & (attr("t") == "x"), False),
    "nested": ((attr("n") == 5) & ((attr("n") < 3) | (attr("n") > 4)), True),
    "not nested": ((attr("n") == 6) & ((attr("n") < 6) | (attr("n") > 4)), False),
    "a number and a list": (attr("n") == [5], False),
    "l = l": (attr("l") == [1, "x"], True),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_holds_alike_on_every_engine(
    table: Table, name: str, table_clients: Clients
) -> None:
    condition, expected = CONDITIONS[name]
    if reason := KNOWN_DIFFERENCES.get((table_clients.engine, name)):
        pytest.skip(reason)
    table.write(Put(item("USER", **EXISTING_ITEM)))  # type: ignore[arg-type]
    assert succeeds(table, Put(item("USER", done=1), condition=condition)) is expected


KNOWN_DIFFERENCES = {
    ("moto", "n > 'a'"): "moto fails on a comparison of two types",
}
"""The conditions that an engine evaluates differently from AWS, with the reason."""


# transactions


def test_a_transaction_writes_all(table: Table) -> None:
    other = Key("USER#b", "USER")
    table.write(Put(item("VIEW#1")), Put(item("VIEW#2")))
    table.write(
        Update(KEY, add={"count": 1}),
        Update(other, add={"count": 2}),
        Delete(Key("USER#a", "VIEW#1")),
        Check(Key("USER#a", "VIEW#2"), condition=attr("PK").exists()),
    )
    assert table.get(KEY) == item("USER", count=1)
    assert table.get(other) == item("USER", pk="USER#b", count=2)
    assert sort_keys(table.query("USER#a", limit=9)) == ["USER", "VIEW#2"]


def test_a_transaction_with_a_failed_condition_writes_nothing_and_says_which(table: Table) -> None:
    table.write(Put(item("USER", count=1)))
    with pytest.raises(ConditionFailedError) as failed:
        table.write(
            Put(item("VIEW#1")),
            Update(KEY, add={"count": 1}, condition=attr("count") > 1),
            Check(Key("USER#b", "USER"), condition=attr("PK").exists()),
        )
    assert failed.value.items == {1: item("USER", count=1), 2: None}
    assert table.query("USER#a", limit=9) == [item("USER", count=1)]


def test_conditions_are_evaluated_before_the_writes_of_the_transaction(table: Table) -> None:
    with pytest.raises(ConditionFailedError):
        table.write(Put(item("VIEW#1")), Check(Key("USER#a", "VIEW#2"), attr("PK").exists()))
    assert table.query("USER#a", limit=9) == []


def test_a_transaction_has_1_to_100_writes_and_no_item_twice(table: Table) -> None:
    hundred = [Put(item(f"VIEW#{n:03}")) for n in range(100)]
    table.write(*hundred)
    assert table.count("USER#a", limit=200) == 100
    for writes in ([], [*hundred, Put(item("VIEW#100"))], [Put(item("USER")), Delete(KEY)]):
        with pytest.raises(StorageRefusedError):
            table.write(*writes)
    assert table.count("USER#a", limit=200) == 100


# concurrency


@pytest.fixture
def safe(table: Table, table_clients: Clients) -> Table:
    """Return the table, if its engine is safe for threads."""
    if table_clients.engine == "moto":
        pytest.skip("moto loses updates of concurrent threads")
    return table


def test_concurrent_updates_all_count(safe: Table) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: safe.write(Update(KEY, add={"count": 1})), range(64)))
    found = safe.get(KEY)
    assert found is not None
    assert found["count"] == 64


def test_of_concurrent_writes_under_one_condition_one_wins(safe: Table) -> None:
    first = attr("winner").missing()

    def attempt(number: int) -> bool:
        return succeeds(safe, Update(KEY, values={"winner": number}, condition=first))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(32))) == 1


def test_concurrent_transactions_lose_nothing(safe: Table) -> None:
    """16 transfers move 1 from a, which has 10, to b: 10 succeed and 6 are refused."""
    other = Key("USER#b", "USER")
    safe.write(Put(item("USER", balance=10)))

    def move(_: int) -> bool:
        give = Update(KEY, add={"balance": -1}, condition=attr("balance") >= 1)
        return succeeds(safe, give, Update(other, add={"balance": 1}))

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(move, range(16))) == 10
    assert safe.get(KEY) == item("USER", balance=0)
    assert safe.get(other) == item("USER", pk="USER#b", balance=10)
