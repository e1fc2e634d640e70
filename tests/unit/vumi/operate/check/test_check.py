"""`check` reports every error of a wrong file, none of a correct file, and changes nothing."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from chalicelib.counting import keys
from chalicelib.counting.storing import store
from chalicelib.counting.view import Counting, View, Windows
from chalicelib.events.event import Event, Target, TargetKind
from chalicelib.storage.items import Item, Value
from chalicelib.storage.writes import Put
from chalicelib.ulids import new_ulid
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.ledger import Ledger
from chalicelib.wallets.wallet import Posting, entry
from vumi.operate.check import check, items
from vumi.storage.archive import FOLDER, FolderArchive
from vumi.storage.database import FILE, Database
from vumi.storage.file_format import SHM, VERSION, WAL, beside, open_without_locks
from vumi.storage.queue import DEAD_LETTERS, SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.tokens import TokenStore
from vumi.workers.deliveries import ChangeDelivery
from vumi.workers.expiry import remove_expired

NOW = 1_800_000_000.0
SUMMARY: dict[str, Value] = {
    "count": 5,
    "watermark": int(NOW * 1000) - 1,
    "today": {"day": "2027-01-15", "h07": 3},
    "version": 2,
}
"""2 views are in the history of the day before, 3 in that of today."""
USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"


def view(badge_id: str = "a/b", *, first: bool = True, hot: bool = False) -> View:
    return View(badge_id, new_ulid(int(NOW * 1000)), first, hot)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Read every file of a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def wrong(folder: Path, unless: str = "") -> list[str]:
    """Return the errors that a check finds; it may change no file but one."""
    before = snapshot(folder)
    found = check.check_content(folder)
    after = snapshot(folder)
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name] and name != unless] == []
    return [one.message for one in found if one.kind is items.FindingKind.WRONG]


def notes(folder: Path) -> list[str]:
    return [one.message for one in check.check(folder) if one.kind is items.FindingKind.NOTE]


def change(folder: Path, statement: str, *arguments: object) -> None:
    """Write to the file directly, as no part of vu-mi would."""
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as connection:
        connection.execute(statement, arguments)


@pytest.fixture
def wallet_id(folder: Path) -> str:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        [found] = connection.execute("SELECT pk FROM items WHERE sk = 'WALLET' AND pk LIKE 'WAL%'")
    return str(found[0]).removeprefix("WALLET#")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create a file with an item of each kind, and close it, so that it has no WAL."""
    with closing(Database(tmp_path / FILE)) as database:
        table = SqliteTable(database)
        counting = Counting(table, Windows(retention=3_600), lambda: NOW)
        assert store(counting, [view(), view(first=False), view(first=False)]) == {}
        assert store(counting, [view(first=False, hot=True)]) == {}
        queue = SqliteQueue(database, "vu-mi-views", lambda: NOW)
        queue.send(view("waiting").to_message())
        for consumer in ("fold_views", "archive_entries"):
            ChangeDelivery(database, consumer, lambda _: ())
        event = Event("launch", 1, 1, Target(TargetKind.LOG), '"ho"', "d")
        key = keys.day("a/b", "2027-01-14")
        day: Item = {"PK": key.pk, "SK": key.sk, "views": 2, "h08": 2, "version": 1, "reset": 0}
        table.write(Put(event.new_item()), Put(day), Put({"PK": key.pk, "SK": "VIEWS", **SUMMARY}))
        TokenStore(table, lambda: NOW).create("eva", USER)
        wallet = wallets.open_wallet(table, USER, 1)
        Ledger(table, lambda: NOW).post(Posting("n-1", 500, wallet.wallet_id))
    return tmp_path


def test_a_correct_file_has_no_errors_and_each_kind_is_counted(folder: Path) -> None:
    assert wrong(folder) == []
    lines = [f"{one.kind}: {one.message}" for one in check.check(folder)]
    kinds = (
        "badge 1, counted view 1, day 1, entry 1, event 1, nonce 1, token 1, view 3,"
        " wallet 1, wallet of a user 1, window 1"
    )
    assert f"ok: items: {kinds}" in lines
    assert "ok: wallets: each balance equals its journal (1 wallet)" in lines
    assert re.fullmatch("ok: [0-9.]+ MiB, 0.0 MiB in its WAL, [0-9,.]+ MiB free on.*", lines[-1])


