"""The id of a badge, the errors of others, and the bans as a function on AWS keeps them."""

from __future__ import annotations

import logging
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.counting import bans, ids
from chalicelib.counting.bans import MAX_BANS, READ_SECONDS, RETRY_SECONDS, Ban, TimedBans
from chalicelib.counting.ids import BadIdError, NotCountedError
from chalicelib.http.errors import BadRequestError
from chalicelib.settings import Settings
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.ports import Table
from simulation.clocks import NOON, Clock
from simulation.logs import logged_events
from simulation.resources import GivenResources
from simulation.storage import FaultyTable, MemoryTable


def parse(values: list[str]) -> str:
    return ids.IdOption({"id": values}).badge_id


LONGEST_MESSAGE = 80
"""The longest message that fits on a page."""


@pytest.mark.parametrize("badge_id", ["owner/name", 'a"quote', "VIEW#x", "日本", " ", "caf\u00e9"])
def test_any_text_is_an_id_in_its_composed_form(badge_id: str) -> None:
    assert parse([badge_id]) == badge_id
    assert parse([unicodedata.normalize("NFD", badge_id)]) == badge_id


@pytest.mark.parametrize(("one", "other"), [("\u00b2", "2"), ("\ufb01", "fi"), ("A", "a")])
def test_texts_that_only_look_alike_are_two_ids(one: str, other: str) -> None:
    assert parse([one]) != parse([other])


def test_a_missing_an_empty_and_a_repeated_id_have_different_errors() -> None:
    with pytest.raises(BadIdError, match="give an id"):
        parse([])
    with pytest.raises(BadIdError, match="is empty"):
        parse([""])
    with pytest.raises(BadRequestError, match="id: give one, not 2"):
        parse(["a", "b"])


def test_no_id_has_a_control_a_format_or_half_a_surrogate_character() -> None:
    characters = map(chr, range(sys.maxunicode + 1))
    refused = [one for one in characters if unicodedata.category(one) in {"Cc", "Cf", "Cs"}]
    assert {unicodedata.category(one) for one in refused} == {"Cc", "Cf", "Cs"}

    for character in refused:
        with pytest.raises(BadIdError, match=r"^the id has .*: leave it out$"):
            ids.normalise(f"a{character}")


@pytest.mark.parametrize(
    ("character", "most", "size"), [("a", 200, 201), ("\u00e9", 200, 402), ("\U0001f600", 100, 404)]
)
def test_an_id_has_at_most_200_characters_and_400_bytes(
    character: str, most: int, size: int
) -> None:
    assert parse([character * most]) == character * most
    message = f"the id has {most + 1} characters and {size} bytes: give at most 200 and 400"
    with pytest.raises(BadIdError, match=message):
        parse([character * (most + 1)])


def test_the_length_is_that_of_the_id_as_stored() -> None:
    # 201 characters shrink to 200 where the last two compose, 199 grow by 2 where one decomposes.
    assert len(parse(["a" * 199 + "e\u0301"])) == 200
    assert unicodedata.normalize("NFC", "\ufb2c") == "\u05e9\u05bc\u05c1"
    with pytest.raises(BadIdError, match="has 201 characters"):
        parse(["a" * 198 + "\ufb2c"])


def test_a_long_id_is_refused_before_it_is_normalised() -> None:
    """800 characters compose to 200 at most; 80,000 would take 15 s."""
    four = "\u03b1\u0313\u0300\u0345"
    assert parse([four * 133]) == "\u1f82" * 133
    for long in (four * 200 + "a", "a" + "\u0316\u0301" * 40_000, "\U0001f600" * 401):
        with pytest.raises(BadIdError, match=f"has {len(long)} characters and "):
            parse([long])


