"""The bodies of the three endpoints, and refusals that name the error and the fix."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.events.event import ID, Event, Status, Target, TargetKind
from chalicelib.events.requests import (
    MAX_AHEAD_SECONDS,
    MAX_PAYLOAD_BYTES,
    MAX_TEXT_CHARACTERS,
    RequestedEvent,
    UnsupportedTypeError,
    check_text,
    read_echo,
    read_event,
    read_timer,
)
from chalicelib.http.bodies import MAX_DEPTH
from chalicelib.http.errors import BadRequestError, TooLargeError
from simulation.scheduled_events import AT

QUEUES = ("orders", "mails")
AHEAD = MAX_AHEAD_SECONDS * 1000
OBJECT = "the body must be a JSON object"
NO_TIME = "at: give a time with its zone, such as 2026-11-21T10:00:00Z"
NO_TARGET = 'target: give {"url": …}, {"queue": …} or {"log": true}'


def event(body: str | bytes | None = None, /, **fields: Any) -> RequestedEvent:
    """Read a request for an event, by default due now and with the log as its target."""
    whole: dict[str, Any] = {"target": {"log": True}, **fields}
    if whole.keys().isdisjoint({"at", "delay"}):
        whole["delay"] = 0
    given_body = json.dumps(whole) if body is None else body
    return read_event(
        given_body if isinstance(given_body, bytes) else given_body.encode(), QUEUES, AT
    )


def timer(body: str | None = None, /, **fields: Any) -> RequestedEvent:
    whole = {"hours": 0, "minutes": 0, "seconds": 0, "url": "https://example.com/", **fields}
    return read_timer((json.dumps(whole) if body is None else body).encode(), AT)


# ---- the body


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"a"', b"\xff", b"[" * 100_000, b"1" * 5_000]
)
def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequestError) as of_event:
        read_event(body, QUEUES, AT)
    with pytest.raises(BadRequestError) as of_timer:
        read_timer(body, AT)
    assert str(of_event.value) == str(of_timer.value) == OBJECT


def test_an_unknown_field_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(BadRequestError) as refusal:
        event(when=1)
    assert str(refusal.value) == "no field 'when': there are at, delay, id, payload, target"
    with pytest.raises(BadRequestError, match="no field 'days': there are hours, minutes, sec"):
        timer(days=1)


@pytest.mark.parametrize(
    "body",
    [
        '{"delay": 1, "delay": 2, "target": {"log": true}}',
        '{"delay": 1, "target": {"log": true}, "payload": [{"delay": 1, "delay": 1}]}',
    ],
)
def test_a_name_given_twice_is_refused_because_it_is_ambiguous(body: str) -> None:
    with pytest.raises(BadRequestError, match="'delay' is given twice: give it once"):
        event(body)


def deep(levels: int) -> Any:
    return [] if levels == 1 else [deep(levels - 1)]


def test_json_has_a_maximum_depth() -> None:
    """The object of the request is the first level."""
    assert event(payload=deep(MAX_DEPTH - 1)).payload == "[" * 99 + "]" * 99
    for levels in (MAX_DEPTH, MAX_DEPTH + 1, 500):
        with pytest.raises(BadRequestError, match="too deep: give at most 100 levels of JSON"):
            event(payload=deep(levels))
        with pytest.raises(BadRequestError, match="too deep"):
            event(json.dumps({"delay": 0, "target": {"a": deep(levels)}}))


# ---- an event's time


@pytest.mark.parametrize(
    ("at", "milliseconds"),
    [
        (0, 0),
        (1767225600, 1_767_225_600_000),
        (1.001, 1_001),
        (1767225600.123, 1_767_225_600_123),
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-01T00:00:00Z", 1_767_225_600_000),
        ("2026-01-01 00:00Z", 1_767_225_600_000),
        ("2026-01-01T01:30:00+01:30", 1_767_225_600_000),
        ("2025-12-31T23:00:00-0100", 1_767_225_600_000),
        ("2026-01-01T02:00:00+02", 1_767_225_600_000),
        ("2026-01-01T00:00:00.123Z", 1_767_225_600_123),
        ("2026-01-01T00:00:00,1Z", 1_767_225_600_100),
        ("2026-01-01T00:00:00.123999999Z", 1_767_225_600_123),
    ],
)
def test_at_is_a_time_with_its_zone_or_seconds_since_1970(at: object, milliseconds: int) -> None:
    assert event(at=at).at == milliseconds


@pytest.mark.parametrize(
    "at",
    [
        "",
        "now",
        "1767225600",
        "20261121",
        "2026-11-21",
        "2026-11-21T10:00:00",
        "2026-11-21T10Z",
        "20261121T100000Z",
        "2026-W47-6T10:00:00Z",
        "2026-11-21x10:00:00Z",
        "2026-11-31T10:00:00Z",
        "2026-11-21T24:00:01Z",
        "2026-11-21T10:00:60Z",
        "2026-11-21T10:00:00+24:00",
        "2026-11-21T10:00:00+01:00:30",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "٢٠٢٦-11-21T10:00:00Z",
        "2026-11-21T10:00:00Z\n",
        "\ud800",
    ],
)
def test_a_time_in_another_form_is_refused(at: str) -> None:
    with pytest.raises(BadRequestError) as refusal:
        event(at=at)
    assert str(refusal.value) == NO_TIME


@pytest.mark.parametrize("at", [None, True, False, -1, -0.001, [], {}])
def test_at_without_a_time_is_refused(at: object) -> None:
    with pytest.raises(BadRequestError) as refusal:
        event(at=at)
    assert str(refusal.value) == NO_TIME + ", or seconds since 1970"


@pytest.mark.parametrize("at", ["1969-12-31T23:59:59.999Z", "0001-01-01T00:00:00+14:00"])
def test_a_time_before_1970_is_refused(at: str) -> None:
    with pytest.raises(BadRequestError, match="at: give a time since 1970"):
        event(at=at)


@pytest.mark.parametrize("delay", [None, True, "5", "", -1, -0.5, [1], {}])
def test_a_delay_that_is_not_a_number_of_seconds_is_refused(delay: object) -> None:
    with pytest.raises(BadRequestError, match="delay: give seconds, from 0"):
        event(delay=delay)


@pytest.mark.parametrize("name", ["at", "delay"])
def test_nan_is_not_a_time(name: str) -> None:
    with pytest.raises(BadRequestError, match=f"{name}: give "):
        event(f'{{"{name}": NaN, "target": {{"log": true}}}}')


@pytest.mark.parametrize(
    ("delay", "milliseconds"), [(0, 0), (0.25, 250), (90_000, 90_000_000), (0.0014, 1)]
)
def test_a_delay_begins_now(delay: float, milliseconds: int) -> None:
    assert event(delay=delay).at == AT + milliseconds


@pytest.mark.parametrize(
    "fields", [{"at": 1, "delay": 1}, {"at": None, "delay": None}], ids=["both", "both null"]
)
def test_an_event_has_one_of_at_and_delay(fields: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError, match="give one of at and delay"):
        event(**fields)
    with pytest.raises(BadRequestError, match="give one of at and delay"):
        event('{"target": {"log": true}}')


def test_an_event_is_at_most_a_year_ahead_a_leap_year() -> None:
    assert event(delay=MAX_AHEAD_SECONDS).at == AT + AHEAD == AT + 366 * 86_400_000
    assert event(at=(AT + AHEAD) / 1000).at == AT + AHEAD


@pytest.mark.parametrize("number", ["1e300", "1e999", "Infinity", "9" * 4_000, "31622400.001"])
def test_an_event_further_ahead_is_refused(number: str) -> None:
    with pytest.raises(BadRequestError, match="delay: give a time at most 366 days ahead"):
        event(f'{{"delay": {number}, "target": {{"log": true}}}}')


@pytest.mark.parametrize("at", [1767225600000, (AT + AHEAD + 1) / 1000, "9999-12-31T23:59:59-12"])
def test_a_time_further_ahead_is_refused(at: object) -> None:
    with pytest.raises(BadRequestError, match="at: give a time at most 366 days ahead"):
        event(at=at)


@given(st.integers(0, AT + AHEAD))
def test_a_time_is_read_to_the_millisecond_in_any_form(milliseconds: int) -> None:
    moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
    zone = timezone(timedelta(hours=-3, minutes=-30))
    assert event(at=milliseconds / 1000).at == milliseconds
    if moment.year > 1970:
        assert event(at=moment.astimezone(zone).isoformat(timespec="milliseconds")).at == (
            milliseconds
        )


@given(
    st.one_of(
        st.text(max_size=30),
        st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{5,8}(Z|\+[0-9:]{4,5})", fullmatch=True),
        st.floats(),
        st.integers(),
        st.none(),
    )
)
def test_any_at_is_a_time_within_bounds_or_refused_by_name(at: object) -> None:
    said, time = "at: give a time ", 0
    try:
        time = event(at=at).at
    except BadRequestError as refusal:
        said = str(refusal)
    assert said.startswith("at: give a time ")
    assert 0 <= time <= AT + AHEAD


# ---- an event's other parts


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ({"log": True}, Target(TargetKind.LOG)),
        ({"queue": "mails"}, Target(TargetKind.QUEUE, "mails")),
        (
            {"url": "anything: it is checked later"},
            Target(TargetKind.URL, "anything: it is checked later"),
        ),
    ],
)
def test_a_target_is_one_of_three(target: dict[str, Any], meant: Target) -> None:
    wanted = event(target=target)
    assert wanted.target == meant
    assert meant.to_json() == target


@pytest.mark.parametrize(
    "target",
    [
        None,
        "log",
        [],
        {},
        {"log": False},
        {"log": 1},
        {"log": "true"},
        {"url": None},
        {"url": 1},
        {"queue": ["mails"]},
        {"queue": "mails", "log": True},
        {"log": True, "url": "https://example.com/"},
        {"url": "https://example.com/", "method": "GET"},
        {"mail": "a"},
    ],
)
def test_another_target_is_refused_and_the_three_are_named(target: object) -> None:
    with pytest.raises(BadRequestError) as refusal:
        event(target=target)
    assert str(refusal.value) == NO_TARGET


def test_a_target_is_required() -> None:
    with pytest.raises(BadRequestError, match="target: give"):
        event('{"delay": 0}')


def test_a_queue_must_be_one_of_the_operators_queues() -> None:
    with pytest.raises(BadRequestError) as refusal:
        event(target={"queue": "secrets"})
    assert str(refusal.value) == "target: no queue 'secrets'; there are mails, orders"
    body = b'{"delay": 0, "target": {"queue": "q"}}'
    with pytest.raises(BadRequestError, match="no queue 'q'; there are none"):
        read_event(body, (), AT)


@pytest.mark.parametrize("name", ["a", "A-z_0", "x" * 64])
def test_a_short_name_is_an_id(name: str) -> None:
    assert event(id=name).event_id == name


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "a/b", "ü", "a\n", "\ud800", None, 1, True])
def test_any_other_id_is_refused(name: object) -> None:
    with pytest.raises(BadRequestError, match="id: give 1 to 64 letters, digits, - or _"):
        event(id=name)


def test_without_an_id_an_event_gets_a_new_one() -> None:
    first, second = event(), event()
    assert first.event_id != second.event_id
    assert ID.fullmatch(first.event_id)


def test_a_payload_is_any_json_or_missing() -> None:
    assert event().payload == ""
    for payload in (None, "", 0, [1, 2.5, {"ü": "\ud800"}]):
        assert json.loads(event(payload=payload).payload) == payload


def test_a_payload_has_a_maximum_size() -> None:
    """The quotation marks are two bytes.

    A letter outside of ASCII is six, because it is escaped.
    """
    assert len(event(payload="x" * (MAX_PAYLOAD_BYTES - 2)).payload) == MAX_PAYLOAD_BYTES
    for payload in ("x" * (MAX_PAYLOAD_BYTES - 1), "ü" * (MAX_PAYLOAD_BYTES // 6 + 1)):
        with pytest.raises(TooLargeError, match="payload: give at most 65536 bytes of JSON"):
            event(payload=payload)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_outside_of_json_is_refused(number: str) -> None:
    with pytest.raises(BadRequestError, match="a number that JSON does not know"):
        event(f'{{"delay": 0, "target": {{"log": true}}, "payload": [{number}]}}')


def test_an_event_is_new_and_active() -> None:
    wanted = event(delay=5, id="e")
    assert wanted.event(AT) == Event(
        "e", AT + 5_000, AT, Target(TargetKind.LOG), "", wanted.digest, next_at=AT + 5_000
    )
    assert wanted.event(AT).status is Status.ACTIVE


def test_equal_requests_are_recognized_in_any_spelling_at_any_time() -> None:
    body = b'{"id": "e", "delay": 5, "target": {"log": true}, "payload": {"a": 1, "b": "\\u00fc"}}'
    spelt = '{"payload":{"b":"ü","a":1}, "target":{"log":true},\n "delay":5, "id":"e"}'.encode(
        "utf-16"
    )
    first, second = read_event(body, QUEUES, AT), read_event(spelt, QUEUES, AT + 999)
    assert first.digest == second.digest
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
    assert len({one.digest for one in requests}) == len(requests)


# ---- a timer


@pytest.mark.parametrize(
    ("parts", "seconds"),
    [
        ({}, 0),
        ({"seconds": 1}, 1),
        ({"hours": 30, "minutes": 90, "seconds": 61}, 30 * 3_600 + 90 * 60 + 61),
        ({"hours": 8_784}, MAX_AHEAD_SECONDS),
        ({"hours": 2.0, "seconds": -0.0}, 7_200),
    ],
)
def test_a_timer_takes_the_sum_of_its_parts(parts: dict[str, float], seconds: int) -> None:
    wanted = timer(None, **parts)
    assert wanted.at == AT + seconds * 1000
    assert wanted.target == Target(TargetKind.URL, "https://example.com/")
    assert wanted.payload == ""


def test_each_timer_has_its_own_id() -> None:
    assert timer().event_id != timer().event_id
    assert timer().digest != timer().digest


@pytest.mark.parametrize("name", ["hours", "minutes", "seconds"])
@pytest.mark.parametrize(
    "part", [None, -1, -1.0, 1.5, "1", True, [], {}, float("inf"), float("nan")]
)
def test_a_part_that_is_not_a_whole_number_from_0_is_named(name: str, part: object) -> None:
    with pytest.raises(BadRequestError) as refusal:
        timer(None, **{name: part})
    assert str(refusal.value) == f"{name}: give a whole number from 0"


def test_all_missing_and_negative_parts_are_named_together() -> None:
    with pytest.raises(BadRequestError) as refusal:
        timer('{"minutes": -5, "seconds": 1, "url": "https://example.com/"}')
    assert str(refusal.value) == "hours, minutes: give a whole number from 0"


@pytest.mark.parametrize(
    "parts", [{"hours": 8_784, "seconds": 1}, {"seconds": 10**4_000}, {"hours": 1e308}]
)
def test_a_timer_takes_a_year_at_most(parts: dict[str, float]) -> None:
    with pytest.raises(BadRequestError, match="hours, minutes, seconds: give at most 31622400"):
        timer(None, **parts)


@pytest.mark.parametrize("url", [None, 1, True, ["https://example.com/"]])
def test_a_timer_needs_a_url(url: object) -> None:
    with pytest.raises(BadRequestError, match="url: give the URL that gets a POST"):
        timer(url=url)
    with pytest.raises(BadRequestError, match="url: give the URL that gets a POST"):
        timer('{"hours": 0, "minutes": 0, "seconds": 0}')


# ---- an echo


@pytest.mark.parametrize(
    ("ts", "milliseconds"),
    [
        (None, AT),
        ("0", 0),
        ("1767225600", 1_767_225_600_000),
        ("1.001", 1_001),
        ("01", 1_000),
        ("1e3", 1_000_000),
        ("5E-1", 500),
    ],
)
def test_the_time_of_an_echo_is_seconds_or_now(ts: str | None, milliseconds: int) -> None:
    wanted = read_echo(b"hello", ts, AT)
    assert (wanted.at, wanted.target, wanted.payload) == (
        milliseconds,
        Target(TargetKind.LOG),
        '"hello"',
    )


def test_the_id_of_an_echo_is_the_sha_1_of_time_and_text() -> None:
    wanted = read_echo("grüß".encode(), "1767225600.5", AT)
    assert wanted.event_id == hashlib.sha1("1767225600500\ngrüß".encode()).hexdigest()  # noqa: S324
    again = read_echo("grüß".encode(), "1767225600.500", AT + 1)
    assert (again.event_id, again.digest) == (wanted.event_id, wanted.digest)
    assert read_echo(b"other", "1767225600.5", AT).event_id != wanted.event_id
    assert read_echo("grüß".encode(), "1767225600.501", AT).event_id != wanted.event_id


@pytest.mark.parametrize(
    "ts", ["", " 1", "-1", "+1", "e3", "1e", "nan", "inf", "1.", ".5", "٣", "1_0"]
)
def test_a_time_that_is_no_number_of_seconds_is_refused(ts: str) -> None:
    with pytest.raises(BadRequestError) as refusal:
        read_echo(b"hello", ts, AT)
    assert str(refusal.value) == ("ts: give seconds since 1970, such as 1767225600 or 1767225600.5")


def test_an_echo_is_at_most_a_year_ahead() -> None:
    last = (AT + AHEAD) // 1000
    assert read_echo(b"hello", str(last), AT).at == AT + AHEAD
    for ts in (f"{last}.001", "9" * 20, "1e999"):
        with pytest.raises(BadRequestError, match="ts: give a time at most 366 days ahead"):
            read_echo(b"hello", ts, AT)


@pytest.mark.parametrize("letter", ["x", "ü", "🦆", "\0"])
def test_a_text_has_10_000_characters_at_most_whatever_bytes_they_take(letter: str) -> None:
    text = letter * MAX_TEXT_CHARACTERS
    assert json.loads(read_echo(text.encode(), None, AT).payload) == text
    with pytest.raises(TooLargeError) as refusal:
        read_echo((text + letter).encode(), None, AT)
    assert str(refusal.value) == "the body has 10001 characters: give at most 10000"


def test_an_echo_needs_a_text_in_utf_8() -> None:
    with pytest.raises(BadRequestError, match="the body is empty: give the text to print"):
        read_echo(b"", None, AT)
    for body in (b"\xff", "ü".encode("latin-1"), b"\xed\xa0\x80"):
        with pytest.raises(BadRequestError, match="the body must be text in UTF-8"):
            read_echo(body, None, AT)


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "TEXT/Plain;charset=UTF-8",
        'text/plain; charset="utf-8"; format=flowed',
        "text/markdown; charset=us-ascii",
    ],
)
def test_any_text_in_utf_8_is_accepted(kind: str) -> None:
    check_text(kind)


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "text",
        "application/json",
        "application/x-www-form-urlencoded",
        "image/png; text/plain",
        "text/plain; charset=iso-8859-1",
        "text/plain;charset=",
    ],
)
def test_a_body_that_is_not_utf_8_has_an_unsupported_type(kind: str) -> None:
    with pytest.raises(UnsupportedTypeError, match="give the text as text/plain, in UTF-8"):
        check_text(kind)
