"""The changelog has the form of Keep a Changelog, and a section of the version."""

from __future__ import annotations

import re
from datetime import date

import pytest

from chalicelib.version import VERSION
from deploy import release, template
from deploy.release import ChangelogError, Section

TEXT = (template.ROOT / "CHANGELOG.md").read_text()
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Upgrade notes"]
"""The six of Keep a Changelog 1.1.0, in its order, and ours."""
SAMPLE = """# Changelog

## [Unreleased]

## [1.1.0] - 2027-01-02

### Added

- Red badges.

## [1.0.0] - 2026-11-23
"""


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_the_version_has_a_section_with_a_date() -> None:
    released = release.find_release(TEXT, VERSION)
    assert released.released is not None
    assert "### Upgrade notes\n" in released.text


def test_unreleased_is_on_top_and_versions_and_dates_descend() -> None:
    unreleased, *releases = release.read_sections(TEXT)
    assert unreleased.version == "Unreleased"
    versions = [number(section.version) for section in releases]
    assert versions == sorted(set(versions), reverse=True)
    dates = [section.released for section in releases if section.released]
    assert dates == sorted(dates, reverse=True)
    assert len(dates) == len(releases)


def test_each_heading_is_one_of_keep_a_changelog_and_in_its_order() -> None:
    for section in release.read_sections(TEXT):
        kinds = re.findall(r"^### (.+)$", section.text, re.MULTILINE)
        assert kinds == [kind for kind in KINDS if kind in kinds]


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
