"""Wallets with all faults: calls that fail, answers that are lost.

The modules of wallets run over a table of which any call may fail. A client that gets no answer
asks again, perhaps after days, or never. Meanwhile others ask processes whose clocks differ by
100 s, or read a journal page by page. TTL removes entries one by one, in any order; the archive
must then have them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any, TypeAlias

from chalicelib.aws import resources
from chalicelib.aws.consumers import archive_entries
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Item, Key, key_of, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Delete
from chalicelib.ulids import milliseconds
from chalicelib.units import Seconds, to_milliseconds
from chalicelib.wallets import ledger
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.ledger import Ledger, NonceReusedError, RefusedError, SameWalletError
from chalicelib.wallets.wallet import (
    MAX_BALANCE,
    Entry,
    Posting,
    PostingError,
    PostingKind,
    PostingOutcome,
    PostingResult,
    UnknownWalletError,
    nonce,
)
from simulation import aws_events as events
from simulation.aws_events import entry_record
from simulation.faults import Crash, Fault, Faults, FaultyTable, under
from simulation.resources import GivenResources
from simulation.storage import FakeArchive

START: Seconds = 1_800_000_000.0
NOBODY = "7" * 26
"""A valid id that no wallet has."""
EVERYTHING = 100_000
AHEAD_SECONDS = 50
CLOCKS: tuple[Seconds, ...] = (-AHEAD_SECONDS, 0, AHEAD_SECONDS)
"""The time by which the clock of each process is ahead."""
PAGE = 2

ClientAnswer: TypeAlias = PostingResult | type[PostingError]


def answer_of(ledger: Ledger, posting: Posting) -> ClientAnswer:
    """Return the answer to a posting. Raises `StorageError` if there is none."""
    try:
        return PostingResult(ledger.post(posting))
    except RefusedError as refused:
        return refused.result
    except PostingError as error:
        return type(error)


@dataclass(frozen=True)
class Books:
    """The balances, the nonces, and every entry that a journal has had, with its wallet."""

    balances: dict[str, int]
    entries: set[tuple[str, Entry]]
    nonces: dict[Key, Item]

    @classmethod
    def of(
        cls,
        table: Table,
        wallet_ids: Collection[str],
        archived: Iterable[tuple[str, Entry]] = (),
    ) -> Books:
        """Read the present state, while nobody posts."""
        balances = {one: wallets.read(table, one).balance for one in wallet_ids}
        items = [item for one in wallet_ids for item in items_of(table, one)]
        hot = {(_wallet_of(one), Entry.of(one)) for one in items if _is_entry(one)}
        nonces = {key_of(one): one for one in items if text(one, "SK").startswith(wallets.NONCE)}
        return cls(balances, hot | set(archived), nonces)

    def check(self) -> None:
        """Check the laws that hold at any time."""
        copies: defaultdict[str, list[str]] = defaultdict(list)
        moved: defaultdict[str, int] = defaultdict(int)
        for wallet_id, entry in self.entries:
            copies[entry.entry_id].append(wallet_id)
            gives = wallet_id == entry.posting.source
            moved[wallet_id] += -entry.posting.amount if gives else entry.posting.amount
        for wallet_id, balance in self.balances.items():
            assert 0 <= balance <= MAX_BALANCE
            assert balance == moved[wallet_id], f"{wallet_id} has another balance than its entries"
        for entry in self.all_entries:
            assert sorted(copies[entry.entry_id]) == sorted(entry.posting.wallets)
            item = self.nonces.get(nonce(entry.posting), {})
            assert PostingResult.of(item, entry.posting) == PostingResult(entry), (
                "an entry has no nonce"
            )
        postings = [entry.posting for entry in self.all_entries]
        deposits = [one.amount for one in postings if one.kind is PostingKind.DEPOSIT]
        assert sum(self.balances.values()) == sum(deposits)
        times = Counter(map(nonce, postings))
        assert set(times.values()) <= {1}, "money moved twice under one nonce"

    @property
    def all_entries(self) -> set[Entry]:
        return {entry for _, entry in self.entries}

    def check_answers(self, answers: Sequence[PostingResult]) -> None:
        """Check that each posting that was done is in all its journals, a refused one in none."""
        ids = {entry.entry_id for entry in self.all_entries}
        for answer in answers:
            entry = answer.entry
            if answer.outcome is PostingOutcome.DONE:
                assert all((one, entry) in self.entries for one in entry.posting.wallets)
            else:
                assert entry.entry_id not in ids

    def check_asked(self, postings: Collection[Posting]) -> None:
        """Check that every entry is of a posting that a client asked for."""
        assert {entry.posting for entry in self.all_entries} <= set(postings)


def items_of(table: Table, wallet_id: str) -> list[Item]:
    """Return the other items in a wallet's partition."""
    found = table.query(wallets.PARTITION + wallet_id, limit=EVERYTHING)
    return [item for item in found if item["SK"] != wallets.SORT]


