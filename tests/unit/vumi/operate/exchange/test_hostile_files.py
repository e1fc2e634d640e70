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
from chalicelib.wallets.wallet import OWNERS
from simulation.clocks import NOON, Clock
from simulation.exchange_world import ENGINES, outcomes, restore
from simulation.installation import MemoryInstallation
from simulation.storage import FakeQueue, FaultyTable, once
from simulation.views import AT_NOON, put_summary, ulid
from tests.profile import cases
from vumi.errors import ReportedError
from vumi.operate import kinds
from vumi.operate.admin.counts import Import, ImportedCount
from vumi.operate.exchange import files
from vumi.operate.exchange.files import MAX_LINE_BYTES, MAX_RATIO
from vumi.operate.exchange.restoring import RestoreOutcome
from vumi.operate.kinds import MOVING
from vumi.tokens import StoredToken

Line = dict[str, Any]
DIGEST = "0" * 64
WALLET = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
TOKEN = StoredToken(DIGEST, "planted", Caller(Role.OPERATOR), 1)
TOKEN_LINE: Line = kinds.TOKEN.to_line(TOKEN.item)
BADGE_LINE: Line = {"type": "badge", "id": "a", "count": 1, "version": 1}
OBJECT: Line = {"type": "object", "name": "journal/2026/03/13/1-a.jsonl.gz", "text": "{}\n"}
EVENT: Line = {
    "type": "event",
    "id": "e",
    "at": AT_NOON,
    "created": AT_NOON,
    "kind": "log",
    "address": "",
    "payload": "1",
    "request": "0",
    "status": "ACTIVE",
    "next_at": AT_NOON,
    "batch": batch(Status.ACTIVE, "e"),
    "due": AT_NOON,
}
WALLET_LINE: Line = {
    "type": "wallet",
    "id": WALLET,
    "user": "u",
    "balance": 1,
    "last": "",
    "created": 1,
}
LINES: list[Line] = [
    BADGE_LINE,
    {"type": "owner", "id": "a", "digest": DIGEST, "names": ["b"]},
    {"type": "milestones", "id": "a", "owner": DIGEST, "milestones": []},
    {"type": "day", "id": "a", "day": "2026-03-13", "views": 1, "h00": 1},
    {"type": "traffic", "id": "a", "month": "2026-03", "days": {"2026-03-14": {"views": 1}}},
    {"type": "view", "id": "a", "view": ulid(AT_NOON, 1)},
    {"type": "badge", "id": "b", "alias": "a", "version": 1},
    {"type": "ban", "pattern": "a#b*", "reason": "", "by": "x", "at": 1},
    EVENT,
    TOKEN_LINE,
    WALLET_LINE,
    {"type": "nonce", "wallet": WALLET, "nonce": "n", "entry": WALLET, "request": DIGEST}
    | {"at": 1, "outcome": "done"},
    {"type": "entry", "wallet": WALLET, "entry": WALLET, "kind": "deposit", "nonce": "n"}
    | {"amount": 1, "to": WALLET, "from": "", "at": 1, "ttl": 1},
    {"type": "queued event", "queue": "mails", "body": "x"},
    OBJECT,
]
"""A line of each type, in an order in which all are imported."""
NAMES = sorted(
    {"PK", "SK", "batch", "due", "ttl", "type", "name", "text", "queue", "body", "later"}
    | {name for kind in MOVING.values() for name in (*kind.names, *kind.attributes.split())}
)
VALUES = st.one_of(
    st.sampled_from([f"TOKEN#{DIGEST}", "TOKEN", "WALLET", "ACTIVE#0", "../x", "a", "b", "\ud800"]),
    st.sampled_from([[], {}, [{"PK": "TOKEN"}], {"day": 1}, [None], None, True, 1.5]),
    st.sampled_from([0, 1, -1, 10**16, 10**38, 10**400, AT_NOON]),
    st.text(max_size=5),
)


def file_of(*lines: Line | bytes, version: object = 1) -> bytes:
    """Return a complete export of lines, which may be anything."""
    header = {"type": "header", "format": "vu-mi export", "version": version}
    given = (header, *lines)
    encoded = b"".join(one if isinstance(one, bytes) else files.encode(one) for one in given)
    digest = hashlib.sha256(encoded).hexdigest()
    return encoded + files.encode({"type": "end", "counts": {}, "sha256": digest})


def empty() -> MemoryInstallation:
    return MemoryInstallation(clock=Clock(NOON), event_queues={"mails": FakeQueue()})


@st.composite
def hostile(draw: st.DrawFn) -> list[Line]:
    """Return lines of all types, of which one to three have other attributes."""
    lines = [dict(line) for line in LINES]
    for _ in range(draw(st.integers(1, 3))):
        line = draw(st.sampled_from(lines))
        kind = MOVING.get(str(line["type"]))
        own = (kind.attributes if kind else "name text queue body").split()
        line[draw(st.sampled_from(NAMES) | st.sampled_from(own))] = draw(VALUES)
    return draw(st.permutations(lines)) if draw(st.booleans()) else lines


def own_partitions(lines: list[Line]) -> Iterator[str]:
    """Yield the partitions of the items that lines name, each by the id of its own type."""
    for line in lines:
        if kind := MOVING.get(str(line["type"])):
            yield kind.partition + ("" if kind.is_alone else str(line.get(kind.names[0])))
        if line["type"] == "wallet":
            yield f"{OWNERS}{line['user']}"


