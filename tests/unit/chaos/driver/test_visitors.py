"""The parts of a run: responses, faults, the clock that jumps, and the logs."""

from __future__ import annotations

import json
import time
from itertools import islice
from pathlib import Path

import pytest

from chaos.checker import logs
from chaos.checker.history import Kind, Outcome
from chaos.driver.fault_plan import Fault, plan
from chaos.driver.visitors import CLIENT_BEHAVIOURS, Answer, ClientBehaviour, understood
from chaos.faults.clock import OffsetClock
from chaos.faults.fault_state import FaultState


def ok(body: str) -> bytes:
    return b"HTTP/1.1 200 OK\r\n\r\n" + body.encode()


@pytest.mark.parametrize(
    ("received", "answer"),
    [
        (ok('{"label":"views","message":"12"}'), Answer(Outcome.ACKNOWLEDGED, 12)),
        (ok("<svg><title>views: 7</title></svg>"), Answer(Outcome.ACKNOWLEDGED, 7)),
        (ok(""), Answer(Outcome.ACKNOWLEDGED)),
        (
            ok('{"message":"count unavailable, view taken","isError":true}'),
            Answer(Outcome.ACKNOWLEDGED, None, "count unavailable, view taken"),
        ),
        (
            ok('{"message":"internal error, view not counted","isError":true}'),
            Answer(Outcome.REFUSED, None, "internal error, view not counted"),
        ),
        (b"HTTP/1.1 503 No\r\n\r\n", Answer(Outcome.UNKNOWN, None, "HTTP/1.1 503 No\r\n\r\n")),
    ],
)
def test_a_response_shows_whether_the_view_counts(received: bytes, answer: Answer) -> None:
    assert understood(received) == answer


def test_a_hundred_visitors_have_every_behaviour() -> None:
    assert set(CLIENT_BEHAVIOURS) == set(ClientBehaviour)
    assert sum(CLIENT_BEHAVIOURS.values()) == 100


def test_peeks_and_heads_are_reads_and_other_requests_are_hits() -> None:
    reads = {behaviour for behaviour in ClientBehaviour if behaviour.kind is Kind.READ}
    assert reads == {ClientBehaviour.PEEK, ClientBehaviour.HEAD}


def test_a_seed_has_one_sequence_of_faults_that_begins_with_every_kind() -> None:
    first, again, other = (list(islice(plan(seed), 40)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert {one.fault for one in first[: len(Fault)]} == set(Fault)


def test_a_clock_is_set_for_every_process_that_has_its_file(tmp_path: Path) -> None:
    clock, other = OffsetClock(tmp_path / "clock"), OffsetClock(tmp_path / "clock")
    clock.jump(1_000)
    clock.jump(-1)
    assert other.offset == 999
    assert other() - time.time() == pytest.approx(999, abs=1)
    assert OffsetClock(tmp_path / "clock").offset == 999


def test_a_period_is_without_faults_if_none_lasted_or_began() -> None:
    fault_state = FaultState()
    before = fault_state.changes
    assert fault_state.no_fault_since(before)
    with fault_state.fault():
        assert not fault_state.no_fault_since(before)
        assert not fault_state.no_fault_since(fault_state.changes)
    assert not fault_state.no_fault_since(before)
    assert fault_state.no_fault_since(fault_state.changes)


def test_errors_of_a_full_disk_may_be_logged_and_no_others(tmp_path: Path) -> None:
    full = "Traceback\nchalicelib.storage.errors.Unavailable: SQLite: database or disk is full"
    lines = [
        json.dumps({"level": "INFO", "message": "started"}),
        json.dumps({"level": "ERROR", "message": "a badge failed", "error": full}),
        json.dumps({"level": "ERROR", "message": "a badge failed", "error": "KeyError: 'x'"}),
        "Traceback (most recent call last):",
        '{"level": "ERROR", "mess',
    ]
    (tmp_path / "server-001.log").write_text("\n".join(lines))
    assert logs.errors(tmp_path) == [f"server-001.log: {line}" for line in lines[2:4]]
