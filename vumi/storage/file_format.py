"""The format of the file: the migrations that lead to it, and the formats that are refused.

The version of a file is the number of its last migration, in `PRAGMA user_version`.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from chalicelib import telemetry
from chalicelib.storage.errors import StorageRefusedError

TABLES = {"items", "changes", "checkpoints", "messages", "stream"}
"""The tables of a file of every version."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """The migrations of a program, in their order: SQL scripts, by the names of their files."""

    migrations: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, folder: Traversable) -> FileFormat:
        """Read the migrations of a folder, in the order of their names."""
        found = (file for file in folder.iterdir() if file.name.endswith(".sql"))
        return cls(tuple(sorted((file.name, file.read_text()) for file in found)))

    @property
    def version(self) -> int:
        return len(self.migrations)

    def examine(self, connection: sqlite3.Connection, *, migrates: bool = False) -> int:
        """Return the version of a file. Raises `StorageRefusedError` if this program can't use it.

        An older file is refused too, unless the caller migrates it.
        """
        version = version_of(connection)
        if version > self.version:
            raise StorageRefusedError(
                f"the file has format {version}, this program knows {self.version}: run a newer"
                " vu-mi"
            )
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
        if not version or not tables >= TABLES:
            raise StorageRefusedError(
                "it is a SQLite file, but not one of vu-mi: set DATA to another folder"
            )
        if version < self.version and not migrates:
            raise StorageRefusedError(
                f"the file has format {version}, this program knows {self.version}: `vumi serve`"
                " migrates the file of DATA, and `vumi restore` that of a backup"
            )
        return version

    def migrate(self, connection: sqlite3.Connection) -> None:
        """Apply the missing migrations; all of them make a new file.

        Each is one transaction, so a program that is killed leaves the file in one version. Raises
        `sqlite3.Error`, and leaves the file in the version before the migration that fails.
        """
        is_new = not version_of(connection)
        for number, (_, script) in enumerate(self.migrations, 1):
            if _apply(connection, number, script) and not is_new:
                telemetry.event(
                    logging.INFO, "file_migrated", from_format=number - 1, to_format=number
                )


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of a file; 0 is that of a new file, and of other programs."""
    [version] = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _apply(connection: sqlite3.Connection, number: int, script: str) -> bool:
    """Apply a migration; return False if it has been applied, by another process too."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        is_missing = version_of(connection) < number
        if is_missing:
            for statement in _split(script):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return is_missing


def _split(script: str) -> Iterator[str]:
    """Yield the statements of a script; each ends at the end of a line."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    yield statement


FORMAT = FileFormat.read(resources.files("vumi.storage.migrations"))
"""The format of the files of this program."""
VERSION = FORMAT.version