def test_an_open_file_and_that_of_a_killed_process_are_read_with_their_wal(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The copy is read with the WAL's index and without."""
    copy = tmp_path_factory.mktemp("copy")
    with closing(Database(folder / FILE)) as database:
        SqliteTable(database).put_all([{"PK": "nobody's", "SK": "s"}])
        # In one process all connections share the marks of who reads.
        assert wrong(folder, FILE + SHM) == ["nobody's s: vu-mi writes no item with this key"]
        for name in (FILE, FILE + WAL, FILE + SHM):
            (copy / name).write_bytes((folder / name).read_bytes())
    assert wrong(copy) == ["nobody's s: vu-mi writes no item with this key"]
    beside(copy / FILE, SHM).unlink()
    assert wrong(copy) == ["nobody's s: vu-mi writes no item with this key"]


def replacing(text: str, other: str) -> str:
    return f"attributes = replace(attributes, '{text}', '{other}')"


@pytest.mark.parametrize(
    ("sort", "assignment", "says"),
    [
        ("VIEWS", "attributes = '['", "it can't be decoded"),
        ("VIEWS", "attributes = '[]'", "its attributes are not a JSON"),
        ("VIEWS", "attributes = '{\"n\": 1.5}'", "it can't be decoded"),
        ("VIEWS", "sk = CAST(x'ff41' AS TEXT)", "must be text that UTF-8"),
        ("VIEWS", "pk = 'USER#'", "this badge is wrong"),
        ("VIEWS", "sk = 'ELSE'", "vu-mi writes no item with this key"),
        ("VIEWS", "sk = 'VIEW#I'", "this view is wrong"),
        ("VIEWS", "sk = 'VIEW#01ARZ3NDEKTSV4RRFFQ69G5FAI'", "this view is wrong"),
        ("DAY#%", "attributes = '{\"views\": 2}'", "its hours have 0"),
        ("DAY#%", "sk = 'DAY#2027-02-30'", "this day is wrong"),
        ("SEEN", "pk = 'SEEN#x'", "this counted view is wrong"),
        ("WINDOW", "ttl = 5", "its column ttl has 5, but its attribute"),
        ("WINDOW", "ttl = NULL", "its column ttl has None"),
        ("WINDOW", "pk = 'WINDOW#x#a/b'", "this window is wrong"),
        ("WINDOW", "pk = 'WINDOW#300#b'", "its key names 'b', but its badge is"),
        ("TIMER", "due = 5", "its column due has 5"),
        ("TIMER", "batch = 'x'", "its column batch has 'x'"),
        ("TOKEN", "pk = 'TOKEN#x'", "not a valid digest of a token"),
        (
            "TOKEN",
            replacing('"role": "user"', '"role": "admin"'),
            "it names no operator and no user",
        ),
        (
            "TOKEN",
            replacing('"role": "user"', '"role": "operator"'),
            "it names no operator and no user",
        ),
        ("TOKEN", replacing('"eva"', '"a b"'), "'a b' is not a valid name of a token"),
        ("TOKEN", replacing("}", ', "more": 1}'), "its attributes are not those of a token"),
        ("WALLET", replacing("500", "501"), "has 501, but its journal adds up to 500"),
        (
            "WALLET",
            replacing("500", "-1"),
            "its balance is -1; it must be 0 to 92233",
        ),
        ("WALLET", replacing("500", str(2**63)), "its balance is 9223372036854775808"),
        ("WALLET", replacing('"last": "0', '"last": "00'), "not '00"),
        ("NONCE#%", "sk = 'NONCE#n-2'", "differs from its nonce"),
        ("NONCE#%", replacing('"done"', '"balance_limit"'), "differs from its nonce n-1"),
        ("NONCE#%", replacing('"entry": "0', '"entry": "1'), "differs from its nonce n-1"),
        ("NONCE#%", replacing("}", ', "ttl": 5}') + ", ttl = 5", "but a nonce is kept forever"),
        ("NONCE#%", replacing('"done"', '"lost"'), "this nonce is wrong"),
        ("NONCE#%", replacing('"request": "', '"request": "x'), "valid digest of a request"),
        ("NONCE#%", replacing('"entry": "', '"entry": "x'), "is not a valid id of an entry"),
        ("TX#%", replacing("500", "501"), "differs from its nonce n-1"),
        ("TX#%", replacing("500", "0"), "its amount is 0; it must be 1 to"),
        ("TX#%", replacing('"to": "', '"to": "x'), "its posting is between other wallets"),
        ("TX#%", "sk = 'TX#n-1'", "'n-1' is not a valid id"),
    ],
)
def test_each_wrong_item_is_reported(folder: Path, sort: str, assignment: str, says: str) -> None:
    (folder / FOLDER).mkdir()
    change(folder, f"UPDATE items SET {assignment} WHERE sk LIKE '{sort}'")  # noqa: S608
    assert any(says in line for line in wrong(folder))


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE views SET ttl = NULL", "it can't be decoded"),
        ("UPDATE views SET ttl = 5, attributes = '{\"ttl\": 6}'", "its column ttl has 5, but its"),
        ("UPDATE views SET sk = sk || 'I'", "this view is wrong"),
        ("DELETE FROM viewed", "views of no badge"),
        ("DELETE FROM items WHERE sk LIKE 'NONCE#%'", "differs from its nonce n-1"),
        ("DELETE FROM items WHERE pk LIKE 'OWNER#%'", f"is of {USER}, whose wallet is None"),
        ("DELETE FROM items WHERE pk LIKE 'WALLET#%'", f"of user {USER} does not exist"),
        ("UPDATE checkpoints SET sequence = 9", "is at change 9, but the change log ends at 0"),
        ("DELETE FROM stream", "the table stream has 0 rows; it must have 1"),
        ("INSERT INTO clock VALUES (1)", "the table clock has 2 rows; it must have 1"),
        ("DROP INDEX expiring", "the index expiring is missing or differs"),
        ("ALTER TABLE clock ADD COLUMN more", "the table clock is missing or differs"),
        ("DROP TABLE messages", "it is a SQLite file, but not one of vu-mi"),
        ("UPDATE messages SET visible_at = 'soon'", "message 1 of the queue vu-mi-views is"),
        (f"PRAGMA user_version = {VERSION + 1}", f"the file has format {VERSION + 1}"),
        ("PRAGMA user_version = 0", "it is a SQLite file, but not one of vu-mi"),
    ],
)
def test_each_error_is_reported(folder: Path, statement: str, says: str) -> None:
    change(folder, statement)
    assert any(says in line for line in wrong(folder))


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"count": 6}, "the badge a/b has 6 views, but its history has 5"),
        ({"count": 4}, "the badge a/b has 4 views, but its history has 5"),
        ({"count": 2, "today": {}}, "the badge a/b has 2 views, but its history has 0"),
        ({"today": {"day": "2027-01-14", "h00": 3}}, "has 5 views, but its history has 3"),
        ({"today": "2027-01-15"}, "this badge is wrong: today is '2027-01-15'"),
        ({"today": {"day": "2027-02-30", "h07": 3}}, "this badge is wrong: day is out of"),
        ({"count": -1}, "its count is -1; it must be 0 or more"),
        ({"watermark": -1}, "its watermark is -1; it must be 0 or more"),
        ({"reset": int(NOW * 1000)}, f"its reset {int(NOW * 1000)} is later than its watermark"),
        ({"count": 3, "reset": int(NOW * 1000) - 1}, ""),
        ({"base": 7, "frozen": 1, "hot": 9}, ""),
    ],
)
def test_a_count_that_differs_from_its_history_is_reported(
    folder: Path, attributes: dict[str, object], says: str
) -> None:
    """A day of an earlier life, and today's own item, are no part of the history."""
    text = json.dumps(SUMMARY | attributes)
    change(folder, "UPDATE items SET attributes = ? WHERE sk = 'VIEWS'", text)
    found = wrong(folder)
    assert any(says in line for line in found) if says else found == []


