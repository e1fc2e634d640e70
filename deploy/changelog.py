"""The changelog: its versions with their dates, and the text of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

HEADING = re.compile(r"^## (?:\[(?P<version>\d+\.\d+\.\d+)\] - (?P<date>\S+)|\[Unreleased\])$")
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)#]+)[^)]*\)")
"""A link to another file of the project."""


class ChangelogError(Exception):
    """A version has no section, or a heading has another form than `## [1.0.0] - 2026-11-23`."""


@dataclass(frozen=True)
class Section:
    """A version with its date, or what is not released yet, and its text."""

    version: str
    released: date | None
    text: str


def read(changelog: str) -> list[Section]:
    """Return the sections of a changelog. Raises `ChangelogError`."""
    _, *parts = re.split(r"^(?=## )", changelog, flags=re.MULTILINE)
    return [_read_section(part) for part in parts]


def find_release(changelog: str, version: str) -> Section:
    """Return the section of a version that has a date. Raises `ChangelogError`."""
    for section in read(changelog):
        if section.version == version:
            return section
    raise ChangelogError(
        f"CHANGELOG.md has no section of version {version}: add `## [{version}] - YYYY-MM-DD`, or"
        " change chalicelib/version.py"
    )


def _read_section(part: str) -> Section:
    heading, _, text = part.partition("\n")
    found = HEADING.fullmatch(heading)
    if found is None:
        raise ChangelogError(
            f"the heading {heading!r} of CHANGELOG.md must be `## [Unreleased]`, or have the form"
            " `## [1.0.0] - 2026-11-23`"
        )
    try:
        released = date.fromisoformat(found["date"]) if found["date"] else None
    except ValueError as error:
        raise ChangelogError(f"the date of {heading!r} in CHANGELOG.md: {error}") from error
    return Section(found["version"] or "Unreleased", released, text.strip() + "\n")


def without_relative_links(text: str) -> str:
    """Return a text that names the files of its links, because it is read elsewhere."""
    return LINK.sub(lambda link: link[1] if link[1] == link[2] else f"{link[1]} ({link[2]})", text)
