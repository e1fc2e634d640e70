"""Wallets and whatever can happen to who moves their money: calls that fail, answers that are lost.

The plain modules over a table of which any call may fail. A client that gets no answer asks again
or never; others ask in the midst of it; TTL takes entries of the journals one by one, in any order,
and what it took is looked for in the archive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from chalicelib.ports import Delete, Item, Key, Table, key_of, text
from chalicelib.wallets import journal, opening
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.amounts import MOST
from chalicelib.wallets.moving import (
    MovementError,
    Mover,
    NonceReusedError,
    RefusedError,
    SameWalletError,
    UnknownWalletError,
)
from chalicelib.wallets.wallet import Entry, Kind, Movement, Outcome, asked, received
from tests.laws.archive_world import ArchiveWorld
from tests.laws.faults import Fault, Faults, Faulty, FaultyTable

START = 1_800_000_000.0
NOBODY = "7" * 26
"""What could be a wallet's id and is none's."""
EVERYTHING = 100_000

Answer: TypeAlias = Entry | type[MovementError]


def answer_of(mover: Mover, movement: Movement) -> Answer:
    """What comes of asking. Raises `StorageError` where nothing was answered."""
    try:
        return mover.move(movement)
    except RefusedError as refused:
        return refused.entry
    except MovementError as error:
        return type(error)


@dataclass(frozen=True)
class Books:
    """The balances, and each entry that a journal ever had, with its wallet: hot or archived."""

    balances: dict[str, int]
    entries: set[tuple[str, Entry]]

    @classmethod
    def of(
        cls,
        table: Table,
        wallet_ids: Collection[str],
        archived: Iterable[tuple[str, Entry]] = (),
    ) -> Books:
        """As they stand, while nobody moves anything."""
        balances = {one: opening.read(table, one).balance for one in wallet_ids}
        hot = {(one, Entry.of(item)) for one in wallet_ids for item in _journal(table, one)}
        return cls(balances, hot | set(archived))

    def check(self) -> None:
        """The laws that hold at any moment."""
        copies: defaultdict[str, list[str]] = defaultdict(list)
        moved: defaultdict[str, int] = defaultdict(int)
        for wallet_id, entry in self.entries:
            copies[entry.entry_id].append(wallet_id)
            if entry.outcome is Outcome.DONE:
                gives = wallet_id == entry.movement.source
                moved[wallet_id] += -entry.movement.amount if gives else entry.movement.amount
        for wallet_id, balance in self.balances.items():
            assert 0 <= balance <= MOST
            assert balance == moved[wallet_id], f"{wallet_id} has not what moved"
        for _, entry in self.entries:
            assert sorted(copies[entry.entry_id]) == sorted(_holders(entry))
        assert sum(self.balances.values()) == self.deposited

    @property
    def deposited(self) -> int:
        """The sum of all deposits that were done."""
        done = [entry for _, entry in self.entries if entry.outcome is Outcome.DONE]
        return sum(e.movement.amount for e in done if e.movement.kind is Kind.DEPOSIT)

    def check_told(self, told: Sequence[Entry]) -> None:
        """What was answered is so, in every journal that it belongs to."""
        for entry in told:
            assert all((wallet_id, entry) in self.entries for wallet_id in _holders(entry))

    def check_asked(self, movements: Collection[Movement]) -> None:
        """Nothing moved that nobody asked for."""
        assert {entry.movement for _, entry in self.entries} <= set(movements)


def _journal(table: Table, wallet_id: str) -> list[Item]:
    """What lies beside a wallet in its partition."""
    found = table.query(wallets.PARTITION + wallet_id, limit=EVERYTHING)
    return [item for item in found if item["SK"] != wallets.SORT]


def _holders(entry: Entry) -> list[str]:
    """Whose journals have it: a refusal is the affair of who asked."""
    movement = entry.movement
    if entry.outcome is Outcome.DONE and movement.source:
        return [movement.source, movement.target]
    return [movement.asker]


class WalletsWorld:
    """The state of it all, and what was answered to whom."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.faults = Faults()
        self.now = START
        self.users: set[str] = set()
        self.movements: list[Movement] = []
        self.told: list[Entry] = []
        self.first: dict[Key, Entry] = {}
        self.archive = ArchiveWorld()
        self._faulty = FaultyTable(table, self.faults, lambda _: None)
        self._mover = Mover(self._faulty, lambda: self.now)

    def open(self, user: str, faults: Sequence[Fault] = ()) -> None:
        """Somebody opens a wallet for a user, maybe not for the first time."""
        self.users.add(user)
        with Faulty(self.faults, faults):
            try:
                opened = opening.open_wallet(self._faulty, user, int(self.now * 1000)).wallet_id
            except opening.HasWalletError as has:
                opened = has.wallet_id
            assert opening.of_user(self.table, user).wallet_id == opened

    @property
    def wallet_ids(self) -> list[str]:
        """Of all users who have one."""
        owned = [self.table.get(wallets.owner(user)) for user in sorted(self.users)]
        return [text(item, "wallet") for item in owned if item]

    def ask(self, movement: Movement, faults: Sequence[Fault] = ()) -> None:
        """Somebody asks for a movement; without a fault it is known what must be answered."""
        self.movements.append(movement)
        expected = self._expected(movement)
        with Faulty(self.faults, faults):
            answer = answer_of(self._mover, movement)
            if not faults:
                assert _as_expected(answer, expected)
            self._note(movement, answer)

    def ask_again(self, which: int, faults: Sequence[Fault] = ()) -> None:
        """The same request once more, whatever became of the first."""
        if self.movements:
            self.ask(self.movements[which % len(self.movements)], faults)

    def _note(self, movement: Movement, answer: Answer) -> None:
        first = self.first.get(asked(movement))
        if isinstance(answer, Entry):
            assert answer.movement == movement
            assert first in (None, answer), "a nonce was answered in two ways"
            # Where who asked has it no more, the other one's copy answered: the nonce may be new.
            if self.table.get(asked(movement)):
                self.first[asked(movement)] = answer
            self.told.append(answer)
        elif answer is UnknownWalletError:
            assert NOBODY in (movement.source, movement.target)
            assert first is None
        elif answer is NonceReusedError:
            assert first is None or first.movement != movement

    def _expected(self, movement: Movement) -> Answer | Outcome:
        """By what the table has: as it was the first time, or as the balances allow it now."""
        if movement.source == movement.target:
            return SameWalletError
        for key in (asked(movement), received(movement)):
            if item := self.table.get(key):
                entry = Entry.of(item)
                return entry if entry.movement == movement else NonceReusedError
        if NOBODY in (movement.source, movement.target):
            return UnknownWalletError
        if movement.source and self.balance(movement.source) < movement.amount:
            return Outcome.INSUFFICIENT_FUNDS
        if self.balance(movement.target) + movement.amount > MOST:
            return Outcome.BALANCE_LIMIT
        return Outcome.DONE

    def balance(self, wallet_id: str) -> int:
        """What a wallet has."""
        return opening.read(self.table, wallet_id).balance

    def expire(self, which: int) -> None:
        """TTL takes one entry of one journal; its nonce may be new from then on."""
        ids = ["", *self.wallet_ids]
        items = [item for wallet_id in ids[1:] for item in _journal(self.table, wallet_id)]
        if items:
            # In an order that does not depend on ids, which are others each time.
            items.sort(key=lambda one: [text(one, "nonce"), *_places(ids, one)])
            item = items[which % len(items)]
            self.table.write(Delete(key_of(item)))
            self.archive.remove(item)
            self.first.pop(asked(Entry.of(item).movement), None)

    def check(self) -> None:
        """The laws that hold at any moment."""
        books = Books.of(self.table, self.wallet_ids, self.archive.entries())
        books.check()
        books.check_told(self.told)
        books.check_asked(self.movements)

    def end(self) -> None:
        """Nothing fails any more: all who were not answered ask again, and all others too."""
        for user in sorted(self.users):
            self.open(user)
        for movement in dict.fromkeys(self.movements):
            self.ask(movement)
        self.archive.deliver_all()
        self.check()
        for wallet_id in self.wallet_ids:
            self._check_journal(wallet_id)

    def _check_journal(self, wallet_id: str) -> None:
        """Page by page it is what moved, newest first."""
        entries = map(Entry.of, _journal(self.table, wallet_id))
        done = {entry for entry in entries if entry.outcome is Outcome.DONE}
        page = journal.read(self.table, wallet_id)
        listed = page.entries
        while page.cursor:
            page = journal.read(self.table, wallet_id, page.cursor)
            listed += page.entries
        assert listed == sorted(done, key=lambda entry: entry.entry_id, reverse=True)


def _places(ids: Sequence[str], item: Item) -> list[int]:
    """Whose journal it is in, and who gave."""
    return [
        ids.index(text(item, "PK").removeprefix(wallets.PARTITION)),
        ids.index(text(item, "from")),
    ]


def _as_expected(answer: Answer, expected: Answer | Outcome) -> bool:
    if isinstance(expected, Outcome):
        return isinstance(answer, Entry) and answer.outcome is expected
    return answer == expected
