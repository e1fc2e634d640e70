"""The token command on both engines: tokens are created, listed and revoked."""

from __future__ import annotations

import pytest

from chalicelib.http import tokens
from chalicelib.http.authentication import authenticate
from chalicelib.http.errors import ForbiddenError
from chalicelib.http.messages import Caller, Role
from simulation.clocks import NOON
from simulation.installation import MemoryInstallation, invoke_on
from simulation.memory_table import MemoryTable
from simulation.resources import GivenResources
from simulation.tokens import store_token
from vumi.cli.program import execute
from vumi.tokens import FIRST, TokenError, TokenStore

USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"


@pytest.fixture
def table() -> MemoryTable:
    return MemoryTable()


@pytest.fixture
def store(table: MemoryTable) -> TokenStore:
    return TokenStore(table, lambda: NOON)


def run(store: TokenStore, *arguments: str) -> None:
    assert isinstance(store.table, MemoryTable)
    installation = MemoryInstallation(store.table, clock=store.clock)
    assert execute(["token", *arguments], invoke_on(installation)) == 0


def opens(table: MemoryTable, token: str) -> bool:
    try:
        return authenticate(f"Bearer {token}", GivenResources(table)) is not None
    except ForbiddenError:
        return False


def test_a_created_token_opens_routes_for_its_holder(table: MemoryTable, store: TokenStore) -> None:
    resources = GivenResources(table)
    operators, users = store.create("ci"), store.create("eva", USER.upper())
    assert authenticate(f"Bearer {operators}", resources) == Caller(Role.OPERATOR)
    assert authenticate(f"Bearer {users}", resources) == Caller(Role.USER, USER)


def test_only_the_digest_of_a_token_is_stored(table: MemoryTable, store: TokenStore) -> None:
    token = store.create("eva", USER)
    digest = tokens.digest(token)
    assert list(table.items.values()) == [
        {
            "PK": f"TOKEN#{digest}",
            "SK": "TOKEN",
            "name": "eva",
            "role": "user",
            "user": USER,
            "created": int(NOON * 1000),
            "batch": "TOKEN",
            "due": int(NOON * 1000),
        }
    ]
    assert token not in str(table.items)


def test_the_command_prints_a_token_once_and_lists_tokens_without_it(
    store: TokenStore, capsys: pytest.CaptureFixture[str]
) -> None:
    run(store, "create", "--name", "ci")
    run(store, "create", "--name", "eva", "--user", USER)
    printed = capsys.readouterr().out.splitlines()
    assert [line.rpartition(" ")[0] for line in printed] == [
        "Token ci, shown only once:",
        "Token eva, shown only once:",
    ]
    made = [line.rpartition(" ")[2] for line in printed]
    run(store, "list")
    header, *listed = capsys.readouterr().out.splitlines()
    assert header.split() == ["DIGEST", "NAME", "HOLDER", "CREATED"]
    digests = [tokens.digest(token)[:12] for token in made]
    assert sorted(line.split(maxsplit=2) for line in listed) == sorted(
        [
            [digests[0], "ci", f"{'operator':41}  2026-03-14T12:00:00Z"],
            [digests[1], "eva", f"user {USER}  2026-03-14T12:00:00Z"],
        ]
    )


def test_a_token_is_revoked_by_its_name_or_the_beginning_of_its_digest(
    table: MemoryTable, store: TokenStore, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other, third = (store.create(name) for name in ("one", "other", "third"))
    run(store, "revoke", "one")
    digest = tokens.digest(other)
    run(store, "revoke", digest[:8])
    assert capsys.readouterr().out.splitlines() == [
        f"revoked: {tokens.digest(one)[:12]}  one  operator  2026-03-14T12:00:00Z",
        f"revoked: {digest[:12]}  other  operator  2026-03-14T12:00:00Z",
    ]
    assert [opens(table, token) for token in (one, other, third)] == [False, False, True]
    assert [token.name for token in store.read_all()] == ["third"]


def test_a_name_that_two_tokens_have_revokes_none(table: MemoryTable, store: TokenStore) -> None:
    """Two commands at the same time may give one name twice."""
    known = [tokens.new_token() for _ in range(2)]
    for token in known:
        store_token(table, token)
    with pytest.raises(TokenError) as refused:
        store.revoke("a-test")
    assert str(refused.value).startswith("2 tokens are called a-test; give a digest: ")
    for token in known:
        assert tokens.digest(token)[:12] in str(refused.value)
        assert opens(table, token)
        store.revoke(tokens.digest(token))
    assert store.read_all() == []


@pytest.mark.parametrize("wanted", ["", "on", "One", "0123456", "f" * 64, "f" * 65, "token"])
def test_an_unknown_name_revokes_nothing(store: TokenStore, wanted: str) -> None:
    store.create("one")
    with pytest.raises(TokenError, match=f"no token has the name '{wanted}' or a digest that"):
        store.revoke(wanted)
    assert len(store.read_all()) == 1


def test_seven_digits_of_a_digest_are_too_few(store: TokenStore) -> None:
    digest = tokens.digest(store.create("one"))
    with pytest.raises(TokenError):
        store.revoke(digest[:7])


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", "a" * 65, "ü", "a\n", "a/b"])
def test_a_wrong_name_is_refused(store: TokenStore, name: str) -> None:
    with pytest.raises(TokenError, match="the name of a token must be 1 to 64 letters, digits"):
        store.create(name)
    assert store.read_all() == []


@pytest.mark.parametrize("user", ["eva", USER[:-1], f"{USER}0", USER.replace("-", "")])
def test_a_wrong_user_is_refused(store: TokenStore, user: str) -> None:
    """A text that is no UUID must not make an operator's token."""
    with pytest.raises(TokenError, match=f"a user must be a UUID, .*, not '{user}'"):
        store.create("eva", user)
    assert store.read_all() == []


def test_a_name_is_given_once(store: TokenStore) -> None:
    store.create("eva", USER)
    with pytest.raises(TokenError, match="a token has the name eva; give another name, or revoke"):
        store.create("eva")
    store.revoke("eva")
    assert store.create("eva")


def test_the_first_token_is_created_unless_an_operator_has_one(
    table: MemoryTable, store: TokenStore
) -> None:
    store.create(FIRST, USER)
    first = store.create_first()
    assert authenticate(f"Bearer {first}", GivenResources(table)) == Caller(Role.OPERATOR)
    assert store.create_first() == ""
    assert len(store.read_all()) == 2
    store.revoke(tokens.digest(first))
    assert store.create_first()
