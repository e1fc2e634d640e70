"""The token command on both engines: tokens are created, listed and revoked."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from chalicelib.http import tokens
from chalicelib.http.authentication import authenticate
from chalicelib.http.errors import ForbiddenError
from chalicelib.http.messages import Caller, Role
from simulation.clocks import NOON
from simulation.resources import GivenResources
from simulation.storage import MemoryTable, store_token
from tests.terminals import Terminal
from tests.unit.vumi.commands import Vumi
from vumi.errors import ReportedError
from vumi.tokens import FIRST, FIRST_FILE, TokenStore, show_first

USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"


@pytest.fixture
def table(vumi: Vumi) -> MemoryTable:
    return vumi.memory


@pytest.fixture
def store(table: MemoryTable) -> TokenStore:
    return TokenStore(table, lambda: NOON)


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


def test_the_command_prints_a_token_once_and_lists_tokens_without_it(vumi: Vumi) -> None:
    printed = []
    for options in (["--name", "ci"], ["--name", "eva", "--user", USER]):
        assert vumi("token", "create", *options) == 0
        printed += vumi.out.splitlines()
    assert [line.rpartition(" ")[0] for line in printed] == [
        "Token ci, shown only once:",
        "Token eva, shown only once:",
    ]
    made = [line.rpartition(" ")[2] for line in printed]
    assert vumi("token", "list") == 0
    header, *listed = vumi.out.splitlines()
    assert header.split() == ["DIGEST", "NAME", "HOLDER", "CREATED"]
    digests = [tokens.digest(token)[:12] for token in made]
    assert sorted(line.split(maxsplit=2) for line in listed) == sorted(
        [
            [digests[0], "ci", f"{'operator':41}  2026-03-14T12:00:00Z"],
            [digests[1], "eva", f"user {USER}  2026-03-14T12:00:00Z"],
        ]
    )


def test_a_token_is_revoked_by_its_name_or_the_beginning_of_its_digest(
    vumi: Vumi, store: TokenStore
) -> None:
    one, other, third = (store.create(name) for name in ("one", "other", "third"))
    for name, token, given in (("one", one, "one"), ("other", other, tokens.digest(other)[:8])):
        assert vumi("token", "revoke", given) == 0
        digest = tokens.digest(token)[:12]
        assert vumi.out == f"revoked: {digest}  {name}  operator  2026-03-14T12:00:00Z\n"
    assert [opens(vumi.memory, token) for token in (one, other, third)] == [False, False, True]
    assert [token.name for token in store.read_all()] == ["third"]


def test_a_name_that_two_tokens_have_revokes_none(table: MemoryTable, store: TokenStore) -> None:
    """Two commands at the same time may give one name twice."""
    known = [tokens.new_token() for _ in range(2)]
    for token in known:
        store_token(table, token)
    with pytest.raises(ReportedError) as refused:
        store.revoke("a-test")
    assert str(refused.value).startswith("2 tokens are called a-test; give a digest: ")
    for token in known:
        assert tokens.digest(token)[:12] in str(refused.value)
        assert opens(table, token)
        store.revoke(tokens.digest(token))
    assert store.read_all() == []


@pytest.mark.parametrize("wanted", ["", "on", "One", "0123456", "f" * 64, "f" * 65, "token"])
def test_an_unknown_name_and_seven_digits_of_a_digest_revoke_nothing(
    store: TokenStore, wanted: str
) -> None:
    digest = tokens.digest(store.create("one"))
    for given in (wanted, digest[:7]):
        with pytest.raises(ReportedError, match=f"no token has the name '{given}' or a digest"):
            store.revoke(given)
    assert len(store.read_all()) == 1


NAME = "the name of a token must be 1 to 64 letters, digits"
UUID = "a user must be a UUID, .*, not "


@pytest.mark.parametrize(
    ("name", "user", "message"),
    [
        *((name, "", NAME) for name in ("", " ", "a b", "-a", "a" * 65, "ü", "a\n", "a/b")),
        *(("eva", user, UUID) for user in ("eva", USER[:-1], f"{USER}0", USER.replace("-", ""))),
    ],
)
def test_a_wrong_name_or_user_is_refused(
    store: TokenStore, name: str, user: str, message: str
) -> None:
    """A text that is no UUID must not make an operator's token."""
    with pytest.raises(ReportedError, match=message):
        store.create(name, user)
    assert store.read_all() == []


def test_a_name_is_given_once(store: TokenStore) -> None:
    store.create("eva", USER)
    with pytest.raises(ReportedError, match="a token has the name eva; give another name"):
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


TOKEN = "the-first-token"  # noqa: S105  an example


def test_a_terminal_shows_the_token_and_no_file_has_it(tmp_path: Path) -> None:
    terminal = Terminal()
    show_first(TOKEN, terminal, tmp_path)
    assert terminal.getvalue() == f"Operator's token (opens /admin), shown this once: {TOKEN}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("plant", [None, Path.symlink_to, Path.hardlink_to])
def test_any_other_stream_names_a_file_that_only_its_owner_can_read(
    tmp_path: Path, plant: Callable[[Path, Path], None] | None
) -> None:
    """A planted file does not get the token."""
    path, other, stream = tmp_path / FIRST_FILE, tmp_path / "other", io.StringIO()
    other.touch(mode=0o666)
    if plant:
        plant(path, other)
    show_first(TOKEN, stream, tmp_path)
    assert stream.getvalue() == (
        f"Operator's token (opens /admin): in {path}; store it elsewhere, and remove the file\n"
    )
    assert (path.read_text(), other.read_text()) == (f"{TOKEN}\n", "")
    assert path.stat().st_mode & 0o777 == 0o600
