"""The authentication of a header: one token, which the table or the settings have, or a refusal."""

from __future__ import annotations

import hashlib
from typing import Any, get_args

import pytest

from chalicelib.http import tokens
from chalicelib.http.authentication import BEARER, LOG_SECONDS, Reason, RefusalLog, authenticate
from chalicelib.http.errors import ForbiddenError, UnauthorizedError
from chalicelib.http.messages import Caller, Role
from chalicelib.settings import DIGEST, Settings
from simulation.clocks import NOON, Clock
from simulation.resources import GivenResources
from simulation.storage import MemoryTable, store_token

USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
TOKEN = "Chosen_by-an-operator"  # noqa: S105  of these tests
USERS = tokens.new_token()

RIGHT = [
    f"Bearer {TOKEN}",
    f"bearer {TOKEN}",
    f"BEARER {TOKEN}",
    f"Bearer  {TOKEN}",
    f"Bearer {TOKEN} ",
]
MALFORMED = [
    "",
    "Bearer",
    "Bearer ",
    TOKEN,
    f"Bearer{TOKEN}",
    f"Basic {TOKEN}",
    f"Bearer: {TOKEN}",
    f"Bearer {TOKEN} b",
    f"Bearer {TOKEN}, Bearer {TOKEN}",
    f"Bearer\t{TOKEN}",
    f" Bearer {TOKEN}",
    f"Bearer {TOKEN}\n",
    f"Bearer {TOKEN[:19]}",
    f"Bearer {'a' * 201}",
    f"Bearer {TOKEN}\ud800",
    f"Bearer {TOKEN}ü",
    f"Bearer {TOKEN}=",
]
UNKNOWN = [
    f"Bearer {TOKEN[:-1]}",
    f"Bearer {TOKEN}s",
    f"Bearer {TOKEN.upper()}",
    f"Bearer {tokens.digest(TOKEN)}",
    f"Bearer {'a' * 200}",
]


@pytest.fixture
def resources() -> GivenResources:
    table = MemoryTable()
    store_token(table, TOKEN)
    store_token(table, USERS, USER)
    return GivenResources(table)


@pytest.mark.parametrize("header", RIGHT)
def test_the_token_in_a_header_identifies_its_caller(
    resources: GivenResources, header: str
) -> None:
    assert authenticate(header, resources) == Caller(Role.OPERATOR)
    assert authenticate(header.replace(TOKEN, USERS), resources) == Caller(Role.USER, USER)


@pytest.mark.parametrize("header", MALFORMED)
def test_a_header_without_a_token_is_unauthorized(resources: GivenResources, header: str) -> None:
    with pytest.raises(UnauthorizedError, match="give a token: Authorization: Bearer TOKEN"):
        authenticate(header, resources)


@pytest.mark.parametrize("header", UNKNOWN)
def test_an_unknown_token_is_forbidden(resources: GivenResources, header: str) -> None:
    with pytest.raises(ForbiddenError, match="this token opens nothing here"):
        authenticate(header, resources)


def test_a_token_of_the_settings_is_an_operators_and_needs_no_table() -> None:
    settings = Settings(api_token_digests=frozenset({tokens.digest(TOKEN)}))
    assert authenticate(f"Bearer {TOKEN}", GivenResources(settings=settings)) == Caller(
        Role.OPERATOR
    )


def test_a_token_has_32_random_bytes_and_fits_into_a_header() -> None:
    made = {tokens.new_token() for _ in range(100)}
    assert len(made) == 100
    assert {len(token) for token in made} == {43}, "32 bytes in base64 without padding"
    assert all(BEARER.fullmatch(f"Bearer {token}") for token in made)


def test_a_digest_is_the_sha_256_that_a_setting_takes() -> None:
    assert tokens.digest(TOKEN) == hashlib.sha256(TOKEN.encode()).hexdigest()
    assert DIGEST.fullmatch(tokens.digest(TOKEN))


# ---- the log of refusals


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock) -> RefusalLog:
    return RefusalLog(clock)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int]]:
    """Return the reason and the number left out of each line."""
    assert set(caplog.messages) <= {"token_refused"}
    fields = [vars(record)["fields"] for record in caplog.records]
    return [(one["reason"], one["left_out"]) for one in fields]


def test_a_line_a_minute_has_the_number_of_refusals_without_a_line(
    caplog: pytest.LogCaptureFixture, clock: Clock, log: RefusalLog
) -> None:
    for seconds in (0, 1, 59.9, 60, 60, 119, 120, 400):
        clock.now = NOON + seconds
        log.add("unknown")
    assert LOG_SECONDS == 60
    assert lines(caplog) == [("unknown", 0), ("unknown", 2), ("unknown", 2), ("unknown", 0)]


def test_each_reason_has_lines_of_its_own(
    caplog: pytest.LogCaptureFixture, clock: Clock, log: RefusalLog
) -> None:
    reasons: tuple[Reason, ...] = get_args(Reason)
    for reason in (*reasons, *reasons, reasons[0]):
        log.add(reason)
    clock.now += LOG_SECONDS
    for reason in reasons:
        log.add(reason)
    first = [(reason, 0) for reason in reasons]
    assert lines(caplog) == [*first, ("missing", 2), ("malformed", 1), ("unknown", 1)]


def test_a_clock_that_was_set_back_does_not_end_the_log(
    caplog: pytest.LogCaptureFixture, clock: Clock, log: RefusalLog
) -> None:
    log.add("unknown")
    clock.now -= 86_400
    log.add("unknown")
    assert lines(caplog) == [("unknown", 0), ("unknown", 0)]


# ---- the callers that an authorizer's context or a token's item names


@pytest.mark.parametrize("caller", [Caller(Role.OPERATOR), Caller(Role.USER, USER)])
def test_the_fields_of_a_caller_name_this_caller(caller: Caller) -> None:
    assert Caller.of(caller.fields) == Caller.of(caller.fields | {"principalId": "x"}) == caller
    assert caller.is_operator is (caller.role == "operator")


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"user": ""},
        {"user": USER},
        {"role": "", "user": ""},
        {"role": None, "user": None},
        {"role": "admin", "user": ""},
        {"role": "Operator", "user": ""},
        {"role": "operator", "user": USER},
        {"role": "user"},
        {"role": "user", "user": ""},
        {"role": "user", "user": "eva"},
        {"role": "user", "user": f"{USER}\n"},
        {"role": "user", "user": [USER]},
        {"role": ["operator"]},
        {"claims": {"role": "operator"}},
    ],
)
def test_other_fields_name_nobody(context: dict[str, Any]) -> None:
    assert Caller.of(context) is None
