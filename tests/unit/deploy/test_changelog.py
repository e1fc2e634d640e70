"""The changelog has a section of the version, which becomes the notes of the release."""

from __future__ import annotations

import re
from datetime import date

import pytest

from chalicelib.version import VERSION
from deploy import release, template
from deploy.release import ChangelogError, Section

TEXT = (template.ROOT / "CHANGELOG.md").read_text()
SAMPLE = """# Changelog

## [Unreleased]

## [1.1.0] - 2027-01-02

### Added

- Red badges.

## [1.0.0] - 2026-11-23
"""


def test_the_version_has_a_section_with_a_date() -> None:
    released = release.find_release(TEXT, VERSION)
    assert released.released is not None
    assert "### Upgrade notes\n" in released.text


def test_a_section_has_its_date_and_its_text() -> None:
    text = "### Added\n\n- Red badges.\n"
    assert release.find_release(SAMPLE, "1.1.0") == Section("1.1.0", date(2027, 1, 2), text)


def test_a_version_without_a_section_is_no_release() -> None:
    with pytest.raises(ChangelogError) as raised:
        release.find_release(SAMPLE, "1.2.0")
    assert str(raised.value) == (
        "CHANGELOG.md has no section of version 1.2.0: add `## [1.2.0] - YYYY-MM-DD`, or change"
        " chalicelib/version.py"
    )


@pytest.mark.parametrize(
    "heading",
    [
        "[1.2.0]",
        "1.2.0 - 2027-02-03",
        "[1.2.0] - soon",
        "[1.2.0] - 2027-02-30",
        "[1.2] - 2027-02-03",
    ],
)
def test_a_heading_of_another_form_is_no_release(heading: str) -> None:
    with pytest.raises(ChangelogError, match=re.escape(heading)):
        release.find_release(f"{SAMPLE}\n## {heading}\n", "1.2.0")


def test_release_notes_name_the_files_of_links() -> None:
    """A page of a release is not in the folder of the files."""
    text = "A [page](docs/cost.md#wallets), [docs/cost.md](docs/cost.md) and [a](https://a.org)."
    assert release.without_relative_links(text) == (
        "A page (docs/cost.md), docs/cost.md and [a](https://a.org)."
    )