def entries_of(table: Table, wallet_id: str) -> list[Entry]:
    """Return the entries of a journal in the table, oldest first."""
    return [Entry.of(item) for item in items_of(table, wallet_id) if _is_entry(item)]


def _is_entry(item: Item) -> bool:
    return text(item, "SK").startswith(wallets.ENTRY)


def _wallet_of(item: Item) -> str:
    return text(item, "PK").removeprefix(wallets.PARTITION)


@dataclass
class Reader:
    """A client that reads the journal of a wallet from its newest entry to its end."""

    wallet_id: str
    seen: list[Entry] = field(default_factory=list)
    cursor: str = ""
    is_done: bool = False

    def read(self, table: Table) -> None:
        """Read the next page."""
        entries, self.cursor = ledger.read_journal(table, self.wallet_id, self.cursor, size=PAGE)
        self.seen += entries
        self.is_done = not self.cursor

    def read_all(self, table: Table) -> None:
        while not self.is_done:
            self.read(table)

    def check(self, entries: Iterable[Entry]) -> None:
        """Check that the client missed none of a journal's present entries, and read none twice."""
        if not self.seen:
            return
        ids = [entry.entry_id for entry in self.seen]
        assert all(newer > older for newer, older in pairwise(ids))
        newest, oldest = ids[0], "" if self.is_done else ids[-1]
        passed = {entry for entry in entries if oldest <= entry.entry_id <= newest}
        assert passed <= set(self.seen), "an entry was committed among those that were read"


class ArchiveWorld:
    """The entries removed from journals, the number reported as archived, and the archive."""

    def __init__(self) -> None:
        self.removed: list[tuple[str, Entry]] = []
        self._reported = 0
        self._faults = Faults()
        self._kept = FakeArchive()

    def put(self, name: str, body: bytes) -> None:
        """Put an object as an `Archive` does, and assert that it replaces no other object."""
        assert self._kept.objects.get(name, body) == body, f"{name} would be another object"
        self._faults.call(lambda: self._kept.put(name, body))

    def remove(self, item: Item) -> None:
        """Add an entry that was removed from the table to the stream."""
        self.removed.append((_wallet_of(item), Entry.of(item)))

    def deliver(self, size: int, faults: Sequence[Fault] = ()) -> None:
        """Deliver up to `size` entries to the consumer; entries that fail come again."""
        batch = [
            entry_record(entry, wallet_id, place)
            for place, (wallet_id, entry) in enumerate(self.removed, 1)
        ][self._reported :][:size]
        self._faults.plan(faults)
        resources.use(GivenResources(archive=self, clock=lambda: 0.0))
        try:
            answer = archive_entries(events.stream_event(batch), None)
        except (Crash, StorageError):
            assert faults, "nothing may fail without a fault"
        else:
            failed = [int(failure["itemIdentifier"]) for failure in answer["batchItemFailures"]]
            assert faults or not failed
            self._reported = min(failed) - 1 if failed else self._reported + len(batch)
        finally:
            resources.use(None)
            self._faults.plan([])

    def deliver_all(self) -> None:
        """Deliver the rest without a fault."""
        while self._reported < len(self.removed):
            self.deliver(len(self.removed))

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """Yield each entry in the archive or the stream with its wallet; some come twice."""
        yield from map(_read_line, self._kept.lines())
        yield from self.removed[self._reported :]


def _read_line(line: dict[str, Any]) -> tuple[str, Entry]:
    """Read a line of the archive using only the documented format."""
    at = datetime.fromisoformat(line["at"])
    posting = Posting(line["nonce"], int(line["amount"]), line["to"], line["from"])
    assert line["kind"] == str(posting.kind)
    return line["wallet"], Entry(line["id"], posting, round(at.timestamp() * 1000))