@pytest.mark.parametrize(("character", "named"), [("\u202e", "U+202E"), ("\u00ad", "U+00AD")])
def test_a_character_that_shows_nothing_is_refused_by_its_code_point(
    character: str, named: str
) -> None:
    """Otherwise two ids would look the same, or one like another."""
    with pytest.raises(BadIdError) as refusal:
        parse([f"octo{character}cat"])
    message = f"the id has {named}, a character that is not shown: leave it out"
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("patterns", "counted", "others"),
    [
        ("", ["any/thing", "*"], []),
        ("*", ["any/thing", "x"], []),
        ("octocat", ["octocat"], ["octocats", "Octocat", "an octocat", "octocat/x"]),
        (" owner/* ,other/name", ["owner/", "owner/a/b", "other/name"], ["owner", "other/names"]),
        ("*/docs", ["a/docs", "a/b/docs"], ["docs", "a/docs/b"]),
        ("a*b*c", ["abc", "a-b-b-c"], ["acb", "ab"]),
        ("[ab]?", ["[ab]?"], ["a?", "ab", "[ab]x"]),
        ("a*", ["a\u2028b"], ["ba"]),
        ("cafe\u0301/*", ["caf\u00e9/x"], []),
    ],
)
def test_the_operator_lists_the_ids_that_are_counted(
    patterns: str, counted: list[str], others: list[str]
) -> None:
    resources = GivenResources(settings=Settings.from_environment({"IDS": patterns}))
    for badge_id in counted:
        ids.check_counted(badge_id, resources)
    for badge_id in others:
        with pytest.raises(NotCountedError) as refusal:
            ids.check_counted(badge_id, resources)
        assert len(str(refusal.value)) <= LONGEST_MESSAGE


def test_a_pattern_of_many_stars_is_checked_without_trying_all_ways() -> None:
    pattern = "*a" * 50 + "*b"
    resources = GivenResources(settings=Settings.from_environment({"IDS": pattern}))
    with pytest.raises(NotCountedError):
        ids.check_counted("a" * 200, resources)


@given(st.text(st.characters(), max_size=210))
def test_an_id_is_refused_with_a_message_for_a_badge_or_stored_as_it_stays(raw: str) -> None:
    message = ""
    try:
        badge_id = ids.normalise(raw)
    except BadIdError as refusal:
        message = str(refusal)
    if message:
        assert len(message) <= LONGEST_MESSAGE
        return
    assert ids.normalise(badge_id) == badge_id
    assert 1 <= len(badge_id) <= 200
    assert badge_id.encode().decode() == badge_id


# ---- bans


def ban(table: Table, pattern: str) -> None:
    bans.put(table, Ban(pattern, "spam", "a test", 0))


class Reads:
    """A table that counts its reads, and may fail."""

    def __init__(self, table: Table) -> None:
        self.number, self.fails = 0, False
        self.table = FaultyTable(table, before_read=self._read)

    def _read(self, _: str) -> None:
        self.number += 1
        if self.fails:
            raise UnavailableError("no answer")


def test_a_function_reads_the_bans_once_a_minute() -> None:
    memory, clock = MemoryTable(), Clock(NOON)
    reads = Reads(memory)
    kept = TimedBans(lambda: reads.table, clock)
    assert not kept.cover("a/b")
    ban(memory, "a/*")
    for _ in range(5):
        assert not kept.cover("a/b")
    assert reads.number == 1
    clock.now += READ_SECONDS
    assert [kept.cover(one) for one in ("a/b", "b")] == [True, False]
    assert reads.number == 2
    assert bans.lift(memory, "a/*")
    assert kept.cover("a/b")
    kept.forget()
    assert not kept.cover("a/b")


def test_bans_hold_while_they_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    """And they are read again soon."""
    memory, clock = MemoryTable(), Clock(NOON)
    reads = Reads(memory)
    kept = TimedBans(lambda: reads.table, clock)
    ban(memory, "a")
    assert kept.cover("a")
    clock.now, reads.fails = clock.now + READ_SECONDS, True
    with caplog.at_level(logging.WARNING):
        assert [kept.cover(one) for one in ("a", "b")] == [True, False]
    assert [name for _, name, _ in logged_events(caplog)] == ["bans_not_read"]
    clock.now, reads.fails = clock.now + RETRY_SECONDS, False
    assert bans.lift(memory, "a")
    assert not kept.cover("a")


def test_a_table_takes_a_thousand_bans_and_replaces_those_that_it_has() -> None:
    table = MemoryTable()
    table.put_all([Ban(f"{place}", "", "", 0).item for place in range(MAX_BANS)])
    ban(table, "7")
    assert [one.reason for one in bans.read_all(table) if one.pattern == "7"] == ["spam"]
    with pytest.raises(bans.TooManyBansError):
        ban(table, "new")
    assert bans.lift(table, "7")
    assert not bans.lift(table, "7")
    ban(table, "new")
