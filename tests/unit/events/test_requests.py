"""The bodies of the three endpoints, and refusals that name the error and the fix."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.events.event import ID, Event, Target, TargetKind
from chalicelib.events.requests import (
    MAX_AHEAD_SECONDS,
    MAX_PAYLOAD_BYTES,
    MAX_TEXT_CHARACTERS,
    UnsupportedTypeError,
    check_text,
    read_echo,
    read_event,
    read_timer,
)
from chalicelib.http.errors import BadRequestError, TooLargeError
from simulation.scheduled_events import AT

QUEUES = ("orders", "mails")
AHEAD = MAX_AHEAD_SECONDS * 1000
NO_TIME = "at: give a time with its zone, such as 2026-11-21T10:00:00Z"
NO_TARGET = 'target: give {"url": …}, {"queue": …} or {"log": true}'
TOO_LATE = "give a time at most 366 days ahead"
NO_TIMES: list[object] = [None, True, -0.001, [], float("nan")]
LOG = Target(TargetKind.LOG)


def event(body: str | None = None, /, **fields: Any) -> Event:
    """Read a request for an event, by default due now and with the log as its target."""
    whole: dict[str, Any] = {"target": {"log": True}, **fields}
    if whole.keys().isdisjoint({"at", "delay"}):
        whole["delay"] = 0
    return read_event((body or json.dumps(whole)).encode(), QUEUES, AT)


def timer(body: str | None = None, /, **fields: Any) -> Event:
    whole = {"hours": 0, "minutes": 0, "seconds": 0, "url": "https://example.com/", **fields}
    return read_timer((body or json.dumps(whole)).encode(), AT)


def refusal(read: Callable[[], Event]) -> str:
    """Return the message of the error that a request gets."""
    with pytest.raises((BadRequestError, TooLargeError)) as refused:
        read()
    return str(refused.value)


# ---- an event


@pytest.mark.parametrize(
    ("name", "given", "milliseconds"),
    [
        ("at", 0, 0),
        ("at", 1.001, 1_001),
        ("at", 1767225600.123, 1_767_225_600_123),
        ("at", (AT + AHEAD) / 1000, AT + 366 * 86_400_000),
        ("at", "1970-01-01T00:00:00Z", 0),
        ("at", "2026-01-01 00:00Z", 1_767_225_600_000),
        ("at", "2026-01-01T01:30:00+01:30", 1_767_225_600_000),
        ("at", "2025-12-31T23:00:00-0100", 1_767_225_600_000),
        ("at", "2026-01-01T02:00:00+02", 1_767_225_600_000),
        ("at", "2026-01-01T00:00:00,1Z", 1_767_225_600_100),
        ("at", "2026-01-01T00:00:00.123999999Z", 1_767_225_600_123),
        ("delay", 0, AT),
        ("delay", 0.25, AT + 250),
        ("delay", 0.0014, AT + 1),
        ("delay", MAX_AHEAD_SECONDS, AT + AHEAD),
    ],
)
def test_a_time_has_its_zone_or_is_seconds_since_1970_or_from_now(
    name: str, given: object, milliseconds: int
) -> None:
    assert event(**{name: given}).at == milliseconds


@pytest.mark.parametrize(
    ("at", "said"),
    [
        *(
            (at, NO_TIME)
            for at in (
                "",
                "1767225600",
                "2026-11-21",
                "2026-11-21T10:00:00",
                "2026-11-21T10Z",
                "20261121T100000Z",
                "2026-W47-6T10:00:00Z",
                "2026-11-21x10:00:00Z",
                "2026-11-31T10:00:00Z",
                "2026-11-21T24:00:01Z",
                "2026-11-21T10:00:00+24:00",
                "2026-11-21T10:00:00+01:00:30",
                "10000-01-01T00:00:00Z",
                "٢٠٢٦-11-21T10:00:00Z",
                "2026-11-21T10:00:00Z\n",
                "\ud800",
            )
        ),
        *((at, f"{NO_TIME}, or seconds since 1970") for at in NO_TIMES),
        ("1969-12-31T23:59:59.999Z", "at: give a time since 1970"),
        ("0001-01-01T00:00:00+14:00", "at: give a time since 1970"),
        (1767225600000, f"at: {TOO_LATE}"),
        ((AT + AHEAD + 1) / 1000, f"at: {TOO_LATE}"),
        ("9999-12-31T23:59:59-12", f"at: {TOO_LATE}"),
    ],
)
def test_another_time_is_refused(at: object, said: str) -> None:
    assert refusal(lambda: event(at=at)) == said


@pytest.mark.parametrize(
    ("delay", "said"),
    [
        *(
            (delay, "delay: give seconds, from 0")
            for delay in ("null", "true", '"5"', "-0.5", "[1]", "NaN")
        ),
        *(
            (delay, f"delay: {TOO_LATE}")
            for delay in ("1e300", "1e999", "Infinity", "9" * 4_000, "31622400.001")
        ),
    ],
)
def test_another_delay_is_refused(delay: str, said: str) -> None:
    assert refusal(lambda: event(f'{{"delay": {delay}, "target": {{"log": true}}}}')) == said


def test_an_event_has_one_of_at_and_delay() -> None:
    for times in ("", ', "at": 1, "delay": 1'):
        said = refusal(lambda times=times: event(f'{{"target": {{"log": true}}{times}}}'))  # type: ignore[misc]
        assert said == "give one of at and delay"


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ({"log": True}, LOG),
        ({"queue": "mails"}, Target(TargetKind.QUEUE, "mails")),
        ({"url": "checked later"}, Target(TargetKind.URL, "checked later")),
    ],
)
def test_a_target_is_one_of_three(target: dict[str, Any], meant: Target) -> None:
    assert event(target=target).target == meant


@pytest.mark.parametrize(
    ("target", "said"),
    [
        *(
            (target, NO_TARGET)
            for target in (
                None,
                "log",
                {},
                {"log": False},
                {"log": 1},
                {"url": None},
                {"queue": ["mails"]},
                {"queue": "mails", "log": True},
                {"log": True, "url": "https://example.com/"},
                {"url": "https://example.com/", "method": "GET"},
            )
        ),
        ({"queue": "secrets"}, "target: no queue 'secrets'; there are mails, orders"),
    ],
)
def test_another_target_is_refused_and_the_right_ones_are_named(target: object, said: str) -> None:
    assert refusal(lambda: event(target=target)) == said


def test_without_queues_none_is_named() -> None:
    body = b'{"delay": 0, "target": {"queue": "q"}}'
    assert refusal(lambda: read_event(body, (), AT)) == "target: no queue 'q'; there are none"


@pytest.mark.parametrize("name", ["a", "A-z_0", "x" * 64])
def test_a_short_name_is_an_id(name: str) -> None:
    assert event(id=name).event_id == name


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "ü", "a\n", "\ud800", None, 1])
def test_any_other_id_is_refused(name: object) -> None:
    assert refusal(lambda: event(id=name)) == "id: give 1 to 64 letters, digits, - or _"


def test_without_an_id_an_event_gets_a_new_one() -> None:
    first, second = event(), event()
    assert first.event_id != second.event_id
    assert ID.fullmatch(first.event_id)


def test_a_payload_is_any_json_or_missing() -> None:
    assert event().payload == ""
    for payload in (None, "", 0, [1, 2.5, {"ü": "\ud800"}]):
        assert json.loads(event(payload=payload).payload) == payload


def test_a_payload_has_a_maximum_size() -> None:
    """The quotation marks are two bytes; a letter outside of ASCII is six, as it is escaped."""
    assert len(event(payload="x" * (MAX_PAYLOAD_BYTES - 2)).payload) == MAX_PAYLOAD_BYTES
    for payload in ("x" * (MAX_PAYLOAD_BYTES - 1), "ü" * (MAX_PAYLOAD_BYTES // 6 + 1)):
        with pytest.raises(TooLargeError, match="payload: give at most 65536 bytes of JSON"):
            event(payload=payload)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_number_outside_of_json_is_refused(number: str) -> None:
    body = f'{{"delay": 0, "target": {{"log": true}}, "payload": [{number}]}}'
    assert refusal(lambda: event(body)).endswith("a number that JSON does not know")


def test_an_event_is_new_and_active() -> None:
    wanted, at = event(delay=5, id="e"), AT + 5_000
    assert wanted == Event("e", at, AT, LOG, "", wanted.request, next_at=at)


def test_equal_requests_are_recognized_in_any_spelling_at_any_time() -> None:
    body = b'{"id": "e", "delay": 5, "target": {"log": true}, "payload": {"a": 1, "b": "\\u00fc"}}'
    spelt = '{"payload":{"b":"ü","a":1}, "target":{"log":true},\n "delay":5, "id":"e"}'
    first = read_event(body, QUEUES, AT)
    second = read_event(spelt.encode("utf-16"), QUEUES, AT + 999)
    assert first.request == second.request
    assert second.at == first.at + 999


def test_different_requests_are_distinguished() -> None:
    requests = [
        event(id="e"),
        event(id="e", delay=1),
        event(id="e", at=0),
        event(id="e", at="1970-01-01T00:00:00Z"),
        event(id="e", payload=None),
        event(id="e", payload="null"),
        event(id="e", target={"queue": "mails"}),
    ]
    assert len({one.request for one in requests}) == len(requests)


# ---- a timer


@pytest.mark.parametrize(
    ("parts", "seconds"),
    [
        ({}, 0),
        ({"hours": 30, "minutes": 90, "seconds": 61}, 30 * 3_600 + 90 * 60 + 61),
        ({"hours": 8_784}, MAX_AHEAD_SECONDS),
        ({"hours": 2.0, "seconds": -0.0}, 7_200),
    ],
)
def test_a_timer_takes_the_sum_of_its_parts(parts: dict[str, float], seconds: int) -> None:
    first, second = timer(None, **parts), timer(None, **parts)
    assert (first.at, first.payload) == (AT + seconds * 1000, "")
    assert first.target == Target(TargetKind.URL, "https://example.com/")
    assert first.event_id != second.event_id
    assert first.request != second.request


@pytest.mark.parametrize("name", ["hours", "minutes", "seconds"])
@pytest.mark.parametrize("part", [None, -1, 1.5, "1", True, [], float("inf"), float("nan")])
def test_a_part_that_is_not_a_whole_number_from_0_is_named(name: str, part: object) -> None:
    assert refusal(lambda: timer(None, **{name: part})) == f"{name}: give a whole number from 0"


@pytest.mark.parametrize(
    "parts", [{"hours": 8_784, "seconds": 1}, {"seconds": 10**4_000}, {"hours": 1e308}]
)
def test_a_timer_takes_a_year_at_most(parts: dict[str, float]) -> None:
    assert refusal(lambda: timer(None, **parts)) == (
        "hours, minutes, seconds: give at most 31622400 seconds"
    )


@pytest.mark.parametrize(
    "body", ['{"hours": 0, "minutes": 0, "seconds": 0}', None], ids=["none", "no text"]
)
def test_a_timer_needs_a_url(body: str | None) -> None:
    assert refusal(lambda: timer(body, url=1)) == "url: give the URL that gets a POST"


# ---- an echo


@pytest.mark.parametrize(
    ("ts", "milliseconds"),
    [(None, AT), ("0", 0), ("1.001", 1_001), ("01", 1_000), ("1e3", 1_000_000), ("5E-1", 500)],
)
def test_the_time_of_an_echo_is_seconds_or_now(ts: str | None, milliseconds: int) -> None:
    wanted = read_echo(b"hello", ts, AT)
    assert (wanted.at, wanted.target, wanted.payload) == (milliseconds, LOG, '"hello"')


def test_the_id_of_an_echo_is_the_sha_1_of_time_and_text() -> None:
    wanted = read_echo("grüß".encode(), "1767225600.5", AT)
    assert wanted.event_id == hashlib.sha1("1767225600500\ngrüß".encode()).hexdigest()  # noqa: S324
    again = read_echo("grüß".encode(), "1767225600.500", AT + 1)
    assert (again.event_id, again.request) == (wanted.event_id, wanted.request)


@pytest.mark.parametrize(
    "ts", ["", " 1", "-1", "+1", "e3", "1e", "nan", "inf", "1.", ".5", "٣", "1_0"]
)
def test_a_time_that_is_no_number_of_seconds_is_refused(ts: str) -> None:
    assert refusal(lambda: read_echo(b"hello", ts, AT)) == (
        "ts: give seconds since 1970, such as 1767225600 or 1767225600.5"
    )


def test_an_echo_is_at_most_a_year_ahead() -> None:
    last = (AT + AHEAD) // 1000
    assert read_echo(b"hello", str(last), AT).at == AT + AHEAD
    for ts in (f"{last}.001", "9" * 20, "1e999"):
        with pytest.raises(BadRequestError, match=f"ts: {TOO_LATE}"):
            read_echo(b"hello", ts, AT)


@pytest.mark.parametrize("letter", ["x", "🦆", "\0"])
def test_a_text_has_10_000_characters_at_most_whatever_bytes_they_take(letter: str) -> None:
    text = letter * MAX_TEXT_CHARACTERS
    assert json.loads(read_echo(text.encode(), None, AT).payload) == text
    with pytest.raises(TooLargeError, match=r"^the body has 10001 characters: give at most 10000$"):
        read_echo((text + letter).encode(), None, AT)


def test_an_echo_needs_a_text_in_utf_8() -> None:
    assert refusal(lambda: read_echo(b"", None, AT)).startswith("the body is empty")
    for body in (b"\xff", b"\xed\xa0\x80"):
        with pytest.raises(BadRequestError, match="the body must be text in UTF-8"):
            read_echo(body, None, AT)


def test_any_text_in_utf_8_is_accepted() -> None:
    check_text("TEXT/Plain;charset=UTF-8")
    check_text('text/plain; charset="utf-8"; format=flowed')
    check_text("text/markdown; charset=us-ascii")


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text",
        "application/json",
        "image/png; text/plain",
        "text/a; charset=l1",
        "text/a;charset=",
    ],
)
def test_a_body_that_is_not_utf_8_has_an_unsupported_type(kind: str) -> None:
    with pytest.raises(UnsupportedTypeError, match="give the text as text/plain, in UTF-8"):
        check_text(kind)