class WalletsWorld:
    """The state of all wallets, and the answers to their clients."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.faults = Faults()
        self.now = START
        self.users: set[str] = set()
        self.postings: list[Posting] = []
        self.answers: list[PostingResult] = []
        self.first: dict[Key, PostingResult] = {}
        self.archive = ArchiveWorld()
        self.readers: list[Reader] = []
        self._faulty = FaultyTable(table, self.faults)
        bits = Random(1).getrandbits  # noqa: S311  the same in each run
        self._ledgers = [Ledger(self._faulty, partial(self._clock, one), bits) for one in CLOCKS]

    def _clock(self, ahead: Seconds) -> Seconds:
        return self.now + ahead

    def open(self, user: str, faults: Sequence[Fault] = ()) -> None:
        """Open a wallet for a user, who may have one already."""
        self.users.add(user)
        with under(self.faults, faults):
            try:
                opened = wallets.open_wallet(
                    self._faulty, user, to_milliseconds(self.now)
                ).wallet_id
            except wallets.HasWalletError as has:
                opened = has.details["id"]
            assert wallets.of_user(self.table, user).wallet_id == opened

    @property
    def wallet_ids(self) -> list[str]:
        owned = [self.table.get(wallets.owner(user)) for user in sorted(self.users)]
        return [text(item, "wallet") for item in owned if item]

    def ask(self, posting: Posting, faults: Sequence[Fault] = (), process: int = 1) -> None:
        """Ask for a posting; without a fault, check the answer against the table."""
        self.postings.append(posting)
        expected = self._expected(posting)
        with under(self.faults, faults):
            answer = answer_of(self._ledgers[process], posting)
            if not faults:
                assert _matches(answer, expected)
            self._note(posting, answer)

    def ask_again(self, which: int, faults: Sequence[Fault] = (), process: int = 1) -> None:
        """Repeat a request, whether the first was applied or not."""
        if self.postings:
            self.ask(self.postings[which % len(self.postings)], faults, process)

    def _note(self, posting: Posting, answer: ClientAnswer) -> None:
        first = self.first.get(nonce(posting))
        if isinstance(answer, PostingResult):
            assert answer.entry.posting == posting
            assert first in (None, answer), "a nonce was answered in two ways"
            self.first[nonce(posting)] = answer
            self.answers.append(answer)
        elif answer is UnknownWalletError:
            assert NOBODY in (posting.source, posting.target)
            assert first is None
        elif answer is NonceReusedError:
            assert first is None or first.entry.posting != posting

    def _expected(self, posting: Posting) -> ClientAnswer | PostingOutcome:
        """Return the answer that the table implies: the first one, or by the present balances."""
        if posting.source == posting.target:
            return SameWalletError
        if item := self.table.get(nonce(posting)):
            return PostingResult.of(item, posting) or NonceReusedError
        if NOBODY in (posting.source, posting.target):
            return UnknownWalletError
        if posting.source and self.balance(posting.source) < posting.amount:
            return PostingOutcome.INSUFFICIENT_FUNDS
        if self.balance(posting.target) + posting.amount > MAX_BALANCE:
            return PostingOutcome.BALANCE_LIMIT
        return PostingOutcome.DONE

    def balance(self, wallet_id: str) -> int:
        return wallets.read(self.table, wallet_id).balance

    def read(self, place: int, *, goes_on: bool) -> None:
        """Read the next page of a journal, or its first."""
        wallet_id = self.wallet_ids[place % len(self.wallet_ids)]
        reader = Reader(wallet_id)
        if goes_on and (reading := [one for one in self.readers if not one.is_done]):
            reader = reading[place % len(reading)]
        else:
            self.readers.append(reader)
        reader.read(self.table)

    def expire(self, which: int) -> None:
        """Let TTL remove one item, in any order."""
        ids = ["", *self.wallet_ids]
        items = [item for wallet_id in ids[1:] for item in items_of(self.table, wallet_id)]
        if mortal := [item for item in items if "ttl" in item]:
            # Sort independently of ids, because ids differ in each run.
            mortal.sort(key=lambda one: [text(one, "nonce"), *_places(ids, one)])
            item = mortal[which % len(mortal)]
            self.now = max(self.now, number(item, "ttl") + 1)
            self.table.write(Delete(key_of(item)))
            if _is_entry(item):
                self.archive.remove(item)

    def check(self) -> None:
        """Check the laws that hold at any time."""
        books = Books.of(self.table, self.wallet_ids, self.archive.entries())
        books.check()
        books.check_answers(self.answers)
        books.check_asked(self.postings)
        for reader in self.readers:
            reader.check(entries_of(self.table, reader.wallet_id))
        for entry in books.all_entries:
            ahead = milliseconds(entry.entry_id) / 1000 - self.now
            assert ahead <= AHEAD_SECONDS + 0.001, "an id is ahead of every clock"

    def end(self) -> None:
        """End all faults, and repeat every request, answered or not."""
        for user in sorted(self.users):
            self.open(user)
        for posting in dict.fromkeys(self.postings):
            self.ask(posting)
        self.archive.deliver_all()
        for reader in self.readers:
            reader.read_all(self.table)
        self.check()
        for wallet_id in self.wallet_ids:
            reader = Reader(wallet_id)
            reader.read_all(self.table)
            assert reader.seen == entries_of(self.table, wallet_id)[::-1], "newest first"


def _places(ids: Sequence[str], item: Item) -> list[int]:
    """Return the places of the entry's wallet and of its source."""
    return [ids.index(_wallet_of(item)), ids.index(text(item, "from"))]


def _matches(answer: ClientAnswer, expected: ClientAnswer | PostingOutcome) -> bool:
    if isinstance(expected, PostingOutcome):
        return isinstance(answer, PostingResult) and answer.outcome is expected
    return answer == expected
