"""The release refuses what is not committed, and finds files that differ or are missing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy import release, release_checks, sbom
from deploy.release_checks import ReleaseError


def git(folder: Path, *command: str) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *who, *command], cwd=folder, check=True)  # noqa: S603, S607  our words


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with one committed file, and one that git ignores."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".gitignore").write_text("build/\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "Begin")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "old.whl").touch()
    return tmp_path


def test_a_clean_checkout_is_released(checkout: Path) -> None:
    release.refuse_dirty(checkout)


def test_a_changed_file_is_refused(checkout: Path) -> None:
    (checkout / ".gitignore").write_text("")
    with pytest.raises(ReleaseError, match=r"files are not committed, such as .gitignore: commit"):
        release.refuse_dirty(checkout)


def test_a_new_file_is_refused(checkout: Path) -> None:
    (checkout / "new").touch()
    with pytest.raises(ReleaseError, match="1 files are not committed, such as new: commit"):
        release.release(checkout, checkout / "out", checkout)


def test_a_version_without_a_section_in_the_changelog_is_reported_in_one_line(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n")
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "--message", "Add a changelog")
    given = ["--out", str(tmp_path / "out"), "--wheels", "wheels"]
    assert release.main(given, checkout) == 1
    assert "CHANGELOG.md has no section of version" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with two files and their checksums."""
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("a.whl", "b.zip"):
        (folder / name).write_text(name)
    release_checks.write_checksums(folder)
    return folder


def test_checksums_are_those_that_sha256sum_reads(files: Path) -> None:
    command = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    subprocess.run(command, cwd=files, check=True)  # noqa: S603  fixed arguments
    release_checks.verify_checksums(files)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "b.zip").write_text("changed"),
        lambda folder: (folder / "b.zip").unlink(),
        lambda folder: (folder / "a.whl").rename(folder / "b.zip"),
        lambda folder: (folder / "c.txt").write_text("not listed"),
    ],
    ids=["changed", "missing", "another's", "not listed"],
)
def test_each_wrong_file_is_found_by_its_checksum(
    files: Path, change: Callable[[Path], object]
) -> None:
    change(files)
    with pytest.raises(ReleaseError, match="SHA256SUMS is wrong about"):
        release_checks.verify_checksums(files)


def test_two_builds_that_differ_are_no_release(files: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    (again / "a.whl").write_text("a.whl")
    (again / "b.zip").write_text("another time")
    with pytest.raises(ReleaseError, match=r"the same commit differ: SHA256SUMS, b\.zip$"):
        release_checks.compare(files, again)


def test_a_bill_that_breaks_the_schema_is_found(tmp_path: Path) -> None:
    bill = tmp_path / "standalone.cdx.json"
    bill.write_text(sbom.describe_standalone())
    release_checks.validate_bill(bill)
    bill.write_text(bill.read_text().replace('"library"', '"no type"', 1))
    with pytest.raises(ReleaseError, match=r"standalone\.cdx\.json is not valid CycloneDX"):
        release_checks.validate_bill(bill)