def test_the_days_of_one_badge_are_not_those_of_the_next(folder: Path) -> None:
    change(
        folder,
        "INSERT INTO items (pk, sk, attributes) VALUES ('USER#a/c', 'VIEWS', ?)",
        json.dumps({"count": 2, "today": {"day": "2027-01-15"}, "version": 1}),
    )
    assert wrong(folder) == ["the badge a/c has 2 views, but its history has 0"]


def test_an_entry_in_the_table_the_change_log_and_the_archive_counts_once(
    folder: Path, wallet_id: str
) -> None:
    """500 are hot, 70 wait to be archived, 7 are in the archive, twice: 577."""
    with closing(Database(folder / FILE)) as database:
        table = SqliteTable(database)
        ledger = Ledger(table, lambda: NOW - 9)
        waiting, archived = (
            ledger.post(Posting(f"n-{amount}", amount, wallet_id)).entry_id for amount in (70, 7)
        )
        queue = SqliteQueue(database, "views", lambda: NOW)
        remove_expired(database, queue, lambda: NOW + 2 * 86_400 - 5, lambda: None)
        database.write(lambda connection: connection.execute(
            "DELETE FROM changes WHERE sk = ?", (f"TX#{archived}",)
        ))  # fmt: skip
        assert table.get(entry(wallet_id, waiting)) is None
    assert wrong(folder) == []  # there is no archive to hold it against
    assert any("can't be compared with" in line for line in notes(folder))
    line = {"id": archived, "wallet": wallet_id, "amount": "7", "from": "", "to": wallet_id}
    line |= {"nonce": "n-7", "at": "2027-01-12T08:00:00.000Z"}
    archive = FolderArchive(folder / FOLDER)
    for name in ("one", "two"):
        archive.put(f"journal/2027/01/12/{name}.jsonl.gz", compressed([line]))
    assert wrong(folder) == []
    archive.put("journal/2027/01/12/three.jsonl.gz", compressed([line])[:-9])
    assert any("three.jsonl.gz can't be read" in line for line in wrong(folder))


