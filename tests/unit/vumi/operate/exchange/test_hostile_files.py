"""The import of a file of an attacker: it writes items under its own ids alone, or is refused."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chalicelib.counting import badge_count
from chalicelib.events.event import Status, batch
from chalicelib.http.messages import Caller, Role
from chalicelib.storage.items import Item, text
from chalicelib.storage.ports import Table
from chalicelib.wallets.wallet import OWNERS
from simulation.clocks import NOON, Clock
from simulation.exchange_world import ENGINES, outcomes, restore
from simulation.installation import MemoryInstallation
from simulation.queues import FakeQueue
from simulation.tables import FaultyTable, once
from simulation.views import AT_NOON, put_summary, ulid
from tests.profile import cases
from vumi.errors import ReportedError
from vumi.operate.admin.counts_file import ImportedCount
from vumi.operate.admin.importing import Import
from vumi.operate.exchange import files, formats
from vumi.operate.exchange.files import MAX_LINE_BYTES, MAX_RATIO, ExportFileError
from vumi.operate.exchange.formats import ATTRIBUTES, KINDS
from vumi.operate.exchange.restoring import Restored, RestoreOutcome
from vumi.tokens import StoredToken, TokenStore

Line = dict[str, Any]
DIGEST = "0" * 64
WALLET = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
TOKEN = StoredToken(DIGEST, "planted", Caller(Role.OPERATOR), 1)
TOKEN_LINE: Line = formats.TOKEN.to_line(TOKEN.item)
EVENT: Line = {
    "type": "event",
    "id": "e",
    "at": AT_NOON,
    "created": AT_NOON,
    "kind": "log",
    "payload": "1",
    "request": "0",
    "status": "ACTIVE",
    "next_at": AT_NOON,
    "batch": batch(Status.ACTIVE, "e"),
    "due": AT_NOON,
}
LINES: list[Line] = [
    {"type": "badge", "id": "a", "count": 1, "version": 1},
    {"type": "owner", "id": "a", "digest": DIGEST, "names": ["b"]},
    {"type": "milestones", "id": "a", "owner": DIGEST, "milestones": []},
    {"type": "day", "id": "a", "day": "2026-03-13", "views": 1, "h00": 1},
    {"type": "view", "id": "a", "view": ulid(AT_NOON, 1)},
    {"type": "badge", "id": "b", "alias": "a", "version": 1},
    EVENT,
    TOKEN_LINE,
    {"type": "wallet", "id": WALLET, "user": "u", "balance": 1, "last": "", "created": 1},
    {"type": "nonce", "wallet": WALLET, "nonce": "n", "entry": WALLET, "request": DIGEST}
    | {"at": 1, "outcome": "done"},
    {"type": "entry", "wallet": WALLET, "entry": WALLET, "kind": "deposit", "nonce": "n"}
    | {"amount": 1, "to": WALLET, "from": "", "at": 1, "ttl": 1},
    {"type": "queued event", "queue": "mails", "body": "x"},
    {"type": "object", "name": "journal/2026/03/13/1-a.jsonl.gz", "text": "{}\n"},
]
"""A line of each type, in an order in which all are imported."""
NAMES = sorted(
    {"PK", "SK", "batch", "due", "ttl", "type", "name", "text", "queue", "body", "later"}
    | {name for kind in KINDS.values() for name in kind.names}
    | {name for names in ATTRIBUTES.values() for name in names.split()}
)
VALUES = st.one_of(
    st.sampled_from([f"TOKEN#{DIGEST}", "TOKEN", "WALLET", "ACTIVE#0", "../x", "a", "b", "\ud800"]),
    st.sampled_from([[], {}, [{"PK": "TOKEN"}], {"day": 1}, [None], None, True, 1.5]),
    st.sampled_from([0, 1, -1, 10**16, 10**38, 10**400, AT_NOON]),
    st.text(max_size=5),
)


def file_of(*lines: Line) -> bytes:
    """Return a complete export of lines, whose types may be anything."""
    return complete(*map(formats.encode, lines))


def complete(*lines: bytes) -> bytes:
    """Return a complete export of encoded lines."""
    header = formats.encode({"type": "header", "format": "vu-mi export", "version": 1})
    encoded = b"".join([header, *lines])
    digest = hashlib.sha256(encoded).hexdigest()
    return encoded + formats.encode({"type": "end", "counts": {}, "sha256": digest})


@st.composite
def hostile(draw: st.DrawFn) -> list[Line]:
    """Return lines of all types, of which one to three have other attributes."""
    lines = [dict(line) for line in LINES]
    for _ in range(draw(st.integers(1, 3))):
        line = draw(st.sampled_from(lines))
        own = ATTRIBUTES.get(str(line["type"]), "name text queue body").split()
        line[draw(st.sampled_from(NAMES) | st.sampled_from(own))] = draw(VALUES)
    return draw(st.permutations(lines)) if draw(st.booleans()) else lines


def own_partitions(lines: list[Line]) -> Iterator[str]:
    """Yield the partitions of the items that lines name, each by the id of its own type."""
    for line in lines:
        if kind := KINDS.get(str(line["type"])):
            yield f"{kind.partition}{line.get(kind.names[0])}"
        if line["type"] == "wallet":
            yield f"{OWNERS}{line['user']}"


def check_items(items: list[Item], lines: list[Line], *, tokens: bool) -> None:
    own = set(own_partitions(lines))
    for item in items:
        pk = text(item, "PK")
        assert pk in own or pk.partition("#")[0] == "WINDOW"
        assert tokens or not pk.startswith("TOKEN#")
        assert "batch" not in item or pk.startswith(("TIMER#", "TOKEN#"))


@pytest.mark.parametrize("engine", ["memory", "file"])
@settings(max_examples=cases(1_200))
@given(lines=hostile(), tokens=st.booleans())
@example(lines=[{"type": "badge", "id": "a", "PK": f"TOKEN#{DIGEST}", "SK": "TOKEN"}], tokens=False)
@example(lines=[{"type": "badge", "id": "a", "batch": "TOKEN", "due": 1}], tokens=False)
def test_an_import_writes_only_items_under_the_ids_of_its_lines(
    engine: str, lines: list[Line], *, tokens: bool
) -> None:
    with TemporaryDirectory() as folder, ENGINES[engine](Clock(NOON), Path(folder)) as other:
        other.event_queues = {"mails": FakeQueue()} if engine == "memory" else {}
        refusal = ""
        try:
            restore(other, file_of(*lines), tokens=tokens)
        except ReportedError as error:
            refusal = str(error)
        assert "line " in refusal or not refusal
        check_items(list(other.items()), lines, tokens=tokens)


def test_these_lines_are_imported_without_changes() -> None:
    other = MemoryInstallation(clock=Clock(NOON), event_queues={"mails": FakeQueue()})
    assert outcomes(restore(other, file_of(*LINES))) == {RestoreOutcome.IMPORTED}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["type"])
def test_an_unknown_attribute_is_refused_with_the_known_ones(line: Line) -> None:
    before = list(itertools.takewhile(lambda one: one is not line, LINES))
    other = MemoryInstallation(clock=Clock(NOON), event_queues={"mails": FakeQueue()})
    with pytest.raises(ReportedError, match=f"line {len(before) + 2} ") as refused:
        restore(other, file_of(*before, {**line, "later": 1}))
    assert ATTRIBUTES.get(line["type"], " and no other field")[-9:] in str(refused.value)


def test_a_line_without_a_text_as_its_type_is_refused() -> None:
    with pytest.raises(ReportedError, match="line 2 can't be imported: it is not a JSON object"):
        restore(MemoryInstallation(), file_of({**EVENT, "type": ["event"]}))


@pytest.mark.parametrize("depth", [40, 400, *range(900, 1_000, 7), 100_000])
def test_a_deep_line_is_refused(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    line = b'{"type":"badge","id":"a","today":{"x":' + deep + b"}}\n"
    with pytest.raises(ReportedError, match="line 2 can't be imported"):
        restore(MemoryInstallation(), complete(line))


@pytest.mark.parametrize(
    "line",
    [
        {**LINES[-1], "text": "\ud800"},
        {"type": "badge", "id": "b", "alias": "a\ud800", "version": 1},
    ],
    ids=["text", "alias"],
)
def test_a_text_that_no_file_can_hold_is_refused(line: Line) -> None:
    with pytest.raises(ReportedError, match="line 2 can't be imported: "):
        restore(MemoryInstallation(), file_of(line))


def test_tokens_are_imported_only_if_they_are_asked_for() -> None:
    other = MemoryInstallation(clock=Clock(NOON))
    for dry_run in (True, False):
        left_out = restore(other, file_of(TOKEN_LINE), tokens=False, dry_run=dry_run)
        assert outcomes(left_out) == {RestoreOutcome.LEFT_OUT}
    assert TokenStore(other.memory, lambda: NOON).read_all() == []
    restore(other, file_of(TOKEN_LINE), tokens=True)
    assert TokenStore(other.memory, lambda: NOON).read_all() == [TOKEN]


def alias(one: str, other: str) -> Line:
    return {"type": "badge", "id": one, "alias": other, "version": 1}


@pytest.mark.parametrize("names", ["a", "ab", "ba", "abc", "cab", "bdca"])
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("engine", ["memory", "file"])
def test_a_cycle_of_aliases_is_refused(
    names: str, engine: str, tmp_path: Path, *, replace: bool
) -> None:
    lines = [alias(one, other) for one, other in itertools.pairwise(names + names[0])]

    def import_lines(*given: Line) -> list[Restored]:
        return restore(other, file_of(*given), replace=replace)

    with ENGINES[engine](Clock(NOON), tmp_path) as other:
        restored = [one for line in lines for one in import_lines(line)]
        restored += import_lines(*lines)
        kept = [one for one in restored if one.outcome is RestoreOutcome.KEPT]
        assert "is an alias itself" in kept[0].reason
        found = {text(item, "PK")[5:]: text(item, "alias") for item in other.items()}
    for name in names:
        passed = [name]
        while following := found.get(passed[-1]):
            assert following not in passed
            passed.append(following)


class Racing(MemoryInstallation):
    """An installation in which another process writes before the first write."""

    faulty: Table

    @property
    def table(self) -> Table:
        return self.faulty


def test_a_cycle_that_another_process_closes_meanwhile_is_refused() -> None:
    other = MemoryInstallation(clock=Clock(NOON))
    close = once(lambda: put_summary(other.memory, "b", alias="a"))
    racing = Racing(other.memory, clock=other.clock)
    racing.faulty = FaultyTable(other.memory, before_write=close)
    [kept] = restore(racing, file_of(alias("a", "b")))
    assert kept.reason == "its alias b is an alias itself"
    assert len(other.memory.items) == 1


def test_a_cycle_that_is_in_a_table_is_followed_once() -> None:
    other = MemoryInstallation(clock=Clock(NOON))
    put_summary(other.memory, "a", alias="b", base=3)
    put_summary(other.memory, "b", alias="a", base=4)
    assert badge_count.read(other.memory, "a").shown == 4
    job = Import(other.memory, map, lambda: NOON)
    assert [result.before for result in job.run([ImportedCount(1, "b", 5)])] == [3]


@pytest.mark.parametrize("name", ["export.jsonl", "export.jsonl.gz"])
def test_an_export_follows_no_link_and_is_for_its_owner_alone(name: str, tmp_path: Path) -> None:
    precious, file = tmp_path / "precious", tmp_path / name
    precious.write_text("mine")
    (tmp_path / f"{name}.part").symlink_to(precious)
    before = os.umask(0)
    try:
        with files.create(str(file)) as opened:
            opened.write(b"digests")
            [unfinished] = set(tmp_path.glob(f"{name}.*.part"))
            modes = [stat.S_IMODE(unfinished.stat().st_mode)]
    finally:
        os.umask(before)
    assert [*modes, stat.S_IMODE(file.stat().st_mode)] == [0o600, 0o600]
    assert precious.read_text() == "mine"
    assert not file.is_symlink()


def importing(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with files.open_input(str(path)) as opened:
        list(files.read(str(path), opened).lines())


@pytest.mark.parametrize("content", [b"a", b"{}\n", b"\n"])
def test_a_file_that_becomes_much_larger_is_refused_in_words(
    content: bytes, tmp_path: Path
) -> None:
    bomb = gzip.compress(content * (2**24 // len(content)), 9)
    with pytest.raises(ExportFileError, match=f"over {MAX_RATIO} times as large"):
        importing(bomb, tmp_path / "bomb")


def test_a_line_of_any_length_needs_bounded_memory(tmp_path: Path) -> None:
    """The file has no blocks on the disk, and is larger than the memory of small machines."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(b'{"type":"header"')
        file.truncate(2**33)
    with (
        files.open_input(str(path)) as opened,
        pytest.raises(ExportFileError, match=f"line 1 has more than {MAX_LINE_BYTES} bytes"),
    ):
        files.read(str(path), opened)


def test_a_damaged_file_is_refused_in_words(tmp_path: Path) -> None:
    zipped = gzip.compress(file_of(*LINES))
    for wrong in (zipped[:-9], zipped[:40] + b"x" + zipped[41:]):
        with pytest.raises(ExportFileError, match="can't be read"):
            importing(wrong, tmp_path / "damaged")
