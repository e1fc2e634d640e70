"""The tokens in a table: create, list and revoke them, and show the first one.

A token's item is in the index `due` too, in a batch of its own, so that no command scans the table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from chalicelib.events.sweep import between
from chalicelib.http import authentication, tokens
from chalicelib.http.messages import Caller, Role
from chalicelib.settings import UUID
from chalicelib.storage.items import Item, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Delete, Put
from chalicelib.units import Milliseconds, Seconds, to_milliseconds
from vumi.errors import ReportedError
from vumi.storage.private_files import new_file, open_folder

BATCH = "TOKEN"
"""The part of the index `due` that has all tokens, in the order of their creation."""
NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
PREFIX = re.compile("[0-9a-f]{8,64}")
"""The beginning of a digest that identifies a token."""
FIRST = "first-start"
"""The name of the token that the first start on one machine creates."""
FIRST_FILE = "first-token"


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token as it is stored: its digest, its name, its holder, and when it was created."""

    digest: str
    name: str
    holder: Caller
    created: Milliseconds

    @classmethod
    def of(cls, item: Item) -> StoredToken:
        """Return the token of an item. Raises `ValueError` if it has none."""
        holder = Caller.of(item)
        if holder is None:
            raise ValueError("it names no operator and no user")
        digest = text(item, "PK").removeprefix(authentication.PARTITION)
        return cls(digest, text(item, "name"), holder, number(item, "created"))

    @property
    def item(self) -> Item:
        return {
            **authentication.key(self.digest).item(),
            **self.holder.fields,
            "name": self.name,
            "created": self.created,
            "batch": BATCH,
            "due": self.created,
        }


@dataclass(frozen=True, slots=True)
class TokenStore:
    """The tokens of a table. Every method raises `StorageError`."""

    table: Table
    clock: Callable[[], Seconds]

    def read_all(self) -> list[StoredToken]:
        """Return all tokens, oldest first; on AWS one of the last second may be missing."""
        found = self.table.get_all([due.key for due in between(self.table, BATCH)])
        return [StoredToken.of(item) for item in found]

    def create(self, name: str, user: str = "") -> str:
        """Create a token of an operator, or of a user, and return it. Raises `ReportedError`."""
        if NAME.fullmatch(name) is None:
            raise ReportedError(
                "the name of a token must be 1 to 64 letters, digits, `.`, `_`, `@` and `-`, and"
                f" begin with a letter or digit, not {name!r}"
            )
        if user and UUID.fullmatch(user.lower()) is None:
            raise ReportedError(
                f"a user must be a UUID, such as 6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11, not {user!r}"
            )
        if any(token.name == name for token in self.read_all()):
            raise ReportedError(
                f"a token has the name {name}; give another name, or revoke it first"
            )
        return self._put(name, Caller(Role.USER, user.lower()) if user else Caller(Role.OPERATOR))

    def create_first(self) -> str:
        """Create a token if no operator has one, and return it; else return an empty text."""
        if any(token.holder.is_operator for token in self.read_all()):
            return ""
        return self._put(FIRST, Caller(Role.OPERATOR))

    def revoke(self, wanted: str) -> StoredToken:
        """Remove the token with a name or a beginning of its digest. Raises `ReportedError`."""
        is_prefix = PREFIX.fullmatch(wanted) is not None
        found = [
            token
            for token in self.read_all()
            if token.name == wanted or (is_prefix and token.digest.startswith(wanted))
        ]
        match found:
            case []:
                raise ReportedError(
                    f"no token has the name {wanted!r} or a digest that begins with it (8 digits"
                    " or more); list shows all tokens"
                )
            case [token]:
                self.table.write(Delete(authentication.key(token.digest)))
                return token
        digests = ", ".join(token.digest[: authentication.SHOWN_DIGITS] for token in found)
        raise ReportedError(f"{len(found)} tokens are called {wanted}; give a digest: {digests}")

    def _put(self, name: str, holder: Caller) -> str:
        token = tokens.new_token()
        stored = StoredToken(tokens.digest(token), name, holder, to_milliseconds(self.clock()))
        self.table.write(Put(stored.item))
        return token


def show_first(token: str, stream: TextIO, folder: Path) -> None:
    """Print the first token to a terminal; else write it to a file, because a stream may be a log.

    Raises `OSError`.
    """
    if stream.isatty():
        shown = f", shown this once: {token}"
    else:
        path = folder / FIRST_FILE
        path.unlink(missing_ok=True)
        with open_folder(folder) as opened, os.fdopen(new_file(FIRST_FILE, opened), "w") as file:
            file.write(f"{token}\n")
        shown = f": in {path}; store it elsewhere, and remove the file"
    print(f"Operator's token (opens /admin){shown}", file=stream, flush=True)