def compressed(lines: list[dict[str, str]]) -> bytes:
    return gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode())


def test_a_change_that_every_consumer_has_read_is_reported(folder: Path) -> None:
    change(
        folder,
        "INSERT INTO changes (removed_at, pk, sk, attributes)"
        " VALUES (1, 'WINDOW#300#a', 'WINDOW', '{}')",
    )
    change(folder, "UPDATE checkpoints SET sequence = 1")
    assert wrong(folder) == ["change 1 is kept, although every consumer has read up to 1"]


def test_dead_letters_and_unknown_tables_are_notes(folder: Path) -> None:
    change(folder, "UPDATE messages SET queue = ?", f"vu-mi-views{DEAD_LETTERS}")
    change(folder, "CREATE TABLE lost_and_found (x)")
    assert wrong(folder) == []
    found = notes(folder)
    assert any(line.startswith("1 dead letter of vu-mi-views:") for line in found)
    assert "the table lost_and_found is not part of vu-mi; it is ignored" in found


def test_five_errors_of_a_kind_are_listed_and_the_others_counted(folder: Path) -> None:
    """5 of 7."""
    for n in range(7):
        change(folder, "INSERT INTO items (pk, sk, attributes) VALUES (?, 's', '{}')", f"x{n}")
    found = wrong(folder)
    assert len(found) == 6
    assert found[-1] == "and 2 more of this kind"


def break_page(path: Path, name: str = "items") -> None:
    """Random bytes, the same each time, in the page where a table or index begins."""
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
        [root] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,))
        [size] = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((root[0] - 1) * size)
        file.write(bytes(n * 7 % 251 for n in range(size)))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"a diary, no database" * 99),
        lambda path: path.write_bytes(path.read_bytes()[:5_000]),
        lambda path: path.write_bytes(b"\x99" * 64 + path.read_bytes()[64:]),
        break_page,
    ],
    ids=["empty", "no database", "cut short", "a broken header", "a broken page"],
)
def test_a_corrupt_file_is_reported_and_not_changed(
    folder: Path, damage: Callable[[Path], object]
) -> None:
    damage(folder / FILE)
    assert wrong(folder)


def test_a_file_that_changes_while_it_is_read_is_read_again(folder: Path) -> None:
    """A server starts and stops meanwhile, so the first read is discarded."""
    times = 0

    @contextmanager
    def read(path: Path) -> Iterator[sqlite3.Connection]:
        nonlocal times
        times += 1
        with open_without_locks(path) as connection:
            yield connection
            if times == 1:
                change(folder, "INSERT INTO items (pk, sk, attributes) VALUES ('x', 's', '{}')")

    found = check.check_content(folder, read)
    assert times == 2
    assert items.wrong("x s: vu-mi writes no item with this key") in found
