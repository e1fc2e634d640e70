"""The check of a table that others write meanwhile reports errors and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from itertools import count
from typing import Any

import pytest

from chalicelib.counting import keys
from chalicelib.storage.items import Item, Key, key_of
from chalicelib.storage.writes import Delete, Put
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.archive import EntryRemoval, batches, make_object
from chalicelib.wallets.ledger import Ledger
from chalicelib.wallets.wallet import ENTRY, Posting
from simulation.storage import FaultyTable, MemoryTable
from vumi.journals import ArchivedObject
from vumi.operate.check.items import PAUSE, PAUSES, LiveCheck, StoredItem

NOW = 1_800_000_000.0
BADGE = keys.partition("a/b")


def summary(count: int, version: int, **today: Any) -> Item:
    numbers = {"count": count, "watermark": int(NOW * 1000), "version": version}
    return {"PK": BADGE, "SK": keys.SUMMARY, **numbers, "today": today}


def day_of(day: str, version: int, **hours: int) -> Item:
    views = {"views": sum(hours.values()), **hours}
    return {"PK": BADGE, "SK": keys.DAY + day, **views, "version": version, "reset": 0}


def owner_of(digest: str) -> Item:
    return {"PK": BADGE, "SK": keys.OWNER, "digest": digest}


def found_by(digest: str) -> Item:
    """Return the item by which a secret finds the badge."""
    return dict(zip(("PK", "SK"), keys.owned(digest, "a/b"), strict=True))


SUMMARY, DAY = summary(5, 2, day="2027-01-15", h07=3), day_of("2027-01-14", 1, h08=2)
NEW_DAY, NEXT_SUMMARY = day_of("2027-01-15", 2, h07=3), summary(6, 3, day="2027-01-16", h00=1)
"""The badge after the first fold of the next day."""


@dataclass
class Stack:
    """A table with a badge and two wallets, its archive, and the writes during its scan."""

    table: MemoryTable = field(default_factory=MemoryTable)
    archive: dict[str, bytes] = field(default_factory=dict)
    has_archive: bool = True
    during: dict[Key, Callable[[], None]] = field(default_factory=dict)
    after_pause: Callable[[], None] = lambda: None
    pauses: list[float] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table.put_all([SUMMARY, DAY])
        self.source, self.target = (
            wallets.open_wallet(self.table, user, 1).wallet_id for user in ("u-1", "u-2")
        )
        self.ledger = Ledger(self.table, lambda: NOW)
        self.ledger.post(Posting("n-1", 500, self.source))
        self.ledger.post(Posting("n-2", 200, self.target, self.source))

    def scan(self) -> Iterator[StoredItem]:
        """Yield the items, and make the writes of others after the item under their key."""
        key = Key("", "")
        while following := [other for other in self.table.items if other > key]:
            key = min(following)
            item = dict(self.table.items[key])
            yield " ".join(key), lambda item=item: item  # type: ignore[misc]
            self.during.pop(key, lambda: None)()

    def archived(self) -> Iterator[ArchivedObject]:
        for name, body in sorted(self.archive.items()):
            yield ArchivedObject(name, partial(self._open, name, body))

    def _open(self, name: str, body: bytes) -> BytesIO:
        self.opened.append(name)
        return BytesIO(body)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.after_pause()

    def check(self, before_read: Callable[[], None] = lambda: None) -> list[str]:
        """Return what the check says, without the counts of items."""
        archived = self.archived if self.has_archive else None
        table = FaultyTable(self.table, before_read=lambda _: before_read())
        found = LiveCheck(table, archived, self.pause).check(self.scan())
        said = (f"{one.kind}: {one.message}" for one in found)
        return [line for line in said if not line.startswith("ok: items")]

    def move_to_archive(self, wallet_id: str) -> None:
        self.put_in_archive(self.expire(wallet_id))

    def expire(self, wallet_id: str) -> Item:
        """Remove the first entry of a wallet, as TTL does."""
        [item] = self.table.query(wallets.PARTITION + wallet_id, limit=1, first=ENTRY, last="TX#~")
        self.table.remove(key_of(item))
        return item

    def put_in_archive(self, *entries: Item) -> None:
        for batch in batches(EntryRemoval.of(entry, 1, NOW) for entry in entries):
            name, content = make_object(batch)
            self.archive[name] = content


SOUND = [
    "ok: badges: each count equals the sum of its history",
    "ok: wallets: each balance equals its journal (2 wallets)",
]


@pytest.fixture
def stack() -> Stack:
    return Stack()


def test_a_sound_stack_has_no_errors(stack: Stack) -> None:
    stack.move_to_archive(stack.source)
    assert stack.check() == SOUND
    assert stack.pauses == []


def test_a_count_that_changes_during_the_scan_is_no_error(stack: Stack) -> None:
    """The scan reads the days before a day ends, and the summary after it."""
    owner = owner_of("a" * 64)
    stack.table.put_all([owner, found_by("a" * 64)])
    stack.during[key_of(owner)] = lambda: stack.table.put_all([NEW_DAY, NEXT_SUMMARY])
    listed = "ok: owners: 1 badge can be listed by their secrets"
    assert stack.check() == [*SOUND[:1], listed, *SOUND[1:]]


def test_an_owner_that_changes_during_the_scan_is_no_error(stack: Stack) -> None:
    """The scan reads the new secret's badges before it has any, and the owner after that."""
    old, new, owner = found_by("a" * 64), found_by("b" * 64), owner_of("b" * 64)
    stack.table.put_all([old, owner])

    def hand_over() -> None:
        stack.table.write(Delete(key_of(old)), Put(new))

    stack.during[key_of(owner)] = hand_over
    assert "ok: owners: 1 badge can be listed by their secrets" in stack.check()


