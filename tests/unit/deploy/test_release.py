"""The release refuses what is not committed, and finds files that differ or are missing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from chalicelib import VERSION
from deploy import package, release, template
from deploy.release import ReleaseError

SAMPLE = """# Changelog

## [Unreleased]

## [1.1.0] - 2027-01-02

### Added

- A [page](docs/cost.md#wallets), [docs/cost.md](docs/cost.md) and [a](https://a.org).

## [1.0.0] - 2026-11-23
"""


def test_the_notes_of_a_version_are_its_section_and_name_the_files_of_links() -> None:
    """A page of a release is not in the folder of the files."""
    notes = "### Added\n\n- A page (docs/cost.md), docs/cost.md and [a](https://a.org).\n"
    assert release.find_notes(SAMPLE, "1.1.0") == notes
    changelog = (template.ROOT / "CHANGELOG.md").read_text()
    assert "### Upgrade notes\n" in release.find_notes(changelog, VERSION)


@pytest.mark.parametrize(
    "heading", ["", "[1.2.0]", "1.2.0 - 2027-02-03", "[1.2.0] - soon", "[1.2] - 2027-02-03"]
)
def test_a_version_without_a_section_with_a_date_is_no_release(heading: str) -> None:
    missing = "CHANGELOG.md has no section of version 1.2.0: add `## [1.2.0] - YYYY-MM-DD`, or"
    with pytest.raises(ReleaseError, match=re.escape(missing)):
        release.find_notes(f"{SAMPLE}\n## {heading}\n", "1.2.0")


@pytest.mark.parametrize("name", [".gitignore", "new"])
def test_a_file_that_is_not_committed_is_refused(tmp_path: Path, name: str) -> None:
    """A file that git ignores is not refused."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / ".gitignore").write_text("build/\n")
    author = "-c user.name=Ada -c user.email=ada@example.org commit --quiet --message Begin"
    for command in ("init --quiet", "add .", author):
        subprocess.run(["git", *command.split()], cwd=checkout, check=True)  # noqa: S603, S607
    (checkout / "build").mkdir()
    (checkout / "build" / "old.whl").touch()
    release.refuse_dirty(checkout)
    (checkout / name).write_text("build/\n# changed\n")
    with pytest.raises(ReleaseError, match=rf"^1 files are not committed, such as {name}: commit"):
        release.release(checkout, tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with two files and their checksums."""
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("a.whl", "b.zip"):
        (folder / name).write_text(name)
    release.write_checksums(folder)
    return folder


def test_checksums_are_those_that_sha256sum_reads(files: Path) -> None:
    command = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    subprocess.run(command, cwd=files, check=True)  # noqa: S603  fixed arguments


def test_two_builds_that_differ_are_no_release(files: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    (again / "a.whl").write_text("a.whl")
    (again / "b.zip").write_text("another time")
    with pytest.raises(ReleaseError, match=r"the same commit differ: SHA256SUMS, b\.zip$"):
        release.compare(files, again)


def test_a_bill_that_breaks_the_schema_is_found(tmp_path: Path) -> None:
    bill = tmp_path / "standalone.cdx.json"
    bill.write_text(package.describe_standalone())
    release.validate_bill(bill)
    bill.write_text(bill.read_text().replace('"library"', '"no type"', 1))
    with pytest.raises(ReleaseError, match=r"standalone\.cdx\.json is not valid CycloneDX"):
        release.validate_bill(bill)