def check_items(items: list[Item], lines: list[Line], *, tokens: bool) -> None:
    own = set(own_partitions(lines))
    for item in items:
        pk = text(item, "PK")
        assert pk in own or pk.partition("#")[0] in {"KEY", "WINDOW"}
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
    assert outcomes(restore(empty(), file_of(*LINES))) == {RestoreOutcome.IMPORTED}


def test_an_item_of_each_kind_survives_its_line() -> None:
    lines = [line for line in LINES if line["type"] in MOVING]
    assert {line["type"] for line in lines} == {*MOVING}
    for line in lines:
        kind, item = kinds.item_of(line)
        assert kinds.kind_of(item) is kind
        assert files.decode(files.encode(kind.to_line(item))) == line
    with pytest.raises(ReportedError, match="the badge a has 'id'; known: alias base"):
        MOVING["badge"].to_line({"PK": "USER#a", "SK": "VIEWS", "id": "b"})


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["type"])
def test_an_unknown_attribute_is_refused_with_the_known_ones(line: Line) -> None:
    before = list(itertools.takewhile(lambda one: one is not line, LINES))
    with pytest.raises(ReportedError, match=f"line {len(before) + 2} ") as refused:
        restore(empty(), file_of(*before, {**line, "later": 1}))
    kind = MOVING.get(line["type"])
    assert (kind.attributes if kind else " and no other field")[-9:] in str(refused.value)


def deep(depth: int) -> bytes:
    value = b"[" * depth + b"]" * depth
    return b'{"type":"badge","id":"a","today":{"x":' + value + b"}}\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"type": "later"}, "its type 'later' is unknown; use a newer"),
        ({**EVENT, "type": ["event"]}, "it is not a JSON object"),
        ({"type": "badge"}, "a badge needs the texts id"),
        ({**BADGE_LINE, "count": -1}, "its count is -1; it must be 0 or more"),
        ({**BADGE_LINE, "count": "1"}, "count is '1', expected a whole number"),
        ({**BADGE_LINE, "count": 1.5}, "its number 1.5 is not whole"),
        ({**BADGE_LINE, "base": [None]}, "a table holds str, int"),
        ({**BADGE_LINE, "alias": "a\ud800"}, "surrogates not allowed"),
        ({**WALLET_LINE, "user": "\ud800"}, "surrogates not allowed"),
        ({**OBJECT, "text": "\ud800"}, "surrogates not allowed"),
        ({"type": "object", "name": "a"}, "it needs the texts name and text"),
        *((deep(depth), "") for depth in (40, 400, *range(900, 1_000, 7), 100_000)),
    ],
)
def test_a_wrong_line_is_refused_with_its_reason(line: Line | bytes, reason: str) -> None:
    other = empty()
    with pytest.raises(ReportedError, match="line 2 can't be imported: ") as refused:
        restore(other, file_of(line))
    assert reason in str(refused.value)
    assert other.memory.items == {}


def alias(one: str, other: str) -> Line:
    return {"type": "badge", "id": one, "alias": other, "version": 1}


@pytest.mark.parametrize("names", ["a", "ab", "ba", "abc", "cab", "bdca"])
@pytest.mark.parametrize("engine", ["memory", "file"])
def test_a_cycle_of_aliases_is_refused(names: str, engine: str, tmp_path: Path) -> None:
    lines = [alias(one, other) for one, other in itertools.pairwise(names + names[0])]
    with ENGINES[engine](Clock(NOON), tmp_path) as other:
        restored = [one for line in lines for one in restore(other, file_of(line))]
        restored += restore(other, file_of(*lines))
        kept = [one for one in restored if one.outcome is RestoreOutcome.KEPT]
        assert "is an alias itself" in kept[0].reason
        found = {text(item, "PK")[5:]: text(item, "alias") for item in other.items()}
    for name in names:
        passed = [name]
        while following := found.get(passed[-1]):
            assert following not in passed
            passed.append(following)


def test_a_cycle_that_another_process_closes_meanwhile_is_refused() -> None:
    other = empty()
    other.faulty = FaultyTable(
        other.memory, before_write=once(lambda: put_summary(other.memory, "b", alias="a"))
    )
    [kept] = restore(other, file_of(alias("a", "b")))
    assert kept.reason == "its alias b is an alias itself"
    assert len(other.memory.items) == 1


def test_a_cycle_that_is_in_a_table_is_followed_once() -> None:
    other = empty()
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


WHOLE = gzip.compress(file_of(*LINES))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        *((gzip.compress(one * (2**24 // len(one)), 9), "bomb") for one in (b"a", b"{}\n", b"\n")),
        (WHOLE[:-9], "can't be read"),
        (WHOLE[:40] + b"x" + WHOLE[41:], "can't be read"),
    ],
    ids=["a", "objects", "lines", "cut", "damaged"],
)
def test_a_bomb_or_a_damaged_file_is_refused_in_words(
    content: bytes, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    says = f"over {MAX_RATIO} times as large" if reason == "bomb" else reason
    with pytest.raises(ReportedError, match=says), files.open_input(str(path)) as opened:
        list(files.read(str(path), opened).lines())


def test_a_line_of_any_length_needs_bounded_memory(tmp_path: Path) -> None:
    """The file has no blocks on the disk, and is larger than the memory of small machines."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(b'{"type":"header"')
        file.truncate(2**33)
    with (
        files.open_input(str(path)) as opened,
        pytest.raises(ReportedError, match=f"line 1 has more than {MAX_LINE_BYTES} bytes"),
    ):
        files.read(str(path), opened)