@pytest.mark.parametrize("listed", [(), ("a" * 64, "b" * 64), ("b" * 64,)])
def test_an_owner_whose_secret_does_not_list_the_badge_alone_is_an_error(
    stack: Stack, listed: Sequence[str]
) -> None:
    stack.table.put_all([owner_of("a" * 64), *map(found_by, listed)])
    assert stack.check()[1] == (
        "wrong: the badge a/b is not among the badges of its owner's secret, or is among another"
        " one's"
    )


def test_a_wrong_count_is_an_error(stack: Stack) -> None:
    stack.table.put_all([{**SUMMARY, "count": 6}])
    assert stack.check() == [
        "wrong: the badge a/b has 6 views, but its history has 5",
        "ok: wallets: each balance equals its journal (2 wallets)",
    ]


def test_a_badge_that_changes_at_every_read_is_a_note(stack: Stack) -> None:
    versions = count(3)
    stack.table.put_all([{**SUMMARY, "count": 6}])
    found = stack.check(lambda: stack.table.put_all([summary(6, next(versions))]))
    assert found == ["note: the badge a/b changes too fast to be checked", *SOUND]


def test_postings_during_the_scan_are_no_errors(stack: Stack) -> None:
    """One is seen in one wallet only, one between the journal and the balance of a wallet."""
    first, last = sorted([stack.source, stack.target])
    journal = sorted(key for key in stack.table.items if key.sk.startswith(ENTRY))

    def transfer() -> None:
        stack.ledger.post(Posting("n-3", 5, last, first))

    def deposit() -> None:
        stack.ledger.post(Posting("n-4", 7, first))

    stack.during[wallets.wallet(first)] = transfer
    stack.during[next(key for key in journal if key.pk == wallets.PARTITION + first)] = deposit
    assert stack.check() == SOUND
    assert stack.pauses == []


def test_a_wallet_that_is_opened_during_the_scan_is_no_error(stack: Stack) -> None:
    """The scan is past its user's item by then, and finds the wallet."""

    def open_wallet() -> None:
        wallet = wallets.open_wallet(stack.table, "u-3", 1).wallet_id
        stack.ledger.post(Posting("n-5", 9, wallet))

    stack.during[key_of(DAY)] = open_wallet
    assert stack.check() == [SOUND[0], "ok: wallets: each balance equals its journal (3 wallets)"]


def test_a_posting_while_a_wallet_is_read_again_is_no_error(stack: Stack) -> None:
    """A deposit comes before each read, so between a wallet and its journal too."""
    nonces = (f"later-{number}" for number in count())
    entry = stack.expire(stack.target)
    stack.after_pause = lambda: stack.put_in_archive(entry)

    def deposit() -> None:
        stack.ledger.post(Posting(next(nonces), 7, stack.target))

    found = stack.check(deposit)
    assert found[-1] == SOUND[1]
    assert stack.pauses == [PAUSE]


def test_entries_on_their_way_to_the_archive_are_waited_for(stack: Stack) -> None:
    stack.move_to_archive(stack.source)
    entry = stack.expire(stack.target)

    def arrive() -> None:
        if len(stack.pauses) == 3:
            stack.put_in_archive(entry)

    stack.after_pause = arrive
    assert stack.check() == [
        SOUND[0],
        "note: entries of 1 balance are on their way to the archive",
        SOUND[1],
    ]
    assert stack.pauses == [PAUSE] * 3
    assert len(stack.opened) == len(set(stack.opened)) == 2


def test_an_entry_that_never_arrives_is_an_error(stack: Stack) -> None:
    stack.expire(stack.target)
    assert stack.check()[-1] == (
        f"wrong: the wallet {stack.target} has 200, but its journal adds up to 0"
    )
    assert stack.pauses == [PAUSE] * PAUSES


def test_a_wrong_balance_and_a_missing_nonce_are_errors(stack: Stack) -> None:
    wallet = stack.table.get(wallets.wallet(stack.target))
    assert wallet is not None
    stack.table.write(Put({**wallet, "balance": 0}))
    stack.table.remove(Key(wallets.PARTITION + stack.source, "NONCE#n-1"))
    said = [line for line in stack.check() if line.startswith("wrong")]
    assert said[0].startswith("wrong: the entry ")
    assert said[0].endswith(" differs from its nonce n-1")
    assert said[1:] == [f"wrong: the wallet {stack.target} has 0, but its journal adds up to 200"]


def test_entries_that_a_restore_has_undone_are_ignored(stack: Stack) -> None:
    [entry] = stack.table.query(f"WALLET#{stack.target}", limit=1, first=ENTRY, last="TX~")
    stack.put_in_archive({**entry, "SK": f"{ENTRY}7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "nonce": "n-3"})
    assert stack.check() == SOUND


def test_without_an_archive_balances_can_not_be_compared(stack: Stack) -> None:
    stack.has_archive = False
    assert stack.check() == SOUND
    stack.expire(stack.target)
    said = "note: 1 balance can't be compared with the journals: there is no archive"
    assert stack.check()[-1].startswith(said)


def test_a_damaged_object_is_an_error(stack: Stack) -> None:
    stack.archive["journal/2027/01/15/x.jsonl.gz"] = b"no gzip"
    assert "wrong: journal/2027/01/15/x.jsonl.gz can't be read" in stack.check()[1]
